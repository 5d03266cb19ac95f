package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"

	"lockcheck/history"
)

// Network is a network namespace that belongs to one node alone, with its packet queues. Its zero value is
// ready for use.
type Network struct {
	mu      sync.Mutex
	opened  uint16             // how many queues have been opened
	queues  map[string]waiting // by ID of the cut
	hosts   []byte             // the original hosts file; nil until it is changed
	renamed map[string]Cut     // by ID: the cuts that have changed the hosts file

	trying  sync.Mutex
	offered map[bool]error // results of trial cuts: with a queue (true), or without
}

// waiting is a queue of packets that wait for our verdict.
type waiting interface {
	// flush releases all of its packets.
	flush() error
	close()
}

// open returns the queue of a cut that needs one.
func (c Cut) open(number uint16) (waiting, error) {
	if c.Hold != nil {
		return openMessageQueue(number, *c.Hold)
	}
	return openPacketQueue(number, c)
}

// queued says whether a cut needs a queue.
func (c Cut) queued() bool { return c.Delay > 0 || c.Rate > 0 || c.Hold != nil }

func (n *Network) cut(cut Cut) (Moment, error) {
	if !cut.queued() && !cut.renames() {
		return applyCut(cut, drop(cut.Loss))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if cut.renames() {
		return n.cutNames(cut)
	}
	if n.queues[cut.ID] != nil {
		return Moment{}, fmt.Errorf("a cut %q is in force already", cut.ID)
	}
	n.opened++
	l, err := cut.open(n.opened)
	if err != nil {
		return Moment{}, err
	}
	moment, err := applyQueue(cut, n.opened)
	if err != nil {
		l.close()
		return moment, err
	}
	if n.queues == nil {
		n.queues = make(map[string]waiting)
	}
	n.queues[cut.ID] = l
	return moment, nil
}

// applyQueue tries nftables' own queue expression first, which not every kernel has, and then the two revisions
// of iptables' NFQUEUE target.
func applyQueue(cut Cut, number uint16) (Moment, error) {
	ways := [][]expr.Any{
		{&expr.Counter{}, &expr.Queue{Num: number, Flag: expr.QueueFlagBypass}},
		{&expr.Counter{}, iptablesQueue(3, number)},
		{&expr.Counter{}, iptablesQueue(2, number)},
	}
	var refused error
	for _, way := range ways {
		moment, err := applyCut(cut, way)
		if err == nil {
			return moment, nil
		}
		refused = errors.Join(refused, err)
	}
	return Moment{}, refused
}

// iptablesQueue is the NFQUEUE target with struct xt_NFQ_info_v2 or v3 of the kernel's
// linux/netfilter/xt_NFQUEUE.h, padded as the kernel requires.
func iptablesQueue(revision uint32, number uint16) expr.Any {
	const queues, bypass = 1, 1
	info := make(xt.Unknown, 8)
	for i, field := range []uint16{number, queues, bypass} {
		binary.NativeEndian.PutUint16(info[2*i:], field)
	}
	return &expr.Target{Name: "NFQUEUE", Rev: revision, Info: &info}
}

func (n *Network) heal(id string) (Moment, int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	began := history.Now()
	if err := n.restoreNames(id); err != nil {
		return Moment{}, 0, err
	}
	l := n.queues[id]
	moment, dropped, err := healCut(id, l)
	moment.From = began
	if err == nil && l != nil {
		l.close()
		delete(n.queues, id)
	}
	return moment, dropped, err
}

// UnusedAddress is an address that no machine has (RFC 5737).
const UnusedAddress = "192.0.2.1"

// trialID is the ID of a trial cut. No step of a schedule has this ID.
const trialID = "?"

// offers tries a cut from an unused address, once for each kind. Removing a trial makes the kernel drop packets
// that wait in the queues of other cuts.
func (n *Network) offers(cut Cut) error {
	n.trying.Lock()
	defer n.trying.Unlock()
	queued := cut.queued()
	if err, tried := n.offered[queued]; tried {
		return err
	}
	cut.ID, cut.Peers = trialID, []string{UnusedAddress}
	_, err := n.cut(cut)
	if err == nil {
		_, _, err = n.heal(cut.ID)
	}
	if n.offered == nil {
		n.offered = make(map[bool]error)
	}
	n.offered[queued] = err
	return err
}

// cuts lists the cuts in force, without those that hold a message back.
func (n *Network) cuts() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids, err := listCuts()
	return slices.DeleteFunc(ids, func(id string) bool {
		_, holds := n.queues[id].(*messageQueue)
		return holds
	}), err
}
