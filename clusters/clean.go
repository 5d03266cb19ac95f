package clusters

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lockcheck/clusters/agent"
)

// cleanLimit bounds the check that a cluster is clean.
const cleanLimit = 10 * time.Second

// cleanTolerance is how far a server's clock may seem to be off this machine's. Some servers report full
// seconds.
const cleanTolerance = 1100 * time.Millisecond

var (
	errHeld     = errors.New("its processes are stopped or frozen")
	errCuts     = errors.New("its network is cut")
	errOccupied = errors.New("its program still runs")
	errLeft     = errors.New("its program has left processes behind")
	errNoLeader = errors.New("no server leads the others")
)

// Clean implements Cluster. It asks every node.
func (c *docker) Clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	var leaders, led atomic.Int32
	for _, node := range c.servers {
		group.Go(func() error {
			_, err := checkUndisturbed(ctx, node.Host)
			if err := errors.Join(err, checkServes(ctx, node)); err != nil {
				return fmt.Errorf("%s: %w", node.Name, err)
			}
			switch leads, err := node.Host.Leads(ctx); {
			case errors.Is(err, agent.ErrNoLeader):
			case err != nil:
				return fmt.Errorf("%s: %w", node.Name, err)
			default:
				led.Add(1)
				if leads {
					leaders.Add(1)
				}
			}
			return nil
		})
	}
	for _, s := range c.stages {
		group.Go(func() error {
			if err := s.clean(ctx); err != nil {
				return fmt.Errorf("%s: %w", s.node.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if led.Load() > 0 && leaders.Load() != 1 {
		return errNoLeader
	}
	return nil
}

// clean returns what is left of the programs of a stage. A stage without a host runs no user's program and
// cannot be disturbed by a fault.
func (s *staged) clean(ctx context.Context) error {
	if s.busy.Load() {
		return errOccupied
	}
	if s.node.Host == nil {
		return nil
	}
	own := 1 // the stage itself
	if s.gone.Load() {
		own = 0
	}
	processes, err := checkUndisturbed(ctx, s.node.Host)
	if err == nil && processes > own {
		err = errLeft
	}
	return err
}

// checkUndisturbed checks that no fault is in force on a node, and returns how many processes run there.
func checkUndisturbed(ctx context.Context, host agent.Host) (processes int, err error) {
	all, err := host.Processes(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		if p.Stopped || p.Frozen {
			return len(all), errHeld
		}
	}
	cuts, err := host.Cuts(ctx)
	if err == nil && len(cuts) > 0 {
		err = errCuts
	}
	return len(all), err
}

// checkServes returns why a server does not serve as a new one would: it does not answer, or its clock is off. The
// clock is not checked if it cannot be moved.
func checkServes(ctx context.Context, node *Node) error {
	if err := node.Host.Ready(ctx); err != nil {
		return err
	}
	if node.Clock != nil {
		return nil
	}
	reading, err := node.Host.Clock(ctx)
	if err != nil {
		return err
	}
	if low, high := reading.Offset(); low > cleanTolerance || high < -cleanTolerance {
		return fmt.Errorf("its clock is %s off", low)
	}
	return nil
}
