package agent

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"lockcheck/history"
)

// tablePrefix marks the nftables tables that are ours. Each cut has one of its
// own, so that it comes and goes in one transaction with counters of its own,
// and no other table is ever touched: Docker's DNS lives in one.
const tablePrefix = "lockcheck-"

// Offsets of the addresses in an IPv4 header.
const (
	sourceOffset      = 12
	destinationOffset = 16
	addressLength     = 4
)

func applyCut(cut Cut) (Moment, error) {
	moment := Moment{From: history.Now()}
	if len(cut.Peers) == 0 {
		return moment, errors.New("a cut needs peers")
	}
	conn, err := nftables.New()
	if err != nil {
		return moment, fmt.Errorf("nftables: %w", err)
	}
	table := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: tablePrefix + cut.ID})
	in := addChain(conn, table, "in", nftables.ChainHookInput)
	out := addChain(conn, table, "out", nftables.ChainHookOutput)
	for _, peer := range cut.Peers {
		ip := net.ParseIP(peer).To4()
		if ip == nil {
			return moment, fmt.Errorf("not an IPv4 address: %q", peer)
		}
		addDrop(conn, in, sourceOffset, ip)
		if !cut.Deaf {
			addDrop(conn, out, destinationOffset, ip)
		}
	}
	err = conn.Flush()
	moment.To = history.Now()
	if err != nil {
		return moment, fmt.Errorf("nftables: %w", err)
	}
	return moment, nil
}

func addChain(conn *nftables.Conn, table *nftables.Table, name string, hook *nftables.ChainHook) *nftables.Chain {
	return conn.AddChain(&nftables.Chain{
		Name: name, Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: hook, Priority: nftables.ChainPriorityFilter,
	})
}

func addDrop(conn *nftables.Conn, chain *nftables.Chain, offset uint32, ip net.IP) {
	conn.AddRule(&nftables.Rule{Table: chain.Table, Chain: chain, Exprs: []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressLength},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: ip},
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
}

func healCut(id string) (moment Moment, dropped int64, err error) {
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
	conn.DelTable(table)
	err = conn.Flush()
	moment.To = history.Now()
	if err != nil {
		return moment, dropped, fmt.Errorf("nftables: %w", err)
	}
	return moment, dropped, nil
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

// countDropped adds up the packet counters of our rules.
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
