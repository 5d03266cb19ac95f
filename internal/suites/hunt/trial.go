package hunt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
	"lockcheck/nemesis"
)

// Trial is one short run: how the lock is used, and which faults occur.
type Trial struct {
	trials.Use
	Steps []Step `json:"steps,omitempty"`
	// Times is how often the only step is repeated or, without a step, how many times longer the trial is; 0
	// for once. Reproductions set it. It is never drawn.
	Times int `json:"times,omitempty"`
	// Seed decides what roles leave open, such as which worker is the waiter.
	Seed uint64 `json:"seed"`
}

// Step is one fault.
type Step struct {
	Fault  string `json:"fault"`
	Target string `json:"target"`
	From   string `json:"from,omitempty"`
	When   string `json:"when,omitempty"`
	// Nth counts messages at the moments request and answer, from 1; 0 at other moments.
	Nth int `json:"nth,omitempty"`
	// Half: the step begins half a section after its moment.
	Half bool `json:"half,omitempty"`
	// Length is how long the fault lasts, in leases.
	Length float64 `json:"length"`
	// Clock is how far a clock is moved, in leases beyond the smallest step that can be proven, or the speed
	// of the clock.
	Clock float64 `json:"clock,omitempty"`
	Order order   `json:"order,omitempty"`
}

type order string

const (
	apart  order = ""       // at its own time
	during order = "during" // while the step before it is in force
	then   order = "then"   // after the step before it is healed
)

func (t Trial) key() string {
	text, _ := json.Marshal(t) // plain values cannot fail to encode
	return string(text)
}

func (p Plan) options(t Trial) (runs.Options, error) {
	return p.subject.Options(t.Use, p.schedule(t), t.Times)
}

func (p Plan) outline(t Trial) (runs.Outline, error) {
	o, err := p.options(t)
	if err != nil {
		return runs.Outline{}, err
	}
	return runs.OutlineOf(o)
}

// sketch is the options without a time limit.
func (p Plan) sketch(t Trial) runs.Options { return p.subject.Sketch(t.Use, p.schedule(t)) }

// schedule is the schedule of faults for a trial of the lock.
func (p Plan) schedule(t Trial) nemesis.Schedule { return t.schedule(p.subject.Section(t.Use)) }

func (t Trial) schedule(section time.Duration) nemesis.Schedule {
	s := nemesis.Schedule{Seed: t.Seed, Steps: []nemesis.Step{}}
	for i, step := range t.Steps {
		n := nemesis.Step{
			ID: fmt.Sprintf("%s-%d", step.Fault, i+1), Fault: step.Fault, Target: step.Target, From: step.From,
			When: step.When, Nth: step.Nth, For: nemesis.Span{Leases: step.Length}, After: nemesis.Span{Plus: trials.FirstStep},
		}
		if step.Half {
			n.Into = nemesis.Span{Plus: (section / 2).Round(time.Millisecond)}
		}
		step.strength(&n)
		if t.Times > 1 {
			n.Every, n.Times = nemesis.Span{Leases: step.Length + 2*t.Section, Plus: trials.MomentWait}, t.Times
		}
		switch {
		case i == 0:
		case step.Order == during:
			n.Needs = []string{s.Steps[i-1].ID}
		case step.Order == then:
			before := &s.Steps[i-1]
			if before.Sequence == "" {
				before.Sequence = before.ID
			}
			n.Sequence = before.Sequence
		}
		s.Steps = append(s.Steps, n)
	}
	return s
}

func (s Step) strength(n *nemesis.Step) {
	switch s.Fault {
	case history.TransferLeader:
		n.For = nemesis.Span{} // it lasts until the new leader leads
	case history.Clock, history.ClockStrobe:
		n.Step = nemesis.Span{Leases: s.Clock, Plus: nemesis.SmallestClockStep}
		if s.Clock < 0 {
			n.Step.Plus = -nemesis.SmallestClockStep
		}
	case history.ClockRate:
		n.Speed = s.Clock
	case history.PacketLoss:
		n.Loss = 0.5
	case history.PacketDelay, history.SlowDisk:
		n.Delay = nemesis.Span{Plus: 200 * time.Millisecond}
	case history.SlowLink:
		n.Rate = 2000
	}
}

