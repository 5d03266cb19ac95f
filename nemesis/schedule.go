package nemesis

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/spelling"
	"lockcheck/internal/yamlfile"
)

// Schedule says which faults are inflicted, on which nodes and when.
type Schedule struct {
	// Seed determines everything that a role leaves open.
	Seed  uint64 `yaml:"seed"`
	Steps []Step `yaml:"steps"`
	// Executed has the faults as they were inflicted, stored with a run. ReadSchedule drops it.
	Executed []Execution `yaml:"executed,omitempty"`
}

// Step is one fault, or a series of equal faults.
type Step struct {
	ID     string `yaml:"id,omitempty"` // by default the name of the fault and a number
	Fault  string `yaml:"fault"`
	Target string `yaml:"target,omitempty"` // role or names; see resolver.targets
	// From is what a network fault separates the targets from. By default servers are separated from all
	// workers, and workers from all servers.
	From string `yaml:"from,omitempty"`
	// For is how long the fault lasts. For a kill it is how long a server stays dead, and may be zero.
	For Span `yaml:"for,omitempty"`
	// Step is how far a clock is moved.
	Step Span `yaml:"step,omitempty"`
	// Speed is the speed of a clock, in seconds of the clock per second.
	Speed float64 `yaml:"speed,omitempty"`
	// Loss is the share of dropped packets, between 0 and 1.
	Loss float64 `yaml:"loss,omitempty"`
	// Delay is how long each packet is held back, with a jitter of a quarter, or each write and sync of a disk.
	Delay Span `yaml:"delay,omitempty"`
	// Rate limits each direction, in bytes a second.
	Rate int64 `yaml:"rate,omitempty"`

	// Version is that in which a server is started again; "" for the same.
	Version string `yaml:"version,omitempty"`

	// After is the earliest time, counted from the start of the workers.
	After Span `yaml:"after,omitempty"`
	// When waits for a moment, one of the When constants. All except WhenFailover are moments of a worker: the
	// worker Of, or any.
	When string `yaml:"when,omitempty"`
	Of   string `yaml:"of,omitempty"`
	// Bytes and Nth describe the message for which the moments request and answer wait. Bytes is what it contains: text,
	// or 0x and hexadecimal digits; "" for any. Nth counts such messages of a worker since the step began to wait; 0 for
	// the first.
	Bytes string `yaml:"bytes,omitempty"`
	Nth   int    `yaml:"nth,omitempty"`
	// Into is how long the moment must have lasted. A call in flight has no duration.
	Into Span `yaml:"into,omitempty"`
	// Needs lists earlier steps that must have been applied before this step waits for its time.
	Needs []string `yaml:"needs,omitempty"`
	// Sequence names steps that are never in force together: each waits until the previous one of the same name
	// is healed.
	Sequence string `yaml:"sequence,omitempty"`
	// Lane is the name of Sequence in files of earlier versions; ReadSchedule moves it to Sequence.
	Lane string `yaml:"lane,omitempty"`
	// Every repeats the step, measured from start to start; 0 for a single fault.
	Every Span `yaml:"every,omitempty"`
	// Times bounds the repetitions; 0 for as many as there is time for.
	Times int `yaml:"times,omitempty"`
}

// Execution is one fault as it was inflicted.
type Execution struct {
	ID      string   `yaml:"id"`
	Fault   string   `yaml:"fault"`
	Targets []string `yaml:"targets,flow"`
	Peers   []string `yaml:"peers,flow,omitempty"`
	At      Span     `yaml:"at"`  // from the start of the workers
	For     Span     `yaml:"for"` // until it was healed
}

// ReadSchedule reads a schedule as YAML. Its errors name the line.
func ReadSchedule(r io.Reader) (Schedule, error) {
	var schedule Schedule
	file, err := yamlfile.Parse(r, &schedule)
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule: %w", err)
	}
	if schedule.Steps == nil {
		return Schedule{}, errors.New("schedule: it has no steps; write steps: and a list of faults below it, or steps: [] for none")
	}
	schedule.Executed = nil
	for i := range schedule.Steps {
		step := &schedule.Steps[i]
		step.Sequence, step.Lane = cmp.Or(step.Sequence, step.Lane), ""
	}
	var step *StepError
	if err := schedule.Check(); errors.As(err, &step) {
		return schedule, file.At(err, "steps", step.Index)
	} else if err != nil {
		return schedule, err
	}
	return schedule, nil
}

