package repros

import (
	"context"
	"os"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// logged shows the progress of a run in the log of its test.
type logged struct{ t *testing.T }

func (l logged) Step(format string, args ...any) { l.t.Logf(format, args...) }
func (logged) Status(string, ...any)             {}

// TestReproductions runs some published findings and, next to each, its control: one
// by a clock and partitions, and one that needs no Docker. All of them take hours,
// which is for make findings.
func TestReproductions(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	machine := runs.Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"}
	for _, name := range []string{"redlock-clock-jump", "fence-on-writes-only"} {
		r, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []Form{{}, {Control: true}} {
			title := r.Name
			if form.Control {
				title += " control"
			}
			t.Run(title, func(t *testing.T) {
				t.Parallel()
				var outcome runs.Outcome
				e, err := r.Experiment(form)
				if err != nil {
					t.Fatal(err)
				}
				for try := range tries(form) {
					var missed string
					outcome, missed, err = e.Run(context.Background(), machine, nil, logged{t})
					if err != nil {
						t.Fatal(err)
					}
					t.Log(outcome.Results.Sentence)
					if missed == "" {
						break
					}
					if try+1 == tries(form) {
						t.Error(missed)
					}
				}
				if err := clustertest.NothingLeft(outcome.History.Header.Run); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// tries is how often a finding is tried: a busy machine can inflict a fault too late to break
// anything. A control must hold each time.
func tries(form Form) int {
	if form.Control {
		return 1
	}
	return 3
}
