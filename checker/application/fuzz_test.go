package application

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"lockcheck/history"
)

// FuzzCheck: whatever the validator accepts is judged, and never valid without an end.
func FuzzCheck(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, uint64(40))
	}
	f.Fuzz(func(t *testing.T, seed, size uint64) {
		h := random(rand.New(rand.NewPCG(seed, 7)), int(size%200))
		if err := history.Validate(h); err != nil {
			t.Fatal(err)
		}
		if r := Check(h); len(r.Findings) != len(Properties()) {
			t.Errorf("%+v", r)
		}
	})
}

// random is a history without sense that the validator accepts.
func random(rng *rand.Rand, size int) *history.History {
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	says := said()
	h := &history.History{Header: saying(everything(), says[:rng.IntN(len(says)+1)]...), Truncated: rng.IntN(2)}
	h.Header.Guard, h.Header.Require = one("", "none", "fence"), []string{one("speed", "mutual-exclusion", "fencing-order")}
	h.Header.Faults = []string{one("pause", "kill", "partition", "moon")}
	app := h.Header.Application
	for _, kind := range history.QuestionKinds() {
		app.Invariants = append(app.Invariants, history.Invariant{Name: kind, Kind: kind})
	}
	app.Resource = rng.IntN(2) == 0
	last := make(map[string]int64)
	for i := range size {
		e := history.Event{Index: int64(i), Type: history.Info, Key: one("k", "l"), ID: one("a", "b", "c"), Client: one("", "t"), Token: rng.Uint64N(4), Error: one("", "", "", "e")}
		switch rng.IntN(6) {
		case 5:
			if e.Process = history.Resource; !app.Resource {
				e.Process, e.F = "b1", history.Did
				break
			}
			e.Client, e.F, e.Type, e.ID = one("b1", "b2", history.Load), history.Function(one("read", "write")), history.Type(one("ok", "ok", "fail")), one("", "a")
			if e.Error = ""; e.Type == history.Fail {
				e.Error = "refused"
			}
			e.Base, e.Note = rng.Int64N(3), one("", history.AnyVersion)
		case 0:
			e.Process, e.F = history.Asker, history.Asked
			e.Key = app.Invariants[rng.IntN(len(app.Invariants))].Name
			if e.Type = history.Type(one("ok", "fail", "info")); e.Type == history.Info {
				e.Error = "refused"
			} else {
				e.Answer = &history.Answer{Rows: []string{"a", "b\tc"}[:rng.IntN(3)], Count: rng.Int64N(4)}
			}
		case 1:
			e.Process, e.F, e.Fault = history.Nemesis, history.FaultPhase, randomFault(rng, one)
		case 2:
			e.Process, e.F, e.Note = history.Harness, history.Phase, one(history.PhaseReady, history.PhaseFinal, history.PhaseEnd, history.PhaseBroken, history.PhaseInterrupted)
		case 3:
			e.Process, e.F, e.Type = history.Load, history.Accepted, history.OK
		default:
			e.Process = one("b1", "b2", "b3")
			e.F = history.Function(one("started", "ended", "holding", "releasing", "released", "did"))
		}
		e.Time = last[e.Process] + rng.Int64N(50) + 1
		last[e.Process] = e.Time
		if e.Process != history.Nemesis && e.Process != history.Harness {
			e.From = 1 + rng.Int64N(e.Time)
		}
		h.Events = append(h.Events, e)
	}
	number(h.Events)
	return h
}

func randomFault(rng *rand.Rand, one func(...string) string) *history.Fault {
	f := &history.Fault{
		ID: fmt.Sprint("f", rng.IntN(3)), Kind: one("pause", "kill", "partition", "moon"), Targets: []string{"b1", "b2", "redis"}[:rng.IntN(4)],
		Stage: history.Stage(one("requested", "applied", "proven", "healed", "proven-healed", "skipped", "unproven", "unhealed")),
		From:  rng.Int64N(100), To: rng.Int64N(100), Role: one("", "holder"), Moment: one("", "holding"), Actor: one("", "b1", "moon"),
	}
	if n := rng.Int64N(3); n > 0 {
		f.Dropped = &n
	}
	return f
}
