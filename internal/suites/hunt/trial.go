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

// Trial is one short run: how the lock is used, and what is done to it.
type Trial struct {
	Workers int `json:"workers"`
	// Section is the time in the critical section, in leases.
	Section float64 `json:"section"`
	// Long: with a lease that outlasts the restart of a server and a failover.
	Long bool `json:"long,omitempty"`
	// Nodes is the number of servers; 0 for the usual one.
	Nodes int  `json:"nodes,omitempty"`
	Renew bool `json:"renew,omitempty"`
	Check bool `json:"check,omitempty"` // before the write
	Pin   bool `json:"pin,omitempty"`
	// Brief attempts give up waiting after half of the shortest lease, others not at all.
	Brief bool   `json:"brief,omitempty"`
	Steps []Step `json:"steps,omitempty"`
	// Times is how often its only step is made, or without any how much longer it takes; 0 for once.
	// It is for what is written down, never drawn.
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
	// Half begins when half of a section is over, with a moment that lies in one.
	Half bool `json:"half,omitempty"`
	// Length is how long it lasts, in leases.
	Length float64 `json:"length"`
	// Clock is how far a clock is moved, in leases beyond what can be proven, or how fast it runs.
	Clock float64 `json:"clock,omitempty"`
	// Order is when it begins relative to the step before.
	Order order `json:"order,omitempty"`
}

// order of a step.
type order string

const (
	apart  order = ""       // whenever its own time comes
	during order = "during" // while the one before is in force
	then   order = "then"   // after the one before is healed
)

// Times of a trial.
const (
	// firstStep is how long workers are left alone.
	firstStep = 200 * time.Millisecond
	// idle is the time of a trial without faults, at least.
	idle = 2 * time.Second
	// momentWait is how long a step may wait for its moment.
	momentWait = 2 * time.Second
)

// key tells trials apart.
func (t Trial) key() string {
	text, _ := json.Marshal(t) // of plain values: it cannot fail
	return string(text)
}

// options are those of a run that makes the trial.
func (p Plan) options(t Trial) (runs.Options, error) {
	o := p.sketch(t)
	var err error
	o.TimeLimit, err = limitOf(o, t)
	if p.info.GivesUp() && !t.Brief {
		o.Wait = o.TimeLimit // who gives up under a fault does not learn what became of the attempt
	}
	return o, err
}

// limitOf is how long a run takes that makes a trial.
func limitOf(o runs.Options, t Trial) (time.Duration, error) {
	outline, err := runs.OutlineOf(o)
	return (outline.Recovery + t.active(outline.Effective) + 99*time.Millisecond).Truncate(100 * time.Millisecond), err
}

// outline is what a trial will be.
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

// unit is what sections are measured in: for how long a silent holder keeps the lock.
func (p Plan) unit(lease time.Duration) time.Duration {
	switch {
	case lease == 0:
		return time.Second
	case p.info.Session:
		return p.info.Effective(lease, *cmp.Or(p.lockDelay(), &p.info.LockDelay))
	}
	return lease
}

// schedule of the steps, named in their order.
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

// strength says how strong a fault is, of those that can be weaker or stronger.
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

// active is the time for faults that the steps need: each waits for its moment at most as
// long as a few sections take, and those in a row wait for each other.
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

// maxLength is how long a run may take for the sake of repetitions.
const maxLength = 3 * time.Minute

// repeated is the trial with its step as often as it takes to show what it shows with a probability,
// but for doubt, and as there is time for. One of several steps is made once.
func (t Trial) repeated(p float64, lease, most time.Duration) Trial {
	if t.Times = 0; len(t.Steps) > 1 {
		return t
	}
	if times := min(rerunsFor(p), int(most/t.active(lease))); times > 1 {
		t.Times = times
	}
	return t
}

// asFarAs is the trial as far as it got: without the steps that had not begun when it ended, and without those that
// met nobody, unless none did. A reproduction asks of each step that it met somebody, which these may seldom do.
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
	if met := with(func(f checker.FaultCoverage) bool { return f.Exercised || !f.Proven }); len(met.Steps) > 0 {
		return met
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
		{t.Long, "long"}, {t.Renew, "renewed"}, {t.Check, "deadline looked at before the write"}, {t.Pin, "a server for each worker"},
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
		text += " for half of the section"
	}
	return text + fmt.Sprintf(" for %v leases", s.Length)
}

// role is what coverage tells faults apart by.
func (s Step) role() string { return s.Fault + " of " + s.Target }
