package nemesis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
)

// Journal keeps on disk what must be undone, from before each action until the undo was proven.
type Journal interface {
	Begin(id, undo string) error
	End(id string) error
}

// Nemesis executes a schedule.
type Nemesis struct {
	Environment Environment
	Schedule    Schedule
	Journal     Journal
	// Record appends an event to the history.
	Record func(history.Event)

	recording sync.Mutex

	mu       sync.Mutex
	rng      *rand.Rand
	busy     map[affected]bool
	healing  map[string]bool // by node: its fault is being healed, and no longer keeps it stopped
	inFlight map[string]bool // by fault ID: whether workers stop in flight for the fault
	failover *failover
	executed []Execution
	// turns has for each worker a channel with one slot, held while the worker is being continued. A fault that
	// is about to stop the worker waits for the slot. Otherwise a late SIGCONT would undo the stop.
	turns map[string]chan struct{}
	// holding tracks the goroutines that hold messages of workers back.
	holding sync.WaitGroup
}

// window is the time from the start of the workers to the end of the last fault.
type window struct {
	start time.Time
	// monotonic time of start, ns
	origin int64
	end    time.Time
}

// Run executes the schedule for the given length and returns when every fault is healed. It ends early when ctx
// is done, and still heals.
func (n *Nemesis) Run(ctx context.Context, length time.Duration) {
	n.rng = rand.New(rand.NewPCG(n.Schedule.Seed, 1))
	n.busy, n.inFlight, n.healing = make(map[affected]bool), make(map[string]bool), make(map[string]bool)
	n.turns = make(map[string]chan struct{})
	for _, worker := range n.Environment.Workers {
		n.turns[worker.Name] = make(chan struct{}, 1)
	}
	n.Environment.Watch.onStray(n.stray)
	w := window{start: time.Now(), origin: history.Now(), end: time.Now().Add(length)}
	ctx, cancel := context.WithDeadline(ctx, w.end)
	defer cancel()
	applied := make(map[string]chan struct{})
	for _, step := range n.Schedule.Steps {
		applied[step.ID] = make(chan struct{})
	}
	var all sync.WaitGroup
	if slices.ContainsFunc(n.Schedule.Steps, func(s Step) bool { return s.When == WhenFailover }) {
		n.failover = newFailover()
		following, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			n.failover.follow(following, n.Environment.Servers)
		}()
		defer func() { stop(); <-done }()
	}
	for _, sequence := range sequences(n.Schedule.Steps) {
		all.Go(func() {
			for _, step := range sequence {
				n.repeat(ctx, step, w, applied)
			}
		})
	}
	all.Wait()
	n.holding.Wait()
}

// sequences groups steps that must not be in force at the same time.
func sequences(steps []Step) [][]Step {
	var groups [][]Step
	index := make(map[string]int)
	for _, step := range steps {
		at, known := index[step.Sequence]
		if step.Sequence == "" || !known {
			index[step.Sequence] = len(groups)
			groups = append(groups, []Step{step})
			continue
		}
		groups[at] = append(groups[at], step)
	}
	return groups
}

// repeat executes a step as often as the step says.
func (n *Nemesis) repeat(ctx context.Context, step Step, w window, applied map[string]chan struct{}) {
	for _, id := range step.Needs {
		select {
		case <-applied[id]:
		case <-ctx.Done():
			n.neverBegun(step, step.ID, "step "+id+", which it needs, was never applied")
			return
		}
	}
	lease := n.Environment.Lease
	next := w.start.Add(step.After.Of(lease))
	inForce := sync.OnceFunc(func() { close(applied[step.ID]) })
	for round := 1; step.Times == 0 || round <= step.Times; round++ {
		if !sleepUntil(ctx, next) {
			if round == 1 {
				n.neverBegun(step, step.ID, "its time did not come before the run ended")
			}
			return
		}
		id := step.ID
		if !step.Every.IsZero() {
			id = fmt.Sprintf("%s.%d", step.ID, round)
		}
		begun := time.Now()
		if !n.runOnce(ctx, step, id, w, inForce) || step.Every.IsZero() {
			return
		}
		next = begun.Add(step.Every.Of(lease))
	}
}

// sleepUntil reports whether the time came before ctx was done.
func sleepUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// runOnce waits for the trigger of a step and inflicts its fault. It reports whether there may be time for another
// round.
func (n *Nemesis) runOnce(ctx context.Context, step Step, id string, w window, inForce func()) bool {
	trigger, err := n.awaitInto(ctx, step, id)
	switch {
	case err != nil && ctx.Err() != nil:
		n.neverBegun(step, id, step.missedReason())
		return false
	case err != nil:
		n.neverBegun(step, id, err.Error())
		return false
	}
	if trigger.leader, err = n.leader(ctx, step); err != nil {
		n.neverBegun(step, id, err.Error())
		n.letGo(ctx, trigger, id)
		return false
	}
	// A fault that would be cut short is not begun, because a pause that ends before the lease proves nothing.
	if time.Now().Add(step.For.Of(n.Environment.Lease)).After(w.end) {
		n.neverBegun(step, id, "it could not have lasted its time before the recovery period")
		n.letGo(ctx, trigger, id)
		return false
	}
	n.inflict(ctx, step, id, trigger, w, inForce)
	return true
}

