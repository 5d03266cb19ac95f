package nemesis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// messageWire is a wire on which a message comes at a time, and waits until its cut is healed.
type messageWire struct {
	*wire
	after   time.Duration // 0 for never
	refused error
	asked   agent.Cut // the cut that holds the message back
}

func (w *messageWire) Cut(ctx context.Context, cut agent.Cut) (agent.Moment, error) {
	if cut.Hold == nil {
		return w.wire.Cut(ctx, cut)
	}
	w.asked, w.cuts[cut.ID] = cut, nil
	return agent.Moment{}, w.refused
}

func (w *messageWire) AwaitHeld(ctx context.Context, _ string) (agent.Sighting, bool, error) {
	came := make(<-chan time.Time)
	if w.after > 0 {
		came = time.After(w.after)
	}
	select {
	case <-came:
		return agent.Sighting{At: history.Now(), From: w.name, To: "n1", Bytes: 9}, true, nil
	case <-ctx.Done():
		return agent.Sighting{}, false, ctx.Err()
	case <-time.After(time.Second): // as a slow agent
		w.after = max(w.after-time.Second, 0)
		return agent.Sighting{}, false, nil
	}
}

// TestMessageMoments: the fault hits the worker whose message comes first, and the messages of all workers pass when the
// fault is in force.
func TestMessageMoments(t *testing.T) {
	for _, c := range []struct {
		name     string
		step     Step
		after    map[string]time.Duration
		refused  error
		actor    string
		evidence string
	}{
		{
			name: "of any worker", step: Step{When: WhenRequest, Bytes: "DEL", Nth: 2}, after: map[string]time.Duration{"w1": 2500 * time.Millisecond, "w2": time.Second / 2},
			actor: "w2", evidence: `w2's request 2 with "DEL" was held back, 9 bytes from w2 to n1`,
		},
		{
			name: "of one worker", step: Step{When: WhenAnswer, Of: "w1"}, after: map[string]time.Duration{"w1": 2500 * time.Millisecond, "w2": time.Second / 2},
			actor: "w1", evidence: "w1's answer 1 was held back, 9 bytes from w1 to n1",
		},
		{name: "of nobody", step: Step{When: WhenRequest, Bytes: "0x00ff"}, evidence: `no request 1 with "0x00ff" was seen in time`},
		{name: "where the kernel refuses", step: Step{When: WhenRequest}, refused: errNotToday, evidence: errNotToday.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				env, wires := wired(1, 2)
				messages := make(map[string]*messageWire)
				for _, w := range env.Workers {
					messages[w.Name] = &messageWire{wire: wires[w.Name], after: c.after[w.Name], refused: c.refused}
					w.Host = messages[w.Name]
				}
				c.step.ID, c.step.Fault, c.step.Target, c.step.From = "p", history.OneWay, roleActor, roleServers
				c.step.For = Span{Plus: time.Second}
				d := &diary{t: t}
				d.nemesis(env, c.step).Run(bounded(t), plenty)
				if c.actor == "" {
					if f := d.stage("p", history.Skipped); f.Evidence != c.evidence {
						t.Errorf("skipped: %s", f.Evidence)
					}
				} else if f := d.stage("p", history.Applied); f.Actor != c.actor || !strings.HasSuffix(f.Evidence, c.evidence) {
					t.Errorf("applied: %+v", f)
				}
				for name, w := range messages {
					if len(w.cuts) > 0 {
						t.Errorf("%s has cuts left: %v", name, w.cuts)
					}
					answers := c.step.When == WhenAnswer
					if asked := w.asked; asked.Hold != nil && (asked.InboundOnly != answers || asked.Hold.Nth != max(c.step.Nth, 1)) {
						t.Errorf("%s was asked for %+v", name, asked)
					}
				}
			})
		})
	}
}

func TestCheckMessage(t *testing.T) {
	for text, step := range map[string]Step{
		"":                      {When: WhenRequest, Bytes: "0x00FF", Nth: 3},
		"bytes: goes with when": {When: WhenHolding, Bytes: "DEL"},
		"nth: goes with when":   {Nth: 1},
		"nth: must be positive": {When: WhenAnswer, Nth: -1},
		"hexadecimal digits":    {When: WhenAnswer, Bytes: "0x0"},
		"into: goes with when":  {When: WhenAnswer, Into: Span{Plus: time.Second}},
		`"answers" is unknown`:  {When: "answers"},
	} {
		step.Fault, step.Target, step.For = history.Pause, "w1", Span{Plus: time.Second}
		err := step.check()
		if (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", step, err, text)
		}
	}
	env := fiveAndThree()
	for _, w := range env.Workers {
		w.IP = ""
	}
	n := Nemesis{Environment: env}
	if err := n.lacksMoment(Step{When: WhenRequest}); !errors.Is(err, errNoTraffic) {
		t.Errorf("embedded: %v", err)
	}
}
