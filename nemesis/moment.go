package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// Values of Step.When other than "".
const (
	WhenAcquiring   = history.MomentAcquiring
	WhenUncontended = history.MomentUncontended
	WhenRenewing    = history.MomentRenewing
	WhenReleasing   = history.MomentReleasing
	WhenHolding     = history.MomentHolding
	WhenQueued      = history.MomentQueued
	WhenLost        = history.MomentLost
	WhenFailover    = history.MomentFailover
	WhenRequest     = history.MomentRequest
	WhenAnswer      = history.MomentAnswer
)

// Moments lists the values of Step.When.
func Moments() []string {
	return []string{WhenAcquiring, WhenUncontended, WhenRenewing, WhenReleasing, WhenHolding, WhenQueued, WhenLost, WhenFailover, WhenRequest, WhenAnswer}
}

// Catcher stops workers at their calls to the lock service.
type Catcher interface {
	// Catch makes a worker stop at its next call of a kind, for the fault with the ID. With inFlight the worker's
	// process stops while the request is in flight. Otherwise the call waits unsent until LetGo.
	Catch(worker, id string, call history.Function, inFlight bool) error
	LetGo(worker, id string) error
}

// catchesInFlight says whether a step strikes while a request is in flight. That holds for faults that stop or
// kill workers. Faults of servers and of the network are applied before the request is sent, because its answer
// would arrive first.
func (s Step) catchesInFlight() bool {
	kills := history.Does(s.Fault, history.Stops) || history.Does(s.Fault, history.Ends)
	return history.CallOf(s.When) != "" && kills && MeansWorkers(s.Target)
}

// awaitInto waits until the moment of a step has lasted for step.Into. Only for a critical section is it known
// whether the moment has ended before that; then the next one is awaited.
func (n *Nemesis) awaitInto(ctx context.Context, step Step, id string) (entry, error) {
	for {
		e, err := n.await(ctx, step, id)
		if err != nil || step.Into.IsZero() {
			return e, err
		}
		sleepUntil(ctx, time.Now().Add(step.Into.Of(n.Environment.Lease)))
		if step.When != WhenHolding || n.Environment.Watch.isInside(e.worker, e.at) {
			return e, nil
		}
	}
}

// await waits for the moment of a step, if it has one.
func (n *Nemesis) await(ctx context.Context, step Step, id string) (entry, error) {
	call := history.CallOf(step.When)
	switch {
	case step.When == "":
		return entry{}, nil
	case step.When == WhenFailover:
		return n.failover.await(ctx)
	case step.OfMessage():
		return n.awaitMessage(ctx, step, id)
	case call == "":
		return n.Environment.Watch.await(ctx, step.When, step.Of)
	case n.Environment.Calls == nil:
		return entry{}, errNoCalls
	}
	return n.catch(ctx, step, id, call)
}

var errNoCalls = errors.New("nobody can stop the workers at their calls")

// catch waits until a worker has stopped at a call. Other workers that have stopped for the same fault are
// released.
func (n *Nemesis) catch(ctx context.Context, step Step, id string, call history.Function) (entry, error) {
	asked := n.alive(step.Of)
	inFlight := step.catchesInFlight()
	n.setInFlight(id, inFlight)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // no further worker is to be caught
	waiting, while := &wait{fault: id}, ""
	if step.When == WhenUncontended {
		while = ", while nobody had the lock"
		waiting.contended = func(worker, key string) {
			n.stray(worker, id)
			if n.Environment.Watch.awaitFree(ctx, key) {
				_ = n.Environment.Calls.Catch(worker, id, call, inFlight) // a worker that has ended is not caught
			}
		}
	}
	caught, err := n.Environment.Watch.wait(ctx, waiting, func() error {
		for _, w := range asked {
			if err := n.Environment.Calls.Catch(w.Name, id, call, inFlight); err != nil {
				return err
			}
		}
		return nil
	})
	for _, w := range asked {
		if w.Name != caught.worker {
			_ = n.Environment.Calls.LetGo(w.Name, id) // a worker that has ended needs no release
		}
	}
	if err != nil {
		return entry{}, err
	}
	caught.what = fmt.Sprintf("%s was about to send its %s%s", caught.worker, call, while)
	if inFlight {
		caught.what = fmt.Sprintf("%s had stopped with its %s in flight%s", caught.worker, call, while)
		n.awaitStop(ctx, caught.worker)
	}
	return caught, nil
}