// Fixed resolves all lengths for a lock with the lease, so that a lock with another lease gets the same faults.
func (s Schedule) Fixed(lease time.Duration) Schedule {
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		step := &s.Steps[i]
		for _, span := range []*Span{&step.For, &step.Step, &step.Delay, &step.After, &step.Into, &step.Every} {
			*span = Span{Plus: span.Of(lease)}
		}
	}
	return s
}

// Write stores the schedule as YAML.
func (s Schedule) Write(w io.Writer) error { return yamlfile.Write(w, s) }

// StepError says what is wrong with a step.
type StepError struct {
	Index int // from 0
	Step  string
	Err   error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %q: %v", e.Step, e.Err) }
func (e *StepError) Unwrap() error { return e.Err }

// Check names the steps without an ID, and validates all steps.
func (s *Schedule) Check() error {
	known := make(map[string]bool)
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.ID == "" {
			step.ID = fmt.Sprintf("%s-%d", step.Fault, i+1)
		}
		if known[step.ID] {
			return fmt.Errorf("schedule: %w", &StepError{i, step.ID, wrong("id", "another step has it; give each step its own")})
		}
		for _, id := range step.Needs {
			// Only earlier steps: steps that need each other would never begin.
			if !known[id] {
				return fmt.Errorf("schedule: %w", &StepError{i, step.ID, wrong("needs", "%q is no step before it; name the id of an earlier step", id)})
			}
		}
		known[step.ID] = true
		if err := step.check(); err != nil {
			return fmt.Errorf("schedule: %w", &StepError{i, step.ID, err})
		}
	}
	return nil
}

func (s *Step) check() error {
	kind, known := KindByName(s.Fault)
	if !known {
		return &yamlfile.FieldError{Field: "fault", Err: &UnknownKindError{Name: s.Fault}}
	}
	if s.Target == "" {
		s.Target = kind.Target
		if s.Target == roleHolder && s.ofWorker() && s.When != WhenHolding {
			s.Target = roleActor
		}
	}
	if s.Target == roleHolder && s.When == "" {
		s.When = WhenHolding
	}
	switch {
	case strings.ContainsAny(s.ID, " \t\n?"):
		return wrong("id", "%q must be one word without a question mark, as in pause-1", s.ID)
	case s.When != "" && !slices.Contains(Moments(), s.When):
		return wrong("when", "%q is unknown (there are %s)%s", s.When, strings.Join(Moments(), ", "), spelling.Hint(s.When, Moments()))
	case s.Of != "" && !s.ofWorker():
		return wrong("of", "goes with when:, and the moment of a worker; add when: holding, or leave of out")
	case !s.Into.IsZero() && (s.When == "" || s.OfMessage() || history.CallOf(s.When) != ""):
		return wrong("into", "goes with when: holding, queued, lost or failover; add one, or leave into out")
	case (s.Target == roleActor || s.From == roleActor) && !s.ofWorker():
		return advised("target", "; add when: acquiring, for example, or write holder", "%s is the worker whose moment a step waits for", roleActor)
	case !s.Into.IsZero() && s.Into.neverPositive():
		return wrong("into", "must not be negative")
	case s.For.neverPositive() && !(kind.Momentary && s.For.IsZero()):
		return wrong("for", "must be positive; say how long the fault lasts, as in for: 3s or for: lease+1s")
	case !s.Every.IsZero() && s.Every.neverPositive():
		return wrong("every", "must not be negative")
	case !s.After.IsZero() && s.After.neverPositive():
		return wrong("after", "must not be negative")
	case s.Times < 0:
		return wrong("times", "must not be negative")
	case s.Times != 0 && s.Every.IsZero():
		return wrong("times", "goes with every:; add it, as in every: 5s, or leave times out")
	case kind.uses(UsesStep) && s.Step.IsZero():
		return wrong("step", "a clock must be moved by some time, as in step: 10s or step: -10s")
	case !kind.uses(UsesStep) && !s.Step.IsZero():
		return wrong("step", "only faults that move a clock have it; leave it out")
	case !kind.uses(UsesFrom) && s.From != "":
		return wrong("from", "only faults between nodes, such as partition, have it; leave it out")
	case shape(s.Target) && !kind.uses(UsesFrom):
		return advised("target", "; write holder, one or n1", "%s is only for faults between nodes, such as partition", s.Target)
	case !canMean(s.Target):
		return unknownTarget("target", s.Target)
	case s.From != "" && !canMean(s.From):
		return unknownTarget("from", s.From)
	}
	if s.Version != "" && !kind.uses(UsesVersion) {
		return wrong("version", "only for %s", history.Restart)
	}
	if err := s.checkSpeed(kind); err != nil {
		return err
	}
	if err := s.checkPackets(kind); err != nil {
		return err
	}
	if err := s.checkMessage(); err != nil {
		return err
	}
	if s.Fault == history.RemoveMember && !meansOne(s.Target) {
		return advised("target", "; write one, leader, follower or n1", "one server at a time is removed from its cluster")
	}
	return s.checkTransfer()
}

