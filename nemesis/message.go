package nemesis

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
)

// A fault that waits for a message needs no help of the client, so it also works with clients that lockcheck knows nothing
// of: the kernel of the worker holds the packet back until the fault is in force. See agent.Message for what is recognized.

// OfMessage says whether the step waits for a message between a worker and a server.
func (s Step) OfMessage() bool { return s.When == WhenRequest || s.When == WhenAnswer }

// checkMessage checks the fields of a step that choose a message.
func (s *Step) checkMessage() error {
	switch _, err := s.contained(); {
	case s.Bytes != "" && !s.OfMessage():
		return wrong("bytes", "goes with when: request or when: answer; add one, or leave bytes out")
	case s.Nth != 0 && !s.OfMessage():
		return wrong("nth", "goes with when: request or when: answer; add one, or leave nth out")
	case s.Nth < 0:
		return wrong("nth", "must be positive, as in nth: 2 for the second message")
	case err != nil:
		return wrong("bytes", "%q has no even number of hexadecimal digits after 0x", s.Bytes)
	}
	return nil
}

// contained is what the message contains.
func (s Step) contained() ([]byte, error) {
	if digits, is := strings.CutPrefix(s.Bytes, "0x"); is {
		return hex.DecodeString(digits)
	}
	return []byte(s.Bytes), nil
}

// message names the message in a sentence, as in: request 2 with "DEL".
func (s Step) message() string {
	text := fmt.Sprintf("%s %d", s.When, max(s.Nth, 1))
	if s.Bytes != "" {
		text += " with " + strconv.Quote(s.Bytes)
	}
	return text
}

// holdID is the ID of a cut that holds a message back for a step. No step has such an ID.
func holdID(step string) string { return step + "?" }

// hold is the cut that holds the message back.
func (n *Nemesis) hold(step Step, id string) (agent.Cut, error) {
	contains, err := step.contained()
	return agent.Cut{
		ID: holdID(id), Peers: addressesOf(n.Environment.Servers), InboundOnly: step.When == WhenAnswer,
		Hold: &agent.Message{Contains: contains, Nth: max(step.Nth, 1)},
	}, err
}

// awaitMessage waits until the message of a worker is held back. Those of other workers pass.
func (n *Nemesis) awaitMessage(ctx context.Context, step Step, id string) (entry, error) {
	cut, err := n.hold(step, id)
	if err != nil {
		return entry{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := n.alive(step.Of)
	type result struct {
		entry
		err error
	}
	results := make(chan result, len(workers))
	var chosen atomic.Bool
	for _, worker := range workers {
		n.holding.Go(func() {
			seen, err := heldOn(ctx, worker, cut)
			if err != nil || chosen.Swap(true) {
				releaseMessage(ctx, worker, cut.ID)
				results <- result{err: err}
				return
			}
			cancel() // the others release their workers' messages while the fault begins
			results <- result{entry: entry{
				worker: worker.Name, at: seen.At,
				what:  fmt.Sprintf("%s's %s was held back, %d bytes from %s to %s", worker.Name, step.message(), seen.Bytes, seen.From, seen.To),
				holds: true,
			}}
		})
	}
	var refused error = errAllKilled
	for range workers {
		r := <-results
		if r.holds {
			return r.entry, nil
		}
		refused = r.err
	}
	return entry{}, refused
}

// heldOn waits until the message of one worker is held back. The cut may be in force after an error, too.
func heldOn(ctx context.Context, worker *clusters.Node, cut agent.Cut) (agent.Sighting, error) {
	// Not interrupted: it could come into force after it was healed.
	applying, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	if _, err := worker.Host.Cut(applying, cut); err != nil {
		return agent.Sighting{}, err
	}
	for {
		seen, came, err := worker.Host.AwaitHeld(ctx, cut.ID)
		if err == nil && !came {
			err = ctx.Err()
		}
		if err != nil || came {
			return seen, err
		}
	}
}

// releaseMessage lets a worker's message pass. A worker that has ended has none.
func releaseMessage(ctx context.Context, worker *clusters.Node, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
	defer cancel()
	for range healAttempts {
		if _, _, err := worker.Host.Heal(ctx, id); err == nil {
			return
		}
	}
}

// errAllKilled is why a step waits for no message.
var errAllKilled = errors.New("all workers whose messages the step waits for were killed")

// errNoTraffic is why no message of a worker is ever seen.
var errNoTraffic = errors.New("the workers have no connections to servers in a network of their own")

// lacksMessages says why the message of a step never comes; nil if it can.
func (n *Nemesis) lacksMessages(step Step) error {
	workers := n.alive(step.Of)
	if len(addressesOf(n.Environment.Servers)) == 0 || len(addressesOf(workers)) == 0 {
		return errNoTraffic
	}
	for _, worker := range workers {
		if worker.Host == nil {
			continue // only a running node can tell what its kernel offers
		}
		ctx, cancel := context.WithTimeout(context.Background(), applyTimeout)
		err := worker.Host.Offers(ctx, agent.Cut{Hold: &agent.Message{}})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// alive lists the workers of a name, or all for "", that were not killed.
func (n *Nemesis) alive(of string) (workers []*clusters.Node) {
	for _, w := range n.Environment.Workers {
		if (of == "" || of == w.Name) && (n.Environment.Watch == nil || !n.Environment.Watch.killed(w.Name)) {
			workers = append(workers, w)
		}
	}
	return workers
}

// addressesOf lists the addresses of nodes that have one.
func addressesOf(nodes []*clusters.Node) (addresses []string) {
	for _, node := range nodes {
		if node.IP != "" {
			addresses = append(addresses, node.IP)
		}
	}
	return addresses
}
