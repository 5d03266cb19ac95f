package clusters

import (
	"context"
	"errors"

	"lockcheck/clusters/agent"
)

// Kill ends all processes of the node at once, by SIGKILL. That they end is
// then no failure: their Exit says that they were killed.
func (n *Node) Kill(ctx context.Context) (agent.Moment, error) {
	n.killed.Store(true)
	return n.Host.Signal(ctx, agent.Kill)
}

// errNoRestart is why a node stays dead: a worker that is killed is a client
// machine that is gone, and an embedded server keeps nothing to come back with.
var errNoRestart = errors.New("it cannot be started again")

// CanRestart says why a killed node could not be started again; nil if it can.
func (n *Node) CanRestart() error {
	if n.again == nil {
		return errNoRestart
	}
	return nil
}

// Restart starts a killed server again, with its address, its data on disk and
// the cuts and the clock that are in force. It does not wait until it is ready.
func (n *Node) Restart(ctx context.Context) error {
	if err := n.CanRestart(); err != nil {
		return err
	}
	return n.again(ctx)
}
