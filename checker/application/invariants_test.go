package application

import (
	"slices"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// rest are the last phases of a run, with the last answer in between.
func rest(last string, lines ...string) []string {
	return append(lines, "2 phase ready", "800 phase recovery", "900 phase final", last, "990 phase end")
}

func TestInvariants(t *testing.T) {
	once, never := asking(everything(), "i", history.InvariantOnce), asking(everything(), "i", history.InvariantNever)
	always, kept := asking(everything(), "i", history.InvariantAlways), asking(everything(), "i", history.InvariantKept)
	eventually := asking(everything(), "i", history.InvariantEventually) // within 100 ms
	for _, j := range []judgement{
		{"once", once, rest("910 ask ok i", "10 ask ok i"), checker.Valid, 0, "", FactHeld},
		{"once: twice", once, rest("910 ask fail i rows=a,b", "10 ask fail i rows=a", "20 ask fail i rows=a"), checker.Violation, 2, "", FactViolated},
		{"once: without rows", once, rest("910 ask ok i", "10 ask fail i", "20 ask fail i"), checker.Violation, 1, "", FactViolated},
		{"never", never, rest("910 ask ok i", "10 ask ok i"), checker.Valid, 0, "", FactHeld},
		{"never: one episode", never, rest("910 ask ok i", "10 ask fail i rows=a", "20 ask fail i rows=b"), checker.Violation, 1, "", FactViolated},
		{"never: one episode with a question in between", never, rest("910 ask ok i", "10 ask fail i", "15 ask info i error=refused", "20 ask fail i"), checker.Violation, 1, "", FactViolated},
		{"never: two episodes", never, rest("910 ask fail i", "10 ask fail i", "20 ask ok i"), checker.Violation, 2, "", FactViolated},
		{"never: not answered in the end", never, rest("910 ask info i error=refused", "10 ask ok i"), checker.Undecided, 0, "", FactFinalUnanswered},
		{"never: asked last before the end", never, rest("899-905 ask ok i", "10 ask ok i"), checker.Undecided, 0, "", FactFinalUnanswered},
		{"never: never answered", never, rest("910 ask info i error=refused", "10 ask info i error=refused"), checker.Undecided, 0, "", FactNeverAnswered},
		{"never: never asked", never, rest("910 load j"), checker.Undecided, 0, "", FactNeverAnswered},
		{"never: violated, and not answered in the end", never, rest("910 ask info i error=refused", "10 ask fail i"), checker.Violation, 1, "", FactViolated},
		{"always", always, rest("910 ask ok i rows=a", "10 ask ok i rows=a"), checker.Valid, 0, "", FactHeld},
		{"always: not", always, rest("910 ask ok i rows=a", "10 ask fail i"), checker.Violation, 1, "", FactViolated},
		{"kept", kept, rest("910 ask ok i rows=a,b,c", "10 load a", "20 load b"), checker.Valid, 0, "", FactHeld},
		{"kept: nothing accepted", kept, rest("910 ask ok i rows=a"), checker.Undecided, 0, "", FactNothingAccepted},
		{"kept: lost", kept, rest("910 ask ok i rows=b", "10 load a", "20 load b"), checker.Violation, 1, "", FactViolated},
		{"kept: lost for a time", kept, rest("910 ask ok i rows=a", "10 load a", "20 ask ok i"), checker.Valid, 0, "", FactHeld},
		{"kept: accepted meanwhile", kept, rest("910-920 ask ok i", "905-915 load a"), checker.Valid, 0, "", FactHeld},
		{"kept: not answered in the end", kept, rest("910 ask info i error=refused", "10 load a", "20 ask ok i rows=a"), checker.Undecided, 0, "", FactFinalUnanswered},
		{"eventually", eventually, rest("910 ask ok i", "10 ask fail i", "100-200 pause b1", "250 ask fail i", "310 ask ok i"), checker.Valid, 0, "", FactHeld},
		{"eventually: late", eventually, rest("910 ask ok i", "100-200 pause b1", "301 ask fail i"), checker.Violation, 1, "", FactViolated},
		{"eventually: asked before it was late", eventually, rest("910 ask ok i", "100-200 pause b1", "299-310 ask fail i"), checker.Valid, 0, "", FactHeld},
		{"eventually: not for long", eventually, rest("910 ask fail i", "100-200 pause b1", "310 ask ok i"), checker.Violation, 1, "", FactViolated},
		{"eventually: without a fault", eventually, rest("910 ask ok i", "50 ask fail i"), checker.Valid, 0, "", FactHeld},
		{"eventually: no time left", eventually, rest("910 ask fail i", "100-890 pause b1"), checker.Undecided, 0, "", FactTooEarly},
		{"eventually: holds early", eventually, rest("910 ask ok i", "100-890 pause b1"), checker.Valid, 0, "", ""},
		{"eventually: a fault without an end", eventually, rest("910 ask fail i", "100 pause b1 healed=no"), checker.Undecided, 0, "", FactHealUnknown},
		{"eventually: killed and started again", eventually, rest("910 ask fail i", "100 kill b1 healed=no", "200 b1 started"), checker.Violation, 1, "", FactViolated},
		{"none", asking(everything(), "w", history.InvariantWork), rest("910 ask ok w"), checker.NotApplicable, 0, "", FactNoInvariants},
	} {
		j.test(t, checker.Invariants)
	}
}

// TestSeen: an incident says since when its invariant may have been false, and what happened around that time.
func TestSeen(t *testing.T) {
	header := asking(everything(), "i", history.InvariantOnce)
	i := finding(t, checker.Invariants, header, rest("910-911 ask fail i rows=a", "5-6 ask ok i", "10 b1 holding k", "12-40 pause b1", "13-14 ask ok i",
		"15-30 partition b2 b3", "35 b2 did a", "45-50 ask fail i rows=a", "60 b1 did a", "60-80 pause b3")...).Violations[0]
	at := func(ms int64) int64 { return second + ms*1e6 }
	s := i.Seen
	if i.Kind != KindRepeatedWork || i.Key != "i" || i.From != at(50) || s.Held != at(13) || !slices.Equal(s.Rows, []string{"a"}) || s.Count != 1 {
		t.Errorf("%+v %+v", i, s)
	}
	if len(s.Faults) != 2 || s.Faults[0].Kind != history.Pause || s.Faults[0].From != at(12) || s.Faults[0].To != at(40) {
		t.Errorf("%+v", s.Faults)
	}
	if want := []checker.Hit{{Replica: "b1", State: checker.HolderPaused}, {Replica: "b2", State: checker.HolderCutOff}, {Replica: "b3", State: checker.HolderCutOff}}; !slices.Equal(s.Hit, want) {
		t.Errorf("%+v", s.Hit)
	}
	if want := []checker.Said{{Replica: "b1", F: history.Holding, Key: "k", At: at(10)}, {Replica: "b2", F: history.Did, ID: "a", At: at(35)}}; !slices.Equal(s.Said, want) {
		t.Errorf("%+v", s.Said)
	}
	kept := finding(t, checker.Invariants, asking(everything(), "i", history.InvariantKept), rest("910 ask ok i rows=b", "10 load a", "20 load b", "30 load c")...).Violations[0]
	if s := kept.Seen; kept.Kind != KindNotKept || !slices.Equal(s.Rows, []string{"a", "c"}) || s.Count != 2 || s.Of != 3 {
		t.Errorf("%+v %+v", kept, s)
	}
	one := finding(t, checker.Invariants, header, rest("910 ask fail i rows=a,b,c,d,e,f,g", "10 ask fail i rows=a")...)
	if one.Total != 7 || one.Violations[1].Seen.Held != at(10) || one.Violations[0].Seen.Held != 0 {
		t.Errorf("%+v", one)
	}
}

func TestGaps(t *testing.T) {
	header := asking(everything(), "i", history.InvariantNever)
	r := Check(script(t, header, rest("910-912 ask ok i", "10-12 ask ok i", "100-102 ask info i error=refused", "150-160 pause b1", "300-303 ask fail i")...))
	got := r.Application.Invariants[0]
	want := checker.InvariantSummary{Name: "i", Kind: history.InvariantNever, Asked: 4, Held: 2, Violated: 1, Unknown: 1, Said: "refused", Gap: checker.Gap{From: second + 300e6, To: second + 912e6}}
	if got.Gap.Faults != nil || got.Gap.From != want.Gap.From || got.Gap.To != want.Gap.To || got.Asked != 4 || got.Held != 2 || got.Violated != 1 || got.Unknown != 1 || got.Said != "refused" {
		t.Errorf("%+v, want %+v", got, want)
	}
	r = Check(script(t, header, rest("910 ask ok i", "10 ask ok i", "400-410 pause b1")...))
	if gap := r.Application.Invariants[0].Gap; gap.Length().Milliseconds() != 900 || len(gap.Faults) != 1 {
		t.Errorf("%+v", gap)
	}
}