// neverBegun records why a step did not happen.
func (n *Nemesis) neverBegun(step Step, id, why string) {
	n.report(history.Fault{ID: id, Kind: step.Fault, Role: step.Target, Moment: step.When}, history.Skipped, why)
}

// inflict takes one fault through all of its stages.
func (n *Nemesis) inflict(ctx context.Context, step Step, id string, trigger entry, w window, inForce func()) {
	lease := n.Environment.Lease
	report := history.Fault{
		ID: id, Kind: step.Fault, Role: step.Target, Step: step.Step.Of(lease).Nanoseconds(), Speed: step.Speed,
		Version: step.Version, Loss: step.Loss, Delay: step.Delay.Of(lease).Nanoseconds(), Rate: step.Rate,
		Moment: step.When, Actor: trigger.worker,
	}
	release := func() { n.letGo(ctx, trigger, id) }
	defer func() { release() }()
	order, fault, err := n.prepare(step, id, trigger)
	report.Targets, report.Peers = names(order.Targets), names(order.Peers)
	if err != nil {
		n.report(report, history.Skipped, err.Error())
		return
	}
	defer n.free(order)
	n.report(report, history.Requested, "")
	if err := n.Journal.Begin(id, fmt.Sprintf("heal %s of %s", step.Fault, describe(order.Targets))); err != nil {
		n.report(report, history.Skipped, "the undo could not be stored: "+err.Error())
		return
	}
	n.markKilled(order)
	n.awaitContinued(order)
	trigger.mine = hits(order, trigger)
	if keepsStopped(order, trigger) {
		release = func() {}
	}
	release = sync.OnceFunc(release)
	began := history.Now()
	if applied, is := n.apply(ctx, fault, report, trigger, release); is {
		inForce()
		sleepUntil(ctx, applied.Add(step.For.Of(n.Environment.Lease)))
	}
	n.beginHealing(order)
	n.heal(ctx, fault, report)
	n.addExecution(Execution{
		ID: id, Fault: step.Fault, Targets: report.Targets, Peers: report.Peers,
		At: since(w.origin, began), For: since(began, history.Now()),
	})
}

// since is the time between two readings of the monotonic clock, rounded to ms.
func since(from, to int64) Span {
	return Span{Plus: time.Duration(to - from).Round(time.Millisecond)}
}

// asks says whether a worker is waiting for an acquire and is not stopped.
func (n *Nemesis) asks(worker string) bool {
	return n.Environment.Watch.asks(worker) && !n.busy[affected{worker, history.Stops}]
}

// prepare resolves roles and makes the fault, unless a target is under a conflicting fault. Nodes are asked
// what they support without holding n.mu, because an answer may take up to applyTimeout.
func (n *Nemesis) prepare(step Step, id string, trigger entry) (Order, Fault, error) {
	order := Order{ID: id, Step: step}
	kind, known := KindByName(step.Fault)
	if !known {
		return order, nil, &UnknownKindError{Name: step.Fault}
	}
	order, err := n.reserve(order, trigger, n.choosable(step))
	if err != nil {
		return order, nil, err
	}
	for _, target := range order.Targets {
		if err := kind.Can(n.Environment, target); err != nil {
			n.free(order)
			return order, nil, err
		}
	}
	fault, err := kind.New(n.Environment, order)
	if err != nil {
		n.free(order)
	}
	return order, fault, err
}

// choosable asks beforehand which nodes support the fault, if a role of the step may mean any one of several.
func (n *Nemesis) choosable(step Step) func(*clusters.Node) error {
	can, says := n.can(step), make(map[*clusters.Node]error)
	for _, role := range []string{step.Target, step.From} {
		word, of, _ := strings.Cut(role, " ")
		nodes := n.Environment.Servers
		if of == "worker" || of == roleWorkers {
			nodes = n.Environment.Workers
		}
		for _, node := range nodes {
			if word == roleOne {
				says[node] = can(node)
			}
		}
	}
	return func(node *clusters.Node) error { return says[node] }
}

// reserve resolves roles and occupies the targets under one lock, so that one of two conflicting faults is
// refused.
func (n *Nemesis) reserve(order Order, trigger entry, can func(*clusters.Node) error) (Order, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	step := order.Step
	r := resolver{
		env: n.Environment, gone: n.Environment.Watch.killed, asks: n.asks, rng: n.rng, leader: trigger.leader, can: can,
		actor: trigger.worker, inside: n.Environment.Watch.insiders(), entered: step.When == WhenHolding,
	}
	var err error
	if order.Targets, err = r.targets(step.Target); err != nil {
		return order, err
	}
	if order.Cuts, err = r.cuts(step, order.Targets); err != nil {
		return order, err
	}
	order.Peers = peersIn(order.Cuts, order.Targets)
	if err := n.conflict(order); err != nil {
		return order, err
	}
	n.occupy(order, true)
	return order, nil
}

