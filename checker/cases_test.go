package checker

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"lockcheck/history"
)

// expected is the judgement that a history must get. Zero values of verdict and cause are not checked.
type expected struct {
	verdict  Verdict // of the run
	property Property
	finding  Verdict
	total    int
	cause    string
	events   int64 // LossEvents; 0 is not checked
}

// TestCases judges histories that were once judged wrongly. Each was made by hand, recorded, or shrunk from a
// simulation that knows the truth. Each has a counterpart that differs in the smallest detail that must
// change the judgement.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  []expected
		but   string // what differs in the counterpart
		edit  func(*history.History)
		other []expected
	}{
		{
			"20-session-waiter-paused", []expected{
				{Violation, MutualExclusion, Violation, 1, CausePaused, 0}, {Violation, NoStaleWrite, Violation, 1, CausePaused, 0}, {Violation, NoLostUpdate, Violation, 1, CausePaused, 0},
			},
			"nobody was paused", leftOut(faults), []expected{{Violation, MutualExclusion, Violation, 1, CauseUnexplained, 0}},
		},
		{
			"21-session-waiter-paused-ok-release", []expected{{Violation, MutualExclusion, Violation, 1, CausePaused, 0}},
			"somebody else was paused", each(faults, func(e *history.Event) { e.Fault.Targets = []string{"w2"} }), []expected{{Violation, MutualExclusion, Violation, 1, CauseUnexplained, 0}},
		},
		{
			"22-lease0-killed-holder-linearizable", []expected{{Valid, Linearizability, Valid, 0, "", 0}},
			"nobody was killed", leftOut(faults), []expected{{Undecided, Linearizability, Violation, 1, "", 0}, {Undecided, MutualExclusion, Undecided, 0, "", 0}},
		},
		{
			"23-same-required", []expected{{Valid, Linearizability, Valid, 0, "", 0}},
			"nobody was killed", leftOut(faults), []expected{{Violation, Linearizability, Violation, 1, "", 0}},
		},
		{
			"25-clock-step-fence-token", []expected{{Valid, FencingOrder, Valid, 0, "", 0}},
			"the third one got a lower token than the second", each(answered("c"), func(e *history.Event) { e.Token = 2 }), []expected{{Violation, FencingOrder, Violation, 1, "", 0}},
		},
		{
			"26-blind-release-fence-token", []expected{{Valid, FencingOrder, Valid, 0, "", 0}},
			"the lower token was asked for after the higher one was answered", each(asked("a"), movedTo(32)), []expected{{Violation, FencingOrder, Violation, 1, "", 0}},
		},
		{
			"27-expired-grant-not-lost", []expected{{Violation, NoWrongRelease, Valid, 0, "", 0}, {Violation, NoExpiredGrant, Violation, 1, "", 0}, {Violation, MutualExclusion, Violation, 1, CauseExpiredGrant, 0}},
			"the other grant was the later one, and in force", each(answered("a"), func(e *history.Event) { e.Token, e.Expired = 11, false }), []expected{{Violation, NoWrongRelease, Violation, 1, "", 0}},
		},
		{
			"28-no-tokens-double-stale", []expected{{Violation, NoStaleWrite, Undecided, 0, "", 0}, {Violation, NoWrongRelease, Valid, 0, "", 0}, {Violation, MutualExclusion, Violation, 1, CauseTwice, 0}},
			"one of the two asked after the other was answered", each(asked("b"), movedTo(15.5)), []expected{{Violation, NoStaleWrite, Violation, 1, CauseTwice, 0}, {Violation, NoWrongRelease, Valid, 0, "", 0}},
		},
		{
			"29-killed-with-deferred-write", []expected{{"", MutualExclusion, Valid, 0, "", 0}, {"", NoStaleWrite, Valid, 0, "", 0}},
			"its worker lived", leftOut(func(e *history.Event) bool { return faults(e) && e.Fault.Kind == history.Kill }), []expected{{Violation, MutualExclusion, Violation, 1, CauseInFlight, 0}},
		},
		{
			"29-killed-with-deferred-write", []expected{{"", NoStaleWrite, Valid, 0, "", 0}},
			"the next holder had used the data before", each(accessed(3), movedTo(125)), []expected{{Violation, NoStaleWrite, Violation, 1, CauseInFlight, 0}, {Violation, MutualExclusion, Valid, 0, "", 0}},
		},
		{
			"32-expired-grant-fence-token", []expected{{Valid, FencingOrder, Valid, 0, "", 0}},
			"the lower token was asked for after the higher one was answered", each(asked("a"), movedTo(31)), []expected{{Violation, FencingOrder, Violation, 1, "", 0}},
		},
		{
			"33-lease0-cut-wrong-release", []expected{{Valid, NoWrongRelease, Valid, 0, "", 0}, {Valid, Linearizability, Valid, 0, "", 0}},
			"the holder was cut off for too short a time", each(faults, func(e *history.Event) {
				e.Fault.From, e.Fault.To = min(e.Fault.From, ms(1500)), min(e.Fault.To, ms(1500))
			}), []expected{{Violation, NoWrongRelease, Violation, 1, "", 0}, {Violation, Linearizability, Violation, 2, "", 0}},
		},
		{
			"35-reentrant-unknown-nested", []expected{{Valid, Linearizability, Valid, 0, "", 0}, {Valid, FencingOrder, Valid, 0, "", 0}},
			"the nested acquire was never asked for", leftOut(of("n")), []expected{{Valid, Linearizability, Violation, 1, "", 0}},
		},
		{
			"36-one-release-counted-twice", []expected{{Violation, NoWrongRelease, Violation, 1, "", 0}},
			"both had what they released", each(func(e *history.Event) bool { return released("b")(e) || released("c")(e) }, func(e *history.Event) { e.Type = history.OK }), []expected{{Violation, NoWrongRelease, Valid, 0, "", 0}},
		},
		{
			"37-stale-missed-valid", []expected{{Violation, NoStaleWrite, Violation, 1, CausePaused, 0}},
			"only one of unknown order used the data", leftOut(func(e *history.Event) bool { return e.Process == history.Resource && e.Grant == "l" }), []expected{{"", NoStaleWrite, Valid, 0, "", 0}},
		},
		{
			"46-refused-but-applied", []expected{{Violation, NoLostUpdate, Violation, 1, "", 0}},
			"the final state lacks it", each(finalRead, func(e *history.Event) { e.Value = []byte("[2]") }), []expected{{Valid, NoLostUpdate, Valid, 0, "", 0}},
		},
		{
			"48-loss-events-nested", []expected{{Violation, NoLostUpdate, Violation, 4, CauseUnexplained, 2}},
			"all were overwritten by the last one", each(accessed(4), func(e *history.Event) { e.Base = 2 }), []expected{{Violation, NoLostUpdate, Violation, 4, CauseUnexplained, 1}},
		},
		{
			"85-semaphore-lost-cause", []expected{{Violation, NoLostUpdate, Violation, 1, CauseUnexplained, 0}},
			"only one may hold it", func(h *history.History) { h.Header.Permits = 1 }, []expected{{Violation, NoLostUpdate, Violation, 1, CauseTwice, 0}},
		},
		{
			"kazoo-release-sent-again", []expected{{"", Linearizability, Valid, 0, "", 0}},
			"somebody else was cut off", each(faults, func(e *history.Event) { e.Fault.Targets, e.Fault.Actor = []string{"w2"}, "w2" }), []expected{{"", Linearizability, Violation, 1, "", 0}},
		},
	} {
		t.Run(c.name+", but "+c.but, func(t *testing.T) {
			for _, e := range c.want {
				e.of(t, recorded(t, c.name))
			}
			other := recorded(t, c.name)
			c.edit(other)
			renumber(other)
			for _, e := range c.other {
				e.of(t, other)
			}
		})
	}
}

