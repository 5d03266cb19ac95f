package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lockcheck/clusters"
	"lockcheck/internal/cleanup"
)

// site is where runs are made, one after another: a cluster, and what removes it should this
// process die.
type site struct {
	id      string // of the first run on it
	made    string // of what, for a Pool
	owner   cleanup.Owner
	reaper  *cleanup.Reaper
	journal *cleanup.Journal
	cluster clusters.Cluster // nil until it has started
	// nothingStarted: there was no engine to start anything on.
	nothingStarted bool
	// runs is how many it has served before the present one, and since when that began; zero
	// for the first.
	runs  int
	since time.Time
}

// openSite prepares what a run starts its cluster on.
func openSite(run, made, binary string, onDocker bool) (*site, error) {
	owner, err := cleanup.Self()
	if err != nil {
		return nil, err
	}
	s := &site{id: run, made: made, owner: owner}
	// The reaper first: the journal of a run that is killed in between would stay.
	if s.reaper, err = cleanup.StartReaper(binary, run, onDocker); err != nil {
		return nil, err
	}
	if s.journal, err = cleanup.OpenJournal(run, owner, onDocker); err != nil {
		return nil, errors.Join(err, s.reaper.Dismiss())
	}
	return s, nil
}

// prefix begins the names of the present run's keys: no other run on the site has the same.
func (s *site) prefix() string {
	if s.runs == 0 {
		return ""
	}
	return fmt.Sprintf("r%d", s.runs+1)
}

// next makes it ready for another run, or says why it cannot be: something of the runs before
// may still be there.
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

// close removes what was started, whatever happened and even if the run is
// being cancelled: containers and stopped processes would stay. A site that is nil is gone.
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
		err = errors.Join(err, s.journal.Close()) // it is the reaper's from here on
		// A request that was cut short may still be carried out by the engine:
		// the reaper looks again until nothing appears any more. It removes the
		// journal if it succeeds, and then there is nothing to complain of.
		if s.reaper.Abandon() == nil {
			return nil
		}
		return errors.Join(err, errors.New("the reaper could not remove everything; run lockcheck clean"))
	}
	// What a client has left behind is no child of ours.
	return errors.Join(cleanup.End(s.id), s.journal.Remove(), s.reaper.Dismiss())
}

func (s *site) closeCluster(ctx context.Context) error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close(ctx)
}