// unknownTarget is the error of a field that names no target.
func unknownTarget(field, target string) error {
	return advised(field, spelling.Hint(target, roles()), "%q is neither a role nor the name of a node", target)
}

// ofWorker says whether the step waits for a moment of a worker.
func (s Step) ofWorker() bool { return s.When != "" && s.When != WhenFailover }

// advised is an error about a field of a step, with advice on what to write in a schedule.
func advised(field, advice, format string, args ...any) error {
	return &yamlfile.FieldError{Field: field, Err: &advisedError{fmt.Errorf(format, args...), advice}}
}

// wrong is an error about a field of a step.
func wrong(field, format string, args ...any) error {
	return &yamlfile.FieldError{Field: field, Err: fmt.Errorf(format, args...)}
}

// fits returns which length of the step makes no sense for the lease of the lock.
func (s Step) fits(lease time.Duration) error {
	if lasts := s.For.Of(lease); lasts <= 0 && !s.For.IsZero() {
		return fmt.Errorf("for: %s is %s for this lock; it must be positive", s.For, lasts)
	}
	if after := s.After.Of(lease); after < 0 {
		return fmt.Errorf("after: %s is %s for this lock; it must not be negative", s.After, after)
	}
	if into := s.Into.Of(lease); into < 0 {
		return fmt.Errorf("into: %s is %s for this lock; it must not be negative", s.Into, into)
	}
	if every := s.Every.Of(lease); !s.Every.IsZero() && every <= 0 {
		return fmt.Errorf("every: %s is %s for this lock; it must be positive", s.Every, every)
	}
	longest := maxDelay
	if s.Fault == history.SlowDisk {
		longest = maxDiskDelay
	}
	if delay := s.Delay.Of(lease); !s.Delay.IsZero() && (delay < minDelay || delay > longest) {
		return fmt.Errorf("delay: %s is %s for this lock; it must be %s to %s", s.Delay, delay, minDelay, longest)
	}
	return nil
}

// Began says whether a fault with this ID came from the step. The faults of a repeated step are numbered.
func (s Step) Began(fault string) bool {
	rest, is := strings.CutPrefix(fault, s.ID)
	if !is || rest == "" || s.Every.IsZero() {
		return is && rest == ""
	}
	round, numbered := strings.CutPrefix(rest, ".")
	_, err := strconv.Atoi(round)
	return numbered && err == nil
}

// Faults lists the kinds of faults in the schedule, sorted.
func (s Schedule) Faults() []string {
	var kinds []string
	for _, step := range s.Steps {
		kinds = append(kinds, step.Fault)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// OnDisks says whether the servers must run on disks of package disk.
func (s Schedule) OnDisks() bool {
	return slices.ContainsFunc(s.Steps, func(step Step) bool {
		kind, _ := KindByName(step.Fault)
		return kind.OnDisk
	})
}

// Versions lists the versions in which servers are started again, sorted.
func (s Schedule) Versions() []string {
	var all []string
	for _, step := range s.Steps {
		if step.Version != "" {
			all = append(all, step.Version)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Least is the minimum time that the schedule needs, and the kind of fault that determines it. One fault of
// each kind must last as long as its step says. Steps that wait for an event need more. Least is "" and 0 for a
// schedule without steps.
func (s Schedule) Least(lease time.Duration) (fault string, least time.Duration) {
	earliest := make(map[string]time.Duration)
	for _, step := range s.Steps {
		end := step.After.Of(lease) + step.Into.Of(lease) + step.For.Of(lease)
		if before, known := earliest[step.Fault]; !known || end < before {
			earliest[step.Fault] = end
		}
	}
	for _, kind := range s.Faults() {
		if end := earliest[kind]; end > least {
			fault, least = kind, end
		}
	}
	return fault, least
}

// Without returns the schedule without some of its steps. Other steps no longer need them.
func (s Schedule) Without(ids ...string) Schedule {
	var steps []Step
	for _, step := range s.Steps {
		if slices.Contains(ids, step.ID) {
			continue
		}
		step.Needs = slices.DeleteFunc(slices.Clone(step.Needs), func(id string) bool {
			return slices.Contains(ids, id)
		})
		steps = append(steps, step)
	}
	s.Steps = steps
	return s
}
