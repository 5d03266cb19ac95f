package nemesis

import (
	"fmt"
	"slices"

	"lockcheck/clusters"
	"lockcheck/history"
)

// affected is a node with an effect of a fault in force on it.
type affected struct {
	node   string
	effect history.Effect
}

// conflict returns why a fault cannot be inflicted on its targets now. Of two faults with the same effect, the
// first to heal would heal both. A dead process can neither be stopped nor asked for its clock, and a stopped
// one cannot be asked either. A restart would end the fault of a disk, and a stopped disk could not be mended. Network
// faults conflict with no other.
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
		case does(history.Impairs) && under(history.Stops):
			return fmt.Errorf("%s is stopped, so its disk could not be mended", target.Name)
		case (does(history.Ends) || does(history.Stops)) && under(history.Impairs):
			return fmt.Errorf("the disk of %s is faulty", target.Name)
		case does(history.Deposes) && under(history.Stops):
			return fmt.Errorf("%s is stopped and could not be asked to hand over", target.Name)
		case (does(history.Ends) || does(history.Stops)) && under(history.Steps):
			return fmt.Errorf("%s could not be asked for its clock", target.Name)
		}
	}
	if does(history.Removes) {
		for _, server := range n.Environment.Servers {
			if n.busy[affected{server.Name, history.Removes}] {
				return fmt.Errorf("%s is already removed from the cluster; only one server may be removed at a time", server.Name)
			}
		}
	}
	if does(history.Ends) {
		return n.checkEnoughLeft(order.Targets)
	}
	return nil
}

// exclusive lists the effects of a kind of fault that only one fault at a time may have on a node.
func exclusive(kind string) []history.Effect {
	return slices.DeleteFunc(history.EffectsOf(kind), func(h history.Effect) bool {
		return h == history.Cuts || h == history.Disturbs
	})
}

// occupy sets or clears the effects of a fault on its targets.
func (n *Nemesis) occupy(order Order, inForce bool) {
	for _, target := range order.Targets {
		for _, effect := range exclusive(order.Step.Fault) {
			n.busy[affected{target.Name, effect}] = inForce
		}
	}
}

// checkEnoughLeft returns an error if a kill leaves too few workers alive. Workers that another fault is about to kill
// do not count as alive.
func (n *Nemesis) checkEnoughLeft(targets []*clusters.Node) error {
	left, victims := 0, 0
	for _, worker := range n.Environment.Workers {
		switch {
		case slices.Contains(targets, worker) && worker.CanRestart() == nil: // it is restarted
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

// markKilled marks workers as killed before the kill. Their last events may still arrive later.
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

// beginHealing marks the targets of a pause as about to be continued. From then on the pause itself continues a
// worker that stops at a call, and no other fault does.
func (n *Nemesis) beginHealing(order Order) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if history.Does(order.Step.Fault, history.Stops) {
		for _, target := range order.Targets {
			n.healing[target.Name] = true
		}
	}
}

// LeastAlive is how many workers every kill leaves alive. With fewer, no two workers could compete.
const LeastAlive = 2
