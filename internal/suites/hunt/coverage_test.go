package hunt

import (
	"slices"
	"testing"
	"time"

	"lockcheck/history"
)

// TestCover derives each state of the lock and each moment of a call from the history alone.
func TestCover(t *testing.T) {
	const ms = int64(time.Millisecond)
	call := func(at int64, worker string, f history.Function, of history.Type, more ...func(*history.Event)) history.Event {
		e := history.Event{Time: at * ms, Process: worker, F: f, Type: of, Key: "k"}
		for _, change := range more {
			change(&e)
		}
		return e
	}
	until := func(at int64) func(*history.Event) { return func(e *history.Event) { e.Until = at * ms } }
	fault := func(at int64, stage history.Stage) history.Event {
		return history.Event{Time: at * ms, Process: history.Nemesis, F: history.FaultPhase, Type: history.Info, Fault: &history.Fault{
			ID: "p", Kind: "pause", Role: "holder", Targets: []string{"w1"}, Stage: stage,
		}}
	}
	h := &history.History{
		Header: history.Header{Workers: []string{"w1", "w2"}, Lease: 100 * time.Millisecond},
		Events: []history.Event{
			call(1, "w1", history.Acquire, history.Invoke),
			call(2, "w1", history.Acquire, history.OK, until(100)),
			fault(10, history.Requested), fault(11, history.Applied), fault(12, history.Proven),
			call(20, "w2", history.Acquire, history.Invoke),
			call(120, "w2", history.Acquire, history.Fail),
			fault(130, history.Healed),
			call(140, "w1", history.Release, history.Invoke),
			call(150, "w1", history.Release, history.Info),
			call(5000, "w1", history.Acquire, history.Invoke), // long after the fault was healed
		},
	}
	const role = "pause of holder"
	at := func(role, phase, state, moment string) Cell {
		return Cell{Role: role, Phase: phase, State: state, Moment: moment}
	}
	want := []Cell{
		at(role, after, expired, holding), at(role, after, expired, releasing), at(role, after, unknown, outside),
		at(role, beginning, held, holding),
		at(role, inForce, expired, holding), at(role, inForce, held, holding), at(role, inForce, queued, holding),
		at(noFault, beginning, free, acquiring), at(noFault, beginning, held, holding),
	}
	got := cover(h)
	for _, c := range want {
		if !slices.Contains(got, c) {
			t.Errorf("%v is not met", c)
		}
	}
	for _, c := range got {
		if !slices.Contains(want, c) {
			t.Errorf("%v is met", c)
		}
	}
	if none := cover(&history.History{}); len(none) > 0 {
		t.Errorf("nothing meets %v", none)
	}

	unproven := *h
	unproven.Events = slices.DeleteFunc(slices.Clone(h.Events), func(e history.Event) bool { return e.Fault != nil && e.Fault.Stage == history.Proven })
	if got := cover(&unproven); len(got) != 2 || got[0].Role != noFault || got[1].Role != noFault {
		t.Errorf("a fault that was not proven met %v", got)
	}

	session := *h
	session.Header.Session = true
	session.Events = []history.Event{
		call(1, "w1", history.Acquire, history.Invoke), call(2, "w1", history.Acquire, history.OK),
		call(500, "w2", history.Acquire, history.Invoke), // the session is being renewed
		fault(510, history.Requested), fault(511, history.Applied), fault(512, history.Proven),
		call(700, "w2", history.Acquire, history.OK), // the session is no longer renewed
		call(710, "w2", history.Release, history.Invoke),
		call(720, "w2", history.Release, history.OK),
	}
	for c, want := range map[Cell]bool{
		at(noFault, beginning, queued, acquiring): true, at(role, inForce, queued, holding): true, at(role, inForce, held, holding): true,
		at(role, inForce, free, holding): true, at(noFault, beginning, expired, acquiring): false, at(role, inForce, expired, holding): false,
	} {
		if got := slices.Contains(cover(&session), c); got != want {
			t.Errorf("with a session %v is met: %v", c, got)
		}
	}
}
