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
	// failoverPoll is how often each server is asked whether it leads, and leadsAnswer how
	// long it may take to answer: one that is stopped never does.
	failoverPoll = 10 * time.Millisecond
	leadsAnswer  = 200 * time.Millisecond
	// justBegun is how long a new leader counts as one that has just begun.
	justBegun = 500 * time.Millisecond
)

// failover follows which server leads, for steps that wait for a failover: from when the
// leader of before leads no more until a new one has just begun.
type failover struct {
	mu      sync.Mutex
	leads   map[string]bool // by server, by its last answer
	silent  map[string]int  // by server: so many questions in a row had no answer
	leader  string          // the last that led, "" before any did
	since   int64           // when it led no more, or became the leader after another one, ns; 0 for neither
	what    string          // happened then
	changed chan struct{}   // closed by the next change
}

func newFailover() *failover {
	return &failover{leads: make(map[string]bool), silent: make(map[string]int), changed: make(chan struct{})}
}

// follow asks the servers until ctx is done.
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

// unanswered is how many questions in a row a server leaves without an answer that leads no more: one
// may be late because the machine is busy.
const unanswered = 2

// answer takes what a server says of itself, or that it did not answer.
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

// await waits for a failover, unless there is one at the moment.
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
