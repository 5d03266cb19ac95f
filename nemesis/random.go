package nemesis

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"lockcheck/history"
	"lockcheck/internal/spelling"
)

// ParseRequests reads a list such as "pause,clock" or "pause:one server". "none" and "" are the empty list.
func ParseRequests(text string) ([]Request, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	var requests []Request
	for _, item := range strings.Split(text, ",") {
		fault, target, _ := strings.Cut(strings.TrimSpace(item), ":")
		if _, known := KindByName(fault); !known {
			return nil, &UnknownKindError{Name: fault, meant: meantRequest(strings.TrimSpace(item), requests)}
		}
		requests = append(requests, Request{Fault: fault, Target: strings.TrimSpace(target)})
	}
	return requests, nil
}

// UnknownKindError names a fault that does not exist.
type UnknownKindError struct {
	Name  string
	meant string // the requests that the user probably meant; "" if only the spelling may be wrong
}

func (e *UnknownKindError) Error() string {
	if e.meant != "" {
		return fmt.Sprintf("unknown fault %q; write %s", e.Name, e.meant)
	}
	return (&spelling.UnknownError{What: "fault", Name: e.Name, Known: KindNames()}).Error()
}

const (
	// firstFault is how long the workers are undisturbed at the start.
	firstFault = 500 * time.Millisecond
	// randomSequence is the sequence of all steps of a random schedule. Only one fault is in force at a time,
	// so that its effects can be attributed to it.
	randomSequence = "random"
)

// Random makes a schedule from a seed. Faults come one after another, on average an interval apart, until the
// length is filled, and each request equally often. Each request occurs at least once even if there is no time
// for it. A run without a requested fault must not look like one that withstood it.
func Random(seed uint64, requests []Request, env Environment, interval, length time.Duration) (Schedule, error) {
	schedule := Schedule{Seed: seed}
	if len(requests) == 0 {
		return schedule, nil
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	spread := newSpread(seed)
	order := rng.Perm(len(requests))
	at := firstFault
	for n := 0; ; n++ {
		if n > 0 && n%len(requests) == 0 {
			order = rng.Perm(len(requests))
		}
		step := randomStep(rng, requests[order[n%len(requests)]], env)
		step.ID = fmt.Sprintf("%s-%d", step.Fault, n+1)
		step.After = Span{Plus: at.Round(time.Millisecond)}
		step.Into = spread.into(step, env)
		if n >= len(requests) && at+step.Into.Of(env.Lease)+step.For.Of(env.Lease) > length {
			break
		}
		schedule.Steps = append(schedule.Steps, step)
		at += max(step.For.Of(env.Lease), interval/2+time.Duration(rng.Int64N(int64(interval)+1)))
	}
	return schedule, schedule.Check()
}

func randomStep(rng *rand.Rand, request Request, env Environment) Step {
	kind, _ := KindByName(request.Fault)
	step := Step{Fault: request.Fault, Target: request.Target, Sequence: randomSequence}
	kind.Random(rng, env, &step)
	step.For = rounded(step.For)
	step.Step = rounded(step.Step)
	return step
}

// spread chooses how far into a hold faults of the holder strike. A lock that is wrong only after a renewal
// would pass if holders were always struck at the beginning. A run has few such faults, so each fault of a kind
// strikes a golden section of the hold further than the previous one, from a random start. Of any three
// consecutive faults one strikes in the last two fifths. The start comes from a separate random source, so that
// the seed's other choices stay the same.
type spread struct {
	rng  *rand.Rand
	next map[string]float64 // by fault: the next position, as a share of the latest one
}

func newSpread(seed uint64) spread {
	return spread{rng: rand.New(rand.NewPCG(seed, 2)), next: make(map[string]float64)}
}

// into is how far into a hold a step strikes; zero if the step waits for no hold.
func (s spread) into(step Step, env Environment) Span {
	latest := latestInto(step, env)
	if latest <= 0 {
		return Span{}
	}
	at, begun := s.next[step.Fault]
	if !begun {
		at = s.rng.Float64()
	}
	_, s.next[step.Fault] = math.Modf(at + 1/math.Phi)
	return rounded(Span{Plus: time.Duration(at * float64(latest))})
}

const (
	// strikeTime is how long a fault takes to strike after its moment, with a margin. It must still hit the
	// holder.
	strikeTime = 50 * time.Millisecond
	// strikeShare is the share of a long hold that is left as margin: one tenth.
	strikeShare = 10
)

// latestInto is the latest position in a hold at which a fault of the holder can strike; 0 or less for any
// other step. A holder that can still act is struck early enough for its lease to run out within the hold.
func latestInto(step Step, env Environment) time.Duration {
	kind, _ := KindByName(step.Fault)
	latest := env.Hold - max(strikeTime, env.Hold/strikeShare)
	switch {
	case cmp.Or(step.Target, kind.Target) != roleHolder, step.Fault == history.DelayWrite:
		return 0
	case history.Does(step.Fault, history.Stops), history.Does(step.Fault, history.Ends):
		return latest
	}
	return latest - env.Lease - env.Silence
}

// rounded rounds to ms, to keep files readable.
func rounded(s Span) Span {
	s.Plus = s.Plus.Round(time.Millisecond)
	return s
}
