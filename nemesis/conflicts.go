package nemesis

import (
	"fmt"
	"slices"

	"lockcheck/clusters"
	"lockcheck/history"
)

// affected is a node and an effect that a fault has on it at the moment.
type affected struct {
	node   string
	effect history.Effect
}

// conflict says why a fault cannot be inflicted on its targets at the moment: of
// two that do the same the first to heal would heal both, a process that is dead can
// neither be stopped nor asked for its clock, and one that is stopped cannot be asked
// either. Faults of the network are independent of all others.
func (n *Nemesis) conflict(order Order) error {
	does := func(effect history.Effect) bool { return history.Does(order.Step.Fault, effect) }
	effects := exclusive(order.Step.Fault)
	for _, target := range order.Targets {
		under := func(effect history.Effect) bool { return n.busy[affected{target.Name, effect}] }
		switch {
		case n.Environment.Watch.killed(target.Name):
			return fmt.Errorf("%s was killed", target.Name)
		case len(effects) == 0:
		case slices.ContainsFunc(effects, under):
			return fmt.Errorf("%s is under the same fault already", target.Name)
		case under(history.Ends):
			return fmt.Errorf("%s is dead at the moment", target.Name)
		case does(history.Ends) && under(history.Stops):
			return fmt.Errorf("%s is stopped and could not be continued", target.Name)
		case does(history.Steps) && under(history.Stops):
			return fmt.Errorf("%s is stopped and could not be asked for its clock", target.Name)
		case (does(history.Ends) || does(history.Stops)) && under(history.Steps):
			return fmt.Errorf("%s could not be asked for its clock", target.Name)
		}
	}
	if does(history.Ends) {
		return n.enough(order.Targets)
	}
	return nil
}

// exclusive lists the effects of a kind of fault that a node can be under from one fault
// only at a time.
func exclusive(kind string) []history.Effect {
	return slices.DeleteFunc(history.EffectsOf(kind), func(h history.Effect) bool {
		return h == history.Cuts || h == history.Disturbs
	})
}

// occupy notes, or takes back, the effects that a fault has on its targets.
func (n *Nemesis) occupy(order Order, inForce bool) {
	for _, target := range order.Targets {
		for _, effect := range exclusive(order.Step.Fault) {
			n.busy[affected{target.Name, effect}] = inForce
		}
	}
}

// enough says whether a kill leaves enough workers alive, not counting those that another
// fault is about to kill.
func (n *Nemesis) enough(targets []*clusters.Node) error {
	left, victims := 0, 0
	for _, worker := range n.Environment.Workers {
		switch {
		case slices.Contains(targets, worker) && worker.CanRestart() == nil: // it comes back
			left++
		case slices.Contains(targets, worker):
			victims++
		case !n.Environment.Watch.killed(worker.Name) && !n.busy[affected{worker.Name, history.Ends}]:
			left++
		}
	}
	if victims > 0 && left < LeastAlive {
		return errTooFewWorkers
	}
	return nil
}

// markKilled takes the workers that are about to be killed for dead. What they still
// had to say arrives later.
func (n *Nemesis) markKilled(order Order) {
	if !history.Does(order.Step.Fault, history.Ends) {
		return
	}
	for _, target := range order.Targets {
		if !n.Environment.server(target) {
			n.Environment.Watch.Forget(target.Name)
		}
	}
}

func (n *Nemesis) free(order Order) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.occupy(order, false)
	if history.Does(order.Step.Fault, history.Stops) {
		for _, target := range order.Targets {
			delete(n.healing, target.Name)
		}
	}
}

// beginHealing notes that the targets of a pause are about to be continued. Who stops at a call from then
// on is continued by nobody else.
func (n *Nemesis) beginHealing(order Order) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if history.Does(order.Step.Fault, history.Stops) {
		for _, target := range order.Targets {
			n.healing[target.Name] = true
		}
	}
}

// LeastAlive is how many workers every kill leaves alive: with fewer nobody could meet anybody.
const LeastAlive = 2
