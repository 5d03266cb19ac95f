package nemesis

import (
	"context"
	"errors"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// wipe is a kill of servers that also lose their disk. They return as new servers.
type wipe struct{ kill }

func wipeKind() Kind {
	return Kind{
		Name: history.Wipe, Summary: "end all processes of a server (SIGKILL), and start it again with an empty disk",
		Target: roleOne, Momentary: true,
		Can: func(env Environment, node *clusters.Node) error {
			if !env.server(node) {
				return errors.New("a worker's disk cannot be emptied; name a server")
			}
			return node.CanWipe()
		},
		New: func(env Environment, order Order) (Fault, error) {
			return &wipe{kill{env: env, targets: order.Targets}}, nil
		},
		Random: randomKill,
	}
}

func (w *wipe) Apply(ctx context.Context) (agent.Moment, error) {
	moment, err := w.kill.Apply(ctx)
	if err != nil {
		return moment, err
	}
	// The processes are dead and write no more.
	if _, err := w.kill.Prove(ctx); err != nil {
		return moment, err
	}
	wiped, err := eachNode(w.targets, func(node *clusters.Node) (agent.Moment, error) { return node.Wipe(ctx) })
	return agent.Moment{From: moment.From, To: wiped.To}, err
}

// Prove shows that no process and no file is left on the targets.
func (w *wipe) Prove(ctx context.Context) (string, error) {
	dead, err := w.kill.Prove(ctx)
	if err != nil {
		return "", err
	}
	for _, node := range w.targets {
		if err := node.Wiped(ctx); err != nil {
			return "", err
		}
	}
	return dead + "; nothing is on disk", nil
}