func (want expected) of(t *testing.T, h *history.History) {
	t.Helper()
	if err := history.Validate(h); err != nil {
		t.Fatal(err)
	}
	r := Check(h, Options{})
	f := r.of(want.property)
	if want.verdict != "" && r.Verdict != want.verdict || f.Verdict != want.finding || f.Total != want.total ||
		want.cause != "" && f.Causes[want.cause] != int64(want.total) || want.events != 0 && r.Updates.LossEvents != want.events {
		t.Errorf("%s is %s with %d (%v, %d events) in a run that is %s, want %+v\n%s", want.property, f.Verdict, f.Total, f.Causes, r.Updates.LossEvents, r.Verdict, want, r.dump())
	}
	noBug(t, r)
}

func recorded(t *testing.T, name string) *history.History {
	t.Helper()
	h, err := history.ReadFile(filepath.Join("testdata", "cases", name, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// renumber sorts the events and numbers events and accesses as a recorded history has them.
func renumber(h *history.History) {
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	seq := int64(0)
	for i := range h.Events {
		e := &h.Events[i]
		e.Index = int64(i)
		if e.Seq != 0 {
			seq++
			e.Seq = seq
		}
	}
}

func leftOut(which func(*history.Event) bool) func(*history.History) {
	return func(h *history.History) {
		h.Events = slices.DeleteFunc(h.Events, func(e history.Event) bool { return which(&e) })
	}
}

func each(which func(*history.Event) bool, change func(*history.Event)) func(*history.History) {
	return func(h *history.History) {
		for i := range h.Events {
			if e := &h.Events[i]; which(e) {
				change(e)
			}
		}
	}
}

// movedTo moves an event to a time in ms after the first second, because these histories begin at one second.
func movedTo(t float64) func(*history.Event) {
	return func(e *history.Event) { e.Time = ms(1000 + t) }
}

func faults(e *history.Event) bool    { return e.Fault != nil }
func finalRead(e *history.Event) bool { return e.F == history.Final }

func of(grant string) func(*history.Event) bool {
	return func(e *history.Event) bool { return e.Grant == grant }
}

func asked(grant string) func(*history.Event) bool {
	return func(e *history.Event) bool {
		return e.Grant == grant && e.F == history.Acquire && e.Type == history.Invoke
	}
}

func answered(grant string) func(*history.Event) bool {
	return func(e *history.Event) bool {
		return e.Grant == grant && e.F == history.Acquire && e.Type != history.Invoke
	}
}

func released(grant string) func(*history.Event) bool {
	return func(e *history.Event) bool {
		return e.Grant == grant && e.F == history.Release && e.Type != history.Invoke
	}
}

func accessed(seq int64) func(*history.Event) bool {
	return func(e *history.Event) bool { return e.Seq == seq }
}
