package clusters

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/history"
)

// errNoFreezer is why an embedded node cannot be frozen: its process is in lockcheck's own control group.
var errNoFreezer = errors.New("it has no control group of its own")

// freezer freezes the container of a server or worker.
type freezer struct {
	engine    *engine.Engine
	container string
	doubt     atomic.Bool // a failed freeze may still take effect
}

// CanFreeze says why the node cannot be frozen; nil if it can.
func (n *Node) CanFreeze() error {
	if n.freezer == nil {
		return errNoFreezer
	}
	return nil
}

// Freeze stops all processes of the node with the freezer of their control group.
func (n *Node) Freeze(ctx context.Context) (agent.Moment, error) {
	if err := n.CanFreeze(); err != nil {
		return agent.Moment{}, err
	}
	moment := agent.Moment{From: history.Now()}
	err := n.freezer.engine.Freeze(ctx, n.freezer.container)
	n.freezer.doubt.Store(err != nil)
	moment.To = history.Now()
	return moment, err
}

// awaitDoubt waits for a freeze that the engine did not confirm and may still carry out.
func (n *Node) awaitDoubt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, doubtLimit)
	defer cancel()
	for ctx.Err() == nil {
		if frozen, err := n.Frozen(ctx); err == nil && frozen {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(readyPoll):
		}
	}
}

// doubtLimit is how long the engine may take to carry out such a freeze.
const doubtLimit = 5 * time.Second

// Thaw lets a frozen node continue. It does nothing for a node that is not frozen.
func (n *Node) Thaw(ctx context.Context) (agent.Moment, error) {
	if n.CanFreeze() == nil && n.freezer.doubt.Swap(false) {
		n.awaitDoubt(ctx)
	}
	moment := agent.Moment{From: history.Now()}
	frozen, err := n.Frozen(ctx)
	if err == nil && frozen {
		moment.From = history.Now()
		err = n.freezer.engine.Thaw(ctx, n.freezer.container)
	}
	moment.To = history.Now()
	return moment, err
}

// Frozen asks the engine whether the node is frozen.
func (n *Node) Frozen(ctx context.Context) (bool, error) {
	if err := n.CanFreeze(); err != nil {
		return false, err
	}
	return n.freezer.engine.Frozen(ctx, n.freezer.container)
}
