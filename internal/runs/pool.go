package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lockcheck/history"
	"lockcheck/workloads"
)

// Pool keeps clusters on Docker from one run for the next. It keeps clusters whose servers are lockcheck's
// own, after runs that did not fail and whose faults leave nothing behind. It hands out a cluster again only
// after a proof that the cluster is clean. Each run has its own processes and keys. If this process dies, the
// reaper of each cluster removes it.
type Pool struct {
	mu   sync.Mutex
	idle []*site // in the order in which they were given
}

// NewPool returns an empty pool. Close it after the last run.
func NewPool() *Pool { return new(Pool) }

// idleMost is how many clusters may wait for a run. Each has a dozen processes or so.
const idleMost = 4

// take returns a clean cluster for a test; nil if there is none. left says what could not be removed of
// clusters that were not clean.
func (p *Pool) take(ctx context.Context, t *test) (s *site, left error) {
	if p == nil || !t.lasting() {
		return nil, nil
	}
	for {
		s := p.find(t.madeOf())
		if s == nil {
			return nil, left
		}
		if err := s.next(ctx); err == nil {
			return s, left
		}
		left = errors.Join(left, s.close(ctx))
	}
}

func (p *Pool) find(made string) *site {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.idle, func(s *site) bool { return s.made == made })
	if at < 0 {
		return nil
	}
	s := p.idle[at]
	p.idle = slices.Delete(p.idle, at, at+1)
	return s
}

// give keeps a cluster for the next run, or removes a cluster that no other run can use.
func (p *Pool) give(ctx context.Context, s *site) error {
	if p == nil || s.made == "" {
		return s.close(ctx)
	}
	return p.keep(s).close(ctx)
}

// keep adds a cluster, and returns the one that must be removed for it; nil for none.
func (p *Pool) keep(s *site) (old *site) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
	if len(p.idle) > idleMost {
		old = p.idle[0] // not in one assignment: Delete moves the others, and may be called first
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	return old
}

// Close removes the kept clusters. When ctx is done, their reapers do. A nil Pool keeps nothing.
func (p *Pool) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.idle {
		errs = append(errs, s.close(ctx))
	}
	p.idle = nil
	return errors.Join(errs...)
}

// lasting says whether later tests may use the cluster of a test. What a user's servers leave behind is not
// known, and upgraded servers have another version. Clients are started anew for each run, so they do not matter.
func (t *test) lasting() bool {
	return t.Pool != nil && t.spec.OnDocker() && !t.spec.OfUser() && len(t.schedule.Versions()) == 0
}

// madeOf is a text that differs for clusters that cannot replace each other; "" for a cluster that serves
// only one run.
func (t *test) madeOf() string {
	if !t.lasting() {
		return ""
	}
	resource := t.guard() == workloads.Ask || t.guard() == workloads.Database
	return fmt.Sprintf("%q", []string{
		t.spec.Name, t.spec.Recipe(t.ServerVersion), t.serverImage(), t.Binary, lastChange(t.workerBinary()),
		t.lock.Path, lastChange(t.lock.Image.Build), fmt.Sprint(t.Nodes, resource, t.schedule.OnDisks()),
	})
}

// lastChange is when a file, or anything in a folder, was last changed, because its author may work on it
// during a hunt. It ignores what it cannot read; making the image then fails.
func lastChange(path string) string {
	var last time.Time
	_ = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return path + " " + last.String()
}

// traces says whether the faults of a run leave something behind.
type traces struct {
	workers   map[string]bool
	ofUser    bool // the clients are a user's, and may have left files in the workers' containers
	failsOver bool // a server that was paused or cut off may have lost its role for good

	mu   sync.Mutex
	open map[string]bool // ids of faults that were applied, and are not proven healed
	left bool            // something is left for good
}

func newTraces(test *test) *traces {
	t := &traces{workers: make(map[string]bool), ofUser: test.lock.Definition != nil, failsOver: test.spec.FailsOver, open: make(map[string]bool)}
	for _, name := range test.workerNames() {
		t.workers[name] = true
	}
	return t
}

// Observe sees an event.
func (t *traces) Observe(e history.Event) {
	if e.Fault == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := e.Fault
	switch f.Stage {
	case history.Applied:
		t.open[f.ID] = true
		t.left = t.left || t.lasts(*f)
	case history.Unproven, history.Unhealed:
		t.left = true
	case history.ProvenHealed:
		delete(t.open, f.ID)
	}
}

// lasts says whether a fault leaves something behind after it is healed, which no proof that the cluster is
// clean would show: lost data, or servers in other roles. A killed server that serves again and a clock that is
// right again leave nothing. A worker is started anew for each run, but after a kill there may be things that a
// user's client would have removed at its end. A kind of fault without known effects may leave anything behind.
func (t *traces) lasts(f history.Fault) bool {
	effects := history.EffectsOf(f.Kind)
	ofServer := slices.ContainsFunc(f.Targets, func(target string) bool { return !t.workers[target] })
	if f.Kind == history.Wipe || f.Kind == history.PowerLoss || len(effects) == 0 {
		return true
	}
	for _, effect := range effects {
		switch effect {
		case history.Defers:
		case history.Stops, history.Cuts, history.Disturbs, history.Steps, history.Deposes:
			if t.failsOver && ofServer {
				return true
			}
		case history.Ends:
			if t.failsOver && ofServer || t.ofUser {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// none says whether nothing is left behind.
func (t *traces) none() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.left && len(t.open) == 0
}
