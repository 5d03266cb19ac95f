package nemesis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockcheck/clusters"
	"lockcheck/history"
)

// hopeless returns why a supported step would be skipped in every run, however its roles are resolved; nil if
// some run can execute it. A run with a hopeless step would end undecided.
func (n *Nemesis) hopeless(step Step) error {
	workers := n.Environment.Workers
	kind, _ := KindByName(step.Fault)
	r := resolver{env: n.Environment, rng: n.anyOrder()}
	if step.Version != "" {
		if err := n.canUpgrade(step.Version); err != nil {
			return wrong("version", "%w", err)
		}
	}
	switch {
	case step.Of != "" && n.worker(step.Of) == nil:
		return wrong("of", "there is no worker %q (the workers are %s)", step.Of, describe(workers))
	case step.Target == roleWaiter && len(workers) < 2:
		return wrong("target", "a waiter needs another worker that holds the lock; run at least two workers (--concurrency)")
	case step.Target == roleFollower && len(n.Environment.leading()) < 2:
		return wrong("target", "a follower needs a leader beside it; run at least three servers (--nodes)")
	case kind.uses(UsesStep) && step.Step.Of(n.Environment.Lease).Abs() < SmallestClockStep:
		return wrong("step", "%s is too small to be proven; move the clock by %s or more, forward or back", step.Step.Of(n.Environment.Lease), SmallestClockStep)
	case kind.uses(UsesFrom) && step.From != "" && r.nobodyElse(step):
		return wrong("from", "the targets (%s) include all of %s, and nobody is cut off from itself; name others, or leave out from", step.Target, step.From)
	case history.Does(step.Fault, history.Ends) && !slices.ContainsFunc(workers, func(w *clusters.Node) bool { return w.CanRestart() == nil }):
		return r.wouldKillTooMany(step) // replicas of an application are restarted
	}
	return nil
}

// canUpgrade says why the servers cannot be started in a version.
func (n *Nemesis) canUpgrade(version string) error {
	for _, server := range n.Environment.Servers {
		if err := server.CanUpgrade(version); err != nil {
			return err
		}
	}
	return nil
}

// nobodyElse says that every possible peer of a step is also a target.
func (r resolver) nobodyElse(step Step) bool {
	target, from := step.meant(step.Target), step.meant(step.From)
	if single := []string{roleHolder, roleActor, roleLeader}; target == from && slices.Contains(single, target) {
		return true
	}
	peers, err := r.anyOf(from)
	return err == nil && len(without(peers, r.certain(target))) == 0
}

// meant replaces a role by the worker that it must resolve to in a step that waits for a moment of a worker.
func (s Step) meant(role string) string {
	if role == roleHolder && s.When == WhenHolding {
		role = roleActor
	}
	if role == roleActor && s.Of != "" {
		return s.Of
	}
	return role
}

// certain lists the nodes that are targets in every run.
func (r resolver) certain(target string) []*clusters.Node {
	all := []string{roleServers, roleWorkers, roleRing, roleBridge, roleAll, "all server", "all servers", "all worker", "all workers"}
	if !slices.Contains(all, target) && !namesPattern.MatchString(target) {
		return nil
	}
	nodes, err := r.targets(target)
	if err != nil {
		return nil
	}
	return nodes
}

// errTooFewWorkers is why a kill spares its targets.
var errTooFewWorkers = errors.New("too few workers would be left alive")

// wouldKillTooMany returns an error if a step would leave too few workers alive.
func (r resolver) wouldKillTooMany(step Step) error {
	victims := 0
	switch step.Target {
	case roleHolder, roleActor, roleWaiter:
		victims = 1
	default:
		nodes, err := r.anyOf(step.Target)
		if err != nil {
			return err
		}
		victims = len(without(nodes, r.env.Servers))
	}
	workers := len(r.env.Workers)
	if victims == 0 || workers-victims >= LeastAlive {
		return nil
	}
	word, of, _ := strings.Cut(step.Target, " ")
	enough := victims + LeastAlive
	switch {
	case step.Target == roleWorkers, word == roleAll && of != "":
		return advised("target", "; "+r.killable(), "%w: %q would kill every worker, and at least %d must stay alive", errTooFewWorkers, step.Target, LeastAlive)
	case word == roleMajority: // a majority grows with the number of workers
		enough = 2*LeastAlive + 1
	}
	return wrong("target", "%w: this would kill %d of %d workers, and at least %d must stay alive; kill fewer, or run at least %d workers (--concurrency)",
		errTooFewWorkers, victims, workers, LeastAlive, enough)
}

// killable suggests a target that leaves enough workers alive.
func (r resolver) killable() string {
	most := len(r.env.Workers) - LeastAlive
	if most <= 0 {
		return fmt.Sprintf("run at least %d workers (--concurrency), and write target: w1", 1+LeastAlive)
	}
	return "write target: " + strings.ReplaceAll(describe(r.env.Workers[:most]), ", ", ",")
}