// active is the time that the steps take.
func (t Trial) active(lease time.Duration) time.Duration {
	return trials.Active(t.Use, t.schedule(0), t.Times, lease)
}

// maxLength bounds the length of a run with repeated steps.
const maxLength = 3 * time.Minute

// repeated returns the trial with its step repeated as often as rerunsFor(p) says, if there is time. A trial
// with several steps is not repeated.
func (t Trial) repeated(p float64, lease, most time.Duration) Trial {
	if t.Times = 0; len(t.Steps) > 1 {
		return t
	}
	if times := min(rerunsFor(p), int(most/t.active(lease))); times > 1 {
		t.Times = times
	}
	return t
}

// asFarAs returns the part of the trial that really happened. It drops the steps that had not begun when the
// trial ended. It also drops steps that were not exercised, unless no step was. A reproduction requires every
// step to be exercised.
func (t Trial) asFarAs(faults []checker.FaultCoverage) Trial {
	steps := t.schedule(0).Steps
	with := func(is func(checker.FaultCoverage) bool) Trial {
		part := t
		part.Steps = nil
		for i, step := range t.Steps {
			if slices.ContainsFunc(faults, func(f checker.FaultCoverage) bool { return f.Applied && steps[i].Began(f.ID) && is(f) }) {
				part.Steps = append(part.Steps, step)
			}
		}
		return part.normal()
	}
	if exercised := with(func(f checker.FaultCoverage) bool { return f.Exercised || !f.Proven }); len(exercised.Steps) > 0 {
		return exercised
	}
	return with(func(checker.FaultCoverage) bool { return true })
}

// String is, for example, "3 workers, section 0.4 leases, renewed; pause of holder while holding for 1.3
// leases".
func (t Trial) String() string {
	use := []string{fmt.Sprintf("%d workers", t.Workers), fmt.Sprintf("section %v leases", t.Section)}
	for _, option := range []struct {
		on   bool
		text string
	}{
		{t.Long, "long"}, {t.Renew, "renewed"}, {t.Check, "validity checked before the write"}, {t.Pin, "a server for each worker"},
		{t.Brief, "brief attempts"}, {t.Nodes > 0, fmt.Sprintf("%d servers", t.Nodes)},
	} {
		if option.on {
			use = append(use, option.text)
		}
	}
	steps := []string{"no fault"}
	if len(t.Steps) > 0 {
		steps = nil
	}
	for _, s := range t.Steps {
		steps = append(steps, s.String())
	}
	text := strings.Join(use, ", ") + "; " + strings.Join(steps, ", ")
	if t.Times > 1 {
		text += fmt.Sprintf(", %d times", t.Times)
	}
	return text
}

// String is, for example, "then pause of holder when holding for 1.3 leases".
func (s Step) String() string {
	text := s.Fault + " of " + s.Target
	if s.Order != apart {
		text = string(s.Order) + " " + text
	}
	if s.From != "" {
		text += " from " + s.From
	}
	switch {
	case s.Clock != 0 && s.Fault == history.ClockRate:
		text += fmt.Sprintf(" at speed %v", s.Clock)
	case s.Clock != 0:
		var n nemesis.Step
		s.strength(&n)
		text += " by " + n.Step.String()
	}
	if s.When != "" {
		text += " when " + s.When
	}
	if s.Nth > 0 {
		text += fmt.Sprintf(" %d", s.Nth)
	}
	if s.Half {
		text += " halfway through the critical section"
	}
	return text + fmt.Sprintf(" for %v leases", s.Length)
}

// role is the name under which coverage counts the fault.
func (s Step) role() string { return s.Fault + " of " + s.Target }
