package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockcheck/clusters"
	"lockcheck/internal/cleanup"
)

// site is where runs happen, one after another. It has a cluster, and a reaper that removes it if this
// process dies.
type site struct {
	id      string // id of the first run on the site
	made    string // what the site was made of, for a Pool
	owner   cleanup.Owner
	reaper  *cleanup.Reaper
	journal *cleanup.Journal
	cluster clusters.Cluster // nil until it has started
	// nothingStarted: there was no engine, so nothing was started.
	nothingStarted bool
	// runs is how many runs the site has served before the present run, and since when the present run began;
	// zero for the first run.
	runs  int
	since time.Time
}

// openSite prepares a site on which a run can start its cluster.
func openSite(run, made, binary string, onDocker bool) (*site, error) {
	owner, err := cleanup.Self()
	if err != nil {
		return nil, err
	}
	s := &site{id: run, made: made, owner: owner}
	// Start the reaper first. If a run were killed in between, its journal would stay.
	if s.reaper, err = cleanup.StartReaper(binary, run, onDocker); err != nil {
		return nil, err
	}
	if s.journal, err = cleanup.OpenJournal(run, owner, onDocker); err != nil {
		return nil, errors.Join(err, s.reaper.Dismiss())
	}
	return s, nil
}

// prefix begins the names of the present run's keys. No other run on the site has the same prefix.
func (s *site) prefix() string {
	if s.runs == 0 {
		return ""
	}
	return fmt.Sprintf("r%d", s.runs+1)
}

// next makes the site ready for another run. The error says why it cannot be used: earlier runs may have left
// something.
func (s *site) next(ctx context.Context) error {
	if err := s.journal.Settled(); err != nil {
		return err
	}
	if err := s.cluster.Clean(ctx); err != nil {
		return err
	}
	s.runs++
	s.since = time.Now()
	return nil
}

// close removes everything that was started, whatever happened and even if the run is cancelled. Otherwise
// containers and stopped processes would stay. On a nil site, which is already gone, it does nothing.
func (s *site) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if s.nothingStarted {
		return errors.Join(s.journal.Remove(), s.reaper.Dismiss())
	}
	if err := s.closeCluster(limited); err != nil || s.cluster == nil || ctx.Err() != nil {
		err = errors.Join(err, s.journal.Close()) // from here on the reaper reads the journal
		// The engine may still carry out a request that was cut short. The reaper looks again until nothing
		// new appears. If it succeeds, it removes the journal, and nothing needs to be reported.
		if s.reaper.Abandon() == nil {
			return nil
		}
		return errors.Join(err, errors.New("the reaper could not remove everything; run lockcheck clean"))
	}
	// A process that a client has left behind is not our child.
	return errors.Join(cleanup.End(s.id), s.journal.Remove(), s.reaper.Dismiss())
}

func (s *site) closeCluster(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close(ctx)
}
