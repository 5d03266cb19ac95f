package nemesis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Wish is a kind of fault that a random schedule shall contain.
type Wish struct {
	Fault  string
	Target string // "" for what the kind prefers
}

// ParseWishes reads a list as in "pause,clock" or "pause:one server". "none"
// and "" are the empty list.
func ParseWishes(text string) ([]Wish, error) {
	if text == "" || text == "none" {
		return nil, nil
	}
	var wishes []Wish
	for _, item := range strings.Split(text, ",") {
		fault, target, _ := strings.Cut(strings.TrimSpace(item), ":")
		if _, known := KindByName(fault); !known {
			return nil, &UnknownKindError{Name: fault}
		}
		wishes = append(wishes, Wish{Fault: fault, Target: strings.TrimSpace(target)})
	}
	return wishes, nil
}

// UnknownKindError names a fault that there is not.
type UnknownKindError struct{ Name string }

func (e *UnknownKindError) Error() string { return fmt.Sprintf("unknown fault %q", e.Name) }

const (
	// firstFault is how long the workers are left alone at the start.
	firstFault = 500 * time.Millisecond
	// randomLane holds all steps of a random schedule: one fault at a time, so
	// that what happened can be put down to it.
	randomLane = "random"
)

// Random makes a schedule from a seed: one fault after another, each of the
// wishes equally often, an interval apart on average, until the length is filled.
// Each wish is in it at least once even if there is no time for it: a run without
// a fault that was asked for must not look like one that withstood it.
func Random(seed uint64, wishes []Wish, env Environment, interval, length time.Duration) (Schedule, error) {
	schedule := Schedule{Seed: seed}
	if len(wishes) == 0 {
		return schedule, nil
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	order := rng.Perm(len(wishes))
	at := firstFault
	for n := 0; ; n++ {
		if n > 0 && n%len(wishes) == 0 {
			order = rng.Perm(len(wishes))
		}
		step := randomStep(rng, wishes[order[n%len(wishes)]], env)
		step.ID = fmt.Sprintf("%s-%d", step.Fault, n+1)
		step.After = Span{Plus: at.Round(time.Millisecond)}
		if n >= len(wishes) && at+step.For.Of(env.Lease) > length {
			break
		}
		schedule.Steps = append(schedule.Steps, step)
		at += max(step.For.Of(env.Lease), interval/2+time.Duration(rng.Int64N(int64(interval)+1)))
	}
	return schedule, schedule.Check()
}

func randomStep(rng *rand.Rand, wish Wish, env Environment) Step {
	kind, _ := KindByName(wish.Fault)
	step := Step{Fault: wish.Fault, Target: wish.Target, Lane: randomLane}
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
