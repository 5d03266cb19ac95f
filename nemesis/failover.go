package nemesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
)

const (
	// failoverPoll is the interval at which each server is asked whether it leads. leadsAnswer bounds its
	// answer, because a stopped server never answers.
	failoverPoll = 10 * time.Millisecond
	leadsAnswer  = 200 * time.Millisecond
	// justBegun is how long a failover lasts on after a new leader has begun.
	justBegun = 500 * time.Millisecond
)

// failover tracks the leader, for steps that wait for a failover. A failover begins when the leader stops
// leading and ends some time after a new one has begun.
type failover struct {
	mu      sync.Mutex
	leads   map[string]bool // by server: its last answer
	silent  map[string]int  // by server: number of consecutive questions without an answer
	leader  string          // the last leader; "" before the first
	since   int64           // ns: when it stopped leading, or took over from another leader; 0 for neither
	what    string          // description of that event
	changed chan struct{}   // closed at the next event
}

func newFailover() *failover {
	return &failover{leads: make(map[string]bool), silent: make(map[string]int), changed: make(chan struct{})}
}

// follow polls the servers until ctx is done.
func (f *failover) follow(ctx context.Context, servers []*clusters.Node) {
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() {
			for ctx.Err() == nil {
				asking, cancel := context.WithTimeout(ctx, leadsAnswer)
				leads, err := server.Host.Leads(asking)
				cancel()
				if ctx.Err() == nil {
					f.answer(server.Name, leads, err)
				}
				sleepUntil(ctx, time.Now().Add(failoverPoll))
			}
		})
	}
	all.Wait()
}

// unanswered is the number of consecutive unanswered questions after which a server no longer counts as
// leading. A single answer may be late because the machine is busy.
const unanswered = 2

// answer records a server's answer, or that it did not answer.
func (f *failover) answer(server string, leads bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.leads[server]
	if err == nil {
		f.silent[server] = 0
	} else if f.silent[server]++; f.silent[server] < unanswered {
		return
	}
	f.leads[server] = err == nil && leads
	switch {
	case f.leads[server] && !was && f.leader != server:
		if f.leader != "" {
			f.happened(server + " had begun to lead")
		}
		f.leader = server
	case err != nil && was && f.leader == server:
		f.happened(fmt.Sprintf("%s had left %d questions whether it leads without an answer", server, unanswered))
	case !leads && was && f.leader == server:
		f.happened(server + " led no more")
	}
}

func (f *failover) happened(what string) {
	f.since, f.what = history.Now(), what
	close(f.changed)
	f.changed = make(chan struct{})
}

// await waits for a failover, or returns the one in progress.
func (f *failover) await(ctx context.Context) (entry, error) {
	for {
		f.mu.Lock()
		at, what, changed := f.since, f.what, f.changed
		over := at == 0 || f.leads[f.leader] && history.Now()-at > justBegun.Nanoseconds()
		f.mu.Unlock()
		if !over {
			return entry{at: at, what: what}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return entry{}, fmt.Errorf("waiting for a failover: %w", ctx.Err())
		}
	}
}
