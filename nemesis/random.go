package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"lockcheck/internal/spelling"
)

// Request asks for a kind of fault in a random schedule.
type Request struct {
	Fault  string
	Target string // "" for what the kind prefers
}

// ParseRequests reads a list as in "pause,clock" or "pause:one server". "none"
// and "" are the empty list.
func ParseRequests(text string) ([]Request, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	var requests []Request
	for _, item := range strings.Split(text, ",") {
		fault, target, _ := strings.Cut(strings.TrimSpace(item), ":")
		if _, known := KindByName(fault); !known {
			return nil, &UnknownKindError{Name: fault}
		}
		requests = append(requests, Request{Fault: fault, Target: strings.TrimSpace(target)})
	}
	return requests, nil
}

// UnknownKindError names a fault that there is not.
type UnknownKindError struct{ Name string }

func (e *UnknownKindError) Error() string {
	return (&spelling.UnknownError{What: "fault", Name: e.Name, Known: KindNames()}).Error()
}

const (
	// firstFault is how long the workers are left alone at the start.
	firstFault = 500 * time.Millisecond
	// randomSequence holds all steps of a random schedule: one fault at a time, so
	// that what happened can be attributed to it.
	randomSequence = "random"
)

// Random makes a schedule from a seed: one fault after another, each of the
// requests equally often, an interval apart on average, until the length is filled.
// Each request is in it at least once even if there is no time for it: a run without
// a fault that was asked for must not look like one that withstood it.
func Random(seed uint64, requests []Request, env Environment, interval, length time.Duration) (Schedule, error) {
	schedule := Schedule{Seed: seed}
	if len(requests) == 0 {
		return schedule, nil
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	order := rng.Perm(len(requests))
	at := firstFault
	for n := 0; ; n++ {
		if n > 0 && n%len(requests) == 0 {
			order = rng.Perm(len(requests))
		}
		step := randomStep(rng, requests[order[n%len(requests)]], env)
		step.ID = fmt.Sprintf("%s-%d", step.Fault, n+1)
		step.After = Span{Plus: at.Round(time.Millisecond)}
		if n >= len(requests) && at+step.For.Of(env.Lease) > length {
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

// rounded keeps files readable.
func rounded(s Span) Span {
	s.Plus = s.Plus.Round(time.Millisecond)
	return s
}
