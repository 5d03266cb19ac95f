package hunt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// Trial is one short run: how the lock is used, and the faults.
type Trial struct {
	Workers int `json:"workers"`
	// Section is the time in the critical section, in leases.
	Section float64 `json:"section"`
	// Long: the lease outlasts the restart of a server and a failover.
	Long bool `json:"long,omitempty"`
	// Nodes is the number of servers; 0 for the usual one.
	Nodes int  `json:"nodes,omitempty"`
	Renew bool `json:"renew,omitempty"`
	Check bool `json:"check,omitempty"` // before the write
	Pin   bool `json:"pin,omitempty"`
	// Brief: attempts give up after half of the shortest lease, otherwise never.
	Brief bool   `json:"brief,omitempty"`
	Steps []Step `json:"steps,omitempty"`
	// Times is how often the only step is made, or, without a step, how many times longer the trial is; 0 for once. It is
	// for reproductions, never drawn.
	Times int `json:"times,omitempty"`
	// Seed decides what roles leave open.
	Seed uint64 `json:"seed"`
}

// Step is one fault.
type Step struct {
	Fault  string `json:"fault"`
	Target string `json:"target"`
	From   string `json:"from,omitempty"`
	When   string `json:"when,omitempty"`
	// Half: the step begins half a section after its moment.
	Half bool `json:"half,omitempty"`
	// Length is how long it lasts, in leases.
	Length float64 `json:"length"`
	// Clock is how far a clock is moved, in leases beyond the smallest provable step, or how fast it runs.
	Clock float64 `json:"clock,omitempty"`
	Order order   `json:"order,omitempty"`
}

type order string

const (
	apart  order = ""       // whenever its own time comes
	during order = "during" // while the one before is in force
	then   order = "then"   // after the one before is healed
)

// Times of a trial.
const (
	// firstStep is how long workers run before the first fault.
	firstStep = 200 * time.Millisecond
	// idle is the least length of a trial without faults.
	idle = 2 * time.Second
	// momentWait is how long a step may wait for its moment.
	momentWait = 2 * time.Second
)

func (t Trial) key() string {
	text, _ := json.Marshal(t) // of plain values: it cannot fail
	return string(text)
}

func (p Plan) options(t Trial) (runs.Options, error) {
	o := p.sketch(t)
	var err error
	o.TimeLimit, err = limitOf(o, t)
	if p.info.GivesUp() && !t.Brief {
		o.Wait = o.TimeLimit // an attempt that is given up under a fault hides its outcome
	}
	return o, err
}

func limitOf(o runs.Options, t Trial) (time.Duration, error) {
	outline, err := runs.OutlineOf(o)
	return (outline.Recovery + t.active(outline.Effective) + 99*time.Millisecond).Truncate(100 * time.Millisecond), err
}

func (p Plan) outline(t Trial) (runs.Outline, error) {
	o, err := p.options(t)
	if err != nil {
		return runs.Outline{}, err
	}
	return runs.OutlineOf(o)
}

// sketch are the options without a time limit.
func (p Plan) sketch(t Trial) runs.Options {
	lease := p.lease()
	if t.Long {
		lease = p.longLease()
	}
	section := time.Duration(t.Section * float64(p.unit(lease))).Round(time.Millisecond)
	o := runs.Options{
		Lock: p.Lock, ServerVersion: p.Version, Nodes: cmp.Or(t.Nodes, p.Nodes), Pin: t.Pin,
		Workload: history.WorkloadSet, Guard: string(workloads.NoGuard), Concurrency: t.Workers, EndEarly: true, MinOps: 1,
		Use: workloads.Use{
			TTL: lease, LockDelay: p.lockDelay(), Section: workloads.Range{Min: section, Max: section}, Renew: t.Renew, CheckBeforeWrite: t.Check,
		},
		Seed: t.Seed,
	}
	if t.Brief {
		o.Wait = p.unit(p.lease()) / 2
	}
	schedule := t.schedule(section)
	o.Schedule = &schedule
	return o
}

// unit is for how long a silent holder keeps the lock. Sections are measured in it.
func (p Plan) unit(lease time.Duration) time.Duration {
	switch {
	case lease == 0:
		return time.Second
	case p.info.Session:
		return p.info.Effective(lease, *cmp.Or(p.lockDelay(), &p.info.LockDelay))
	}
	return lease
}

func (t Trial) schedule(section time.Duration) nemesis.Schedule {
	s := nemesis.Schedule{Seed: t.Seed, Steps: []nemesis.Step{}}
	for i, step := range t.Steps {
		n := nemesis.Step{
			ID: fmt.Sprintf("%s-%d", step.Fault, i+1), Fault: step.Fault, Target: step.Target, From: step.From,
			When: step.When, For: nemesis.Span{Leases: step.Length}, After: nemesis.Span{Plus: firstStep},
		}
		if step.Half {
			n.Into = nemesis.Span{Plus: (section / 2).Round(time.Millisecond)}
		}
		step.strength(&n)
		if t.Times > 1 {
			n.Every, n.Times = nemesis.Span{Leases: step.Length + 2*t.Section, Plus: momentWait}, t.Times
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
	case history.Clock, history.ClockStrobe:
		n.Step = nemesis.Span{Leases: s.Clock, Plus: nemesis.SmallestClockStep}
		if s.Clock < 0 {
			n.Step.Plus = -nemesis.SmallestClockStep
		}
	case history.ClockRate:
		n.Speed = s.Clock
	case history.PacketLoss:
		n.Loss = 0.5
	case history.PacketDelay:
		n.Delay = nemesis.Span{Plus: 200 * time.Millisecond}
	case history.SlowLink:
		n.Rate = 2000
	}
}

// active is the time that the steps need if each waits for its moment and for the step before.
func (t Trial) active(lease time.Duration) time.Duration {
	if lease == 0 {
		lease = time.Second
	}
	of := func(leases float64) time.Duration { return time.Duration(leases * float64(lease)) }
	times := time.Duration(max(1, t.Times))
	if len(t.Steps) == 0 {
		return times * max(idle, 4*of(t.Section), 2*lease)
	}
	total := firstStep
	for _, s := range t.Steps {
		total += times * (of(s.Length) + 2*of(t.Section) + momentWait)
	}
	return total
}

// maxLength bounds the length of a run with repeated steps.
const maxLength = 3 * time.Minute

// repeated is the trial with its step as often as rerunsFor the probability says and as there is time for. A trial with
// several steps is not repeated.
func (t Trial) repeated(p float64, lease, most time.Duration) Trial {
	if t.Times = 0; len(t.Steps) > 1 {
		return t
	}
	if times := min(rerunsFor(p), int(most/t.active(lease))); times > 1 {
		t.Times = times
	}
	return t
}

// asFarAs is the trial as far as it got: without the steps that had not begun when it ended, and without those that were
// not exercised, unless none was. A reproduction requires every step to be exercised.
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

// String is such as "3 workers, section 0.4 leases, renewed; pause of holder while holding for 1.3 leases".
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

// String is such as "then pause of holder, while holding, for 1.3 leases".
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
	if s.Half {
		text += " halfway through the critical section"
	}
	return text + fmt.Sprintf(" for %v leases", s.Length)
}

// role is what coverage tells faults apart by.
func (s Step) role() string { return s.Fault + " of " + s.Target }
