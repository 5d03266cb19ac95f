package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"lockcheck/history"
)

// tablePrefix marks lockcheck's nftables tables. Each cut has its own table, so it comes and goes in one
// transaction with its own counters. No other table is touched: Docker's DNS needs one.
const tablePrefix = "lockcheck-"

// Offsets of the addresses in an IPv4 header.
const (
	sourceOffset      = 12
	destinationOffset = 16
	addressLength     = 4
)

// applyCut installs rules that do something with the packets from and to the peers.
func applyCut(cut Cut, then []expr.Any) (Moment, error) {
	moment := Moment{From: history.Now()}
	if len(cut.Peers) == 0 {
		return moment, errors.New("a cut needs peers")
	}
	conn, err := nftables.New()
	if err != nil {
		return moment, fmt.Errorf("nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: tablePrefix + cut.ID})
	in := addChain(conn, table, "in", nftables.ChainHookInput, cut.priority())
	out := addChain(conn, table, "out", nftables.ChainHookOutput, cut.priority())
	for _, peer := range cut.Peers {
		ip := net.ParseIP(peer).To4()
		if ip == nil {
			return moment, fmt.Errorf("not an IPv4 address: %q", peer)
		}
		if cut.inbound() {
			addRule(conn, in, sourceOffset, ip, then)
		}
		switch {
		case len(cut.Unnamed) > 0:
			addRule(conn, out, destinationOffset, ip, []expr.Any{&expr.Counter{}})
		case !cut.InboundOnly:
			addRule(conn, out, destinationOffset, ip, then)
		}
	}
	err = conn.Flush()
	moment.To = history.Now()
	if err != nil {
		return moment, fmt.Errorf("nftables: %w", err)
	}
	return moment, nil
}

// inbound says whether rules match the packets from the peers.
func (c Cut) inbound() bool { return c.Hold == nil || c.InboundOnly }

// priority is the place of a cut's rules among others. A message that was held back meets the other cuts when it is
// released.
func (c Cut) priority() *nftables.ChainPriority {
	if c.Hold != nil {
		return nftables.ChainPriorityRef(*nftables.ChainPriorityFilter - 1)
	}
	return nftables.ChainPriorityFilter
}

func addChain(conn *nftables.Conn, table *nftables.Table, name string, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	return conn.AddChain(&nftables.Chain{
		Name: name, Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: hook, Priority: priority,
	})
}

func addRule(conn *nftables.Conn, chain *nftables.Chain, offset uint32, ip net.IP, then []expr.Any) {
	conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: append([]expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressLength},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: ip},
	}, then...)})
}

// drop counts and drops a share of the packets; all of them for 0.
func drop(share float64) []expr.Any {
	all := []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}
	if share == 0 {
		return all
	}
	const whole = 1_000_000
	part := binary.BigEndian.AppendUint32(nil, uint32(math.Round(share*whole)))
	return append([]expr.Any{
		&expr.Numgen{Register: 1, Type: unix.NFT_NG_RANDOM, Modulus: whole},
		// The comparison is byte by byte, so the random number must be big-endian.
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: part},
	}, all...)
}

// healCut removes a cut. Packets that wait in its queue, if it has one, are released.
func healCut(id string, waiting waiting) (moment Moment, dropped int64, err error) {
	moment.From = history.Now()
	conn, err := nftables.New()
	if err != nil {
		return moment, 0, fmt.Errorf("nftables: %w", err)
	}
	table, err := findTable(conn, id)
	if err != nil {
		return moment, 0, err
	}
	if dropped, err = countDropped(conn, table); err != nil {
		return moment, 0, err
	}
	if waiting != nil {
		if err = passAll(conn, table, waiting); err != nil {
			return moment, 0, err
		}
	}
	conn.DelTable(table)
	err = conn.Flush()
	moment.To = history.Now()
	if err != nil {
		return moment, dropped, fmt.Errorf("nftables: %w", err)
	}
	return moment, dropped, nil
}

// passAll removes the rules and then releases the waiting packets, before the chains are removed. When a chain
// is removed the kernel drops the packets that wait in any queue of the network namespace.
func passAll(conn *nftables.Conn, table *nftables.Table, waiting waiting) error {
	conn.FlushTable(table)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	return waiting.flush()
}

func droppedBy(id string) (int64, error) {
	conn, err := nftables.New()
	if err != nil {
		return 0, fmt.Errorf("nftables: %w", err)
	}
	table, err := findTable(conn, id)
	if err != nil {
		return 0, err
	}
	return countDropped(conn, table)
}

func findTable(conn *nftables.Conn, id string) (*nftables.Table, error) {
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	for _, table := range tables {
		if table.Name == tablePrefix+id {
			return table, nil
		}
	}
	return nil, fmt.Errorf("no cut %q is in force", id)
}

// countDropped adds up the packet counters of a cut's rules.
func countDropped(conn *nftables.Conn, table *nftables.Table) (int64, error) {
	var dropped uint64
	for _, name := range []string{"in", "out"} {
		rules, err := conn.GetRules(table, &nftables.Chain{Name: name, Table: table})
		if err != nil {
			return 0, fmt.Errorf("nftables: %w", err)
		}
		for _, rule := range rules {
			for _, e := range rule.Exprs {
				if counter, is := e.(*expr.Counter); is {
					dropped += counter.Packets
				}
			}
		}
	}
	return int64(dropped), nil
}

func listCuts() ([]string, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	tables, err := conn.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	var ids []string
	for _, table := range tables {
		if id, ours := strings.CutPrefix(table.Name, tablePrefix); ours {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
