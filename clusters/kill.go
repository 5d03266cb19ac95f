package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// Kill kills all processes of the node at once with SIGKILL. Their Exit says so, and is no failure of the run.
func (n *Node) Kill(ctx context.Context) (agent.Moment, error) {
	return n.end(ctx, func(ctx context.Context) (agent.Moment, error) { return n.Host.Signal(ctx, agent.Kill) })
}

// Stop asks the node's server to end, as its operator does. Its Exit is no failure of the run.
func (n *Node) Stop(ctx context.Context) (agent.Moment, error) {
	return n.end(ctx, func(ctx context.Context) (agent.Moment, error) {
		return n.Host.Signal(ctx, cmp.Or(n.Server.EndSignal, agent.Terminate))
	})
}

// Remove ends the node's server by a call that removes it from its cluster. Its Exit is no failure of the run.
func (n *Node) Remove(ctx context.Context, remove func(context.Context) (agent.Moment, error)) (agent.Moment, error) {
	return n.end(ctx, remove)
}

// end ends all processes of the node by a call of its agent.
func (n *Node) end(ctx context.Context, call func(context.Context) (agent.Moment, error)) (agent.Moment, error) {
	before := n.killed.Swap(true) // the processes may end before the answer arrives
	moment, err := call(ctx)
	if err != nil && !unanswered(err) {
		n.killed.Store(before)
	}
	return moment, err
}

// unanswered says whether a failed action may still have taken effect.
func unanswered(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// errNoRestart is why a node stays dead. A killed worker stands for a client machine that is gone, and an
// embedded server keeps nothing to restart with.
var errNoRestart = errors.New("it cannot be started again, as servers on Docker can")

// CanRestart says why a killed node could not be started again; nil if it can.
func (n *Node) CanRestart() error {
	if n.Again == nil {
		return errNoRestart
	}
	return nil
}

// Ending says whether the node's processes were told to end since its last start.
func (n *Node) Ending() bool { return n.killed.Load() }

// CanUpgrade says why the server could not be started again in a version; nil if it can.
func (n *Node) CanUpgrade(version string) error {
	switch {
	case len(n.Versions) == 0:
		return errors.New("these servers have one version only")
	case !slices.Contains(n.Versions, version):
		return fmt.Errorf("there is no version %s (there are %s)", version, strings.Join(n.Versions, ", "))
	}
	return nil
}

// Upgrade puts another version of the server's program in place. It runs from the next start on, with the same
// data.
func (n *Node) Upgrade(ctx context.Context, version string) error {
	if n.upgrade == nil {
		return errors.New("no other version was prepared")
	}
	return n.upgrade(ctx, version)
}

// Restart starts a killed server again, with its address, its data on disk, and the cuts and clock in force. It
// does not wait until the server is ready, and does nothing if the server was restarted already.
func (n *Node) Restart(ctx context.Context) (agent.Moment, error) {
	moment := agent.Moment{From: history.Now()}
	if err := n.CanRestart(); err != nil {
		return moment, err
	}
	if !n.killed.Load() {
		return moment, nil
	}
	if err := n.awaitEnd(ctx); err != nil {
		return moment, err
	}
	n.killed.Store(false)
	err := n.Again(ctx)
	n.killed.Store(err != nil)
	moment.To = history.Now()
	return moment, err
}

// awaitEnd waits until it is known how the killed process ended. After the restart that end would be taken for
// the next process'.
func (n *Node) awaitEnd(ctx context.Context) error {
	if n.ended == nil {
		return nil
	}
	select {
	case <-n.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