func (n *Nemesis) setInFlight(id string, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.inFlight[id] = is
}

func (n *Nemesis) isInFlight(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inFlight[id]
}

func (n *Nemesis) worker(name string) *clusters.Node {
	i := slices.IndexFunc(n.Environment.Workers, func(w *clusters.Node) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return n.Environment.Workers[i]
}

// awaitStop waits until a worker that announced its stop has stopped. A SIGCONT before that would be lost.
func (n *Nemesis) awaitStop(ctx context.Context, worker string) {
	node := n.worker(worker)
	if node == nil {
		return
	}
	_, _ = poll(ctx, func(ctx context.Context) (string, error) {
		processes, err := node.Host.Processes(ctx)
		if err == nil && !slices.ContainsFunc(processes, func(p agent.Process) bool { return p.Stopped }) {
			err = fmt.Errorf("%s has not stopped", worker)
		}
		return "", err
	})
}

// stray releases a worker that has stopped for a fault that does not wait for it, or no longer does.
func (n *Nemesis) stray(worker, id string) {
	ctx := context.Background()
	if n.isInFlight(id) {
		n.awaitStop(ctx, worker)
	}
	n.letGo(ctx, entry{worker: worker, caught: true}, id)
}

// letGo releases a worker that has stopped at a call, unless another fault keeps it stopped.
func (n *Nemesis) letGo(ctx context.Context, e entry, id string) {
	if e.holds {
		releaseMessage(ctx, n.worker(e.worker), holdID(id))
	}
	if !e.caught {
		return
	}
	_ = n.Environment.Calls.LetGo(e.worker, id) // a worker that has ended needs no release
	node := n.worker(e.worker)
	if node == nil || !n.isInFlight(id) {
		return
	}
	turn := n.turns[e.worker]
	turn <- struct{}{}
	defer func() { <-turn }()
	if n.keptStopped(e.worker) && !e.mine {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healTimeout)
	defer cancel()
	_, _ = node.Host.Signal(ctx, agent.Continue) // a killed worker has no process to continue
}

// keptStopped says whether a fault keeps a worker stopped and is not being healed.
func (n *Nemesis) keptStopped(worker string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.busy[affected{worker, history.Stops}] && !n.healing[worker]
}

// awaitContinued waits until no goroutine is about to continue the workers that a fault is about to stop. The
// fault has occupied them, so a later release sees that they are kept stopped.
func (n *Nemesis) awaitContinued(order Order) {
	if !history.Does(order.Step.Fault, history.Stops) {
		return
	}
	for _, target := range order.Targets {
		if turn := n.turns[target.Name]; turn != nil {
			turn <- struct{}{}
			<-turn
		}
	}
}

// keepsStopped says whether a fault is a pause of the worker that has stopped for it. Healing the pause then
// continues the worker.
func keepsStopped(order Order, e entry) bool {
	return e.caught && order.Step.Fault == history.Pause && hits(order, e)
}

func hits(order Order, e entry) bool {
	return slices.ContainsFunc(order.Targets, func(t *clusters.Node) bool { return t.Name == e.worker })
}

// missedReason says why a step never began when its moment did not come.
func (s Step) missedReason() string {
	switch call := history.CallOf(s.When); {
	case s.When == WhenUncontended:
		return "no acquire of a free lock was caught in time"
	case call != "" && s.catchesInFlight():
		return fmt.Sprintf("no %s was caught in flight in time", call)
	case call != "":
		return fmt.Sprintf("no %s was caught in time", call)
	}
	switch s.When {
	case WhenRequest, WhenAnswer:
		return fmt.Sprintf("no %s was seen in time", s.message())
	case WhenQueued:
		return "nobody had to wait in the queue in time"
	case WhenLost:
		return "nobody lost a lock in time"
	case WhenFailover:
		return "no failover was seen in time"
	}
	return "nobody entered the section in time"
}