// apply inflicts the fault, releases the worker that has stopped for it, and proves the fault. The end of the
// run does not interrupt it. It returns from when all of the fault may be in force, and whether it may be. The
// proof runs while the fault lasts. A failed action may have been done in part, so it is recorded as applied
// and unproven.
func (n *Nemesis) apply(ctx context.Context, fault Fault, report history.Fault, trigger entry, release func()) (applied time.Time, is bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), applyTimeout)
	defer cancel()
	began := history.Now()
	moment, err := fault.Apply(ctx)
	applied = time.Now()
	release()
	report.From, report.To = moment.From, moment.To
	if err != nil {
		report.From, report.To = began, history.Now()
		n.report(report, history.Applied, "")
		n.report(report, history.Unproven, err.Error())
		return applied, false
	}
	if trigger.what != "" {
		report.Since = moment.To - trigger.at
	}
	n.report(report, history.Applied, afterTrigger(trigger, moment.To))
	report.Since = 0
	evidence, err := fault.Prove(ctx)
	if err != nil {
		n.report(report, history.Unproven, err.Error())
		return applied, true
	}
	n.report(report, history.Proven, evidence)
	return applied, true
}

// afterTrigger says how soon the fault followed its trigger.
func afterTrigger(trigger entry, applied int64) string {
	if trigger.what == "" {
		return ""
	}
	delay := time.Duration(applied - trigger.at)
	return fmt.Sprintf("%s after %s", delay.Round(10*time.Microsecond), trigger.what)
}

// applyTimeout bounds the action and its proof together.
const applyTimeout = 20 * time.Second

const (
	// healTimeout bounds one attempt to heal. A cancelled run must not cut it short, because the target would
	// stay faulty.
	healTimeout  = 10 * time.Second
	healAttempts = 3
	// provenHealedTimeout covers the restart of a server, and a little more.
	provenHealedTimeout = restartLimit + 10*time.Second
)

func (n *Nemesis) heal(ctx context.Context, fault Fault, report history.Fault) {
	ctx = context.WithoutCancel(ctx)
	healing, err := persistently(ctx, fault)
	if err != nil {
		n.report(report, history.Unhealed, err.Error())
		return
	}
	report.From, report.To, report.Dropped = healing.From, healing.To, healing.Dropped
	n.report(report, history.Healed, metText(report.Kind, healing.Dropped))
	ctx, cancel := context.WithTimeout(ctx, provenHealedTimeout)
	defer cancel()
	evidence, err := fault.ProveHealed(ctx)
	if err != nil {
		n.report(report, history.Unhealed, err.Error())
		return
	}
	if err := n.Journal.End(report.ID); err != nil {
		evidence += "; the journal could not be closed: " + err.Error()
	}
	n.report(report, history.ProvenHealed, evidence)
}

// persistently heals with several attempts if necessary. A failed attempt may have healed, so the fault is
// certainly in force only until the first attempt.
func persistently(ctx context.Context, fault Fault) (healing Healing, err error) {
	began := history.Now()
	for attempt := range healAttempts {
		to := healing.To
		healing, err = healOnce(ctx, fault)
		healing.To = max(healing.To, to)
		if attempt > 0 {
			healing.From = began
		}
		if err == nil {
			break
		}
	}
	return healing, err
}

func healOnce(ctx context.Context, fault Fault) (Healing, error) {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	return fault.Heal(ctx)
}

func metText(kind string, dropped *int64) string {
	switch {
	case dropped == nil:
		return ""
	case kind == history.PacketDelay, kind == history.SlowLink:
		return fmt.Sprintf("%d packets held back", *dropped)
	case kind == history.DNSFailure:
		return several(*dropped, "packet") + " to name servers"
	case kind == history.DiskFull:
		return several(*dropped, "write") + " of servers failed with ENOSPC"
	case kind == history.FsyncError:
		return several(*dropped, "sync") + " of servers failed with EIO"
	case kind == history.SlowDisk:
		return several(*dropped, "operation") + " on disks held back"
	}
	return fmt.Sprintf("%d packets dropped", *dropped)
}

// report stamps and records an event under one lock. Faults of different sequences report concurrently, and
// times in a history never go back.
func (n *Nemesis) report(f history.Fault, stage history.Stage, evidence string) {
	f.Stage, f.Evidence = stage, evidence
	n.recording.Lock()
	defer n.recording.Unlock()
	n.Record(history.Event{
		Time: history.Now(), Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Fault: &f,
	})
}

func (n *Nemesis) addExecution(e Execution) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.executed = append(n.executed, e)
}

// Executed returns the schedule together with its executed faults.
func (n *Nemesis) Executed() Schedule {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.Schedule
	s.Executed = slices.Clone(n.executed)
	return s
}
