package nemesis

import (
	"context"
	"errors"
	"fmt"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// WriteDelayer delays writes on their way to the resource.
type WriteDelayer interface {
	Defer(id, worker string) error
	Deliver(id string) error
}

// delayWrite delays a write of the holder, which was sent in time, until another worker holds the lock. No
// deadline check by the client can prevent that.
type delayWrite struct {
	env     Environment
	id      string
	targets []*clusters.Node
}

func delayWriteKind() Kind {
	return Kind{
		Name: history.DelayWrite, Summary: "hold back the next write of a worker on its way to the resource",
		Target: roleHolder,
		Can: func(env Environment, node *clusters.Node) error {
			if env.server(node) {
				return errors.New("servers write nothing to the resource")
			}
			return nil
		},
		New: func(env Environment, order Order) (Fault, error) {
			if env.Writes == nil {
				return nil, errors.New("there is no resource")
			}
			return &delayWrite{env: env, id: order.ID, targets: order.Targets}, nil
		},
		Random: randomPause,
	}
}

func (d *delayWrite) Apply(context.Context) (agent.Moment, error) {
	moment := agent.Moment{From: history.Now()}
	var errs []error
	for _, target := range d.targets {
		errs = append(errs, d.env.Writes.Defer(d.id, target.Name))
	}
	moment.To = history.Now()
	return moment, errors.Join(errs...)
}

// Prove waits until the resource reports a delayed write of each target.
func (d *delayWrite) Prove(ctx context.Context) (string, error) {
	return pollEach(ctx, d.targets, func(_ context.Context, target *clusters.Node) (string, error) {
		if arrived, _ := d.env.Watch.deferred(d.id, target.Name); !arrived {
			return "", fmt.Errorf("no write of %s has arrived at the resource", target.Name)
		}
		return "the resource holds back a write of " + target.Name, nil
	})
}

func (d *delayWrite) Heal(context.Context) (Healing, error) {
	moment := agent.Moment{From: history.Now()}
	err := d.env.Writes.Deliver(d.id)
	moment.To = history.Now()
	return Healing{Moment: moment}, err
}

// ProveHealed waits until the resource has judged the delayed writes.
func (d *delayWrite) ProveHealed(ctx context.Context) (string, error) {
	return pollEach(ctx, d.targets, func(_ context.Context, target *clusters.Node) (string, error) {
		switch arrived, judged := d.env.Watch.deferred(d.id, target.Name); {
		case !arrived:
			return "no write of " + target.Name + " was held back", nil
		case judged == "":
			return "", fmt.Errorf("the write of %s was not delivered", target.Name)
		default:
			return fmt.Sprintf("the write of %s was delivered: %s", target.Name, judged), nil
		}
	})
}
