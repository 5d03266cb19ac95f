package application

import (
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// storing is a header of an application that keeps data in the resource, and says some things besides.
func storing(says ...history.Function) history.Header {
	h := saying(everything(), says...)
	h.Application.Resource = true
	return h
}

func TestNoLostUpdate(t *testing.T) {
	h := storing()
	for _, j := range []judgement{
		{"without a resource", everything(), nil, checker.NotApplicable, 0, "", FactNoResource},
		{"nothing written", h, []string{"1 resource b1 read c"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"read and written", h, []string{"1 resource b1 put c", "2 resource b1 read c", "3 resource b1 put c"}, checker.Valid, 0, "", FactReplacedSeen},
		{"written twice by one", h, []string{"1 resource b1 put c", "2 resource b1 put c"}, checker.Valid, 0, "", FactReplacedSeen},
		{"lost", h, []string{"1 resource b1 put c", "2 resource b1 read c", "3 resource b2 put c", "4 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"lost over one's own", h, []string{"1 resource b1 put c", "3 resource b2 put c", "4 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"both lost", h, []string{"1 resource b1 read c", "2 resource b2 read c", "3 resource b2 put c", "4 resource b1 put c", "5 resource b2 put c"}, checker.Violation, 2, "", FactOverwritten},
		{"of another key", h, []string{"1 resource b1 put c", "2 resource b1 read d", "3 resource b2 put c", "4 resource b1 put d"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"that there was none", h, []string{"1 resource b1 read c", "2 resource b2 put c", "3 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"read again", h, []string{"1 resource b1 read c", "2 resource b2 put c", "3 resource b1 read c", "4 resource b1 put c"}, checker.Valid, 0, "", FactReplacedSeen},
		{"blind", h, []string{"1 resource b2 put c", "2 resource b1 put c"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"on purpose", h, []string{"1 resource b1 read c", "2 resource b2 put c", "3 resource b1 put c note=any_version"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"with the version", h, []string{"1 resource b1 read c", "2 resource b2 put c", "3 resource b1 put c base=1"}, checker.Valid, 0, "", FactReplacedSeen},
		{"refused", h, []string{"1 resource b1 put c", "2 resource b2 read c", "3 resource b1 put c", "4 resource b2 refused c", "5 resource b2 read c", "6 resource b2 put c"}, checker.Valid, 0, "", FactReplacedSeen},
		{"a refused read shows nothing", h, []string{"1 resource b1 put c", "2 resource b2 put c", "3 resource b1 refused c", "4 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"started again in between", h, []string{"0.5 b1 started", "1 resource b1 read c", "2 resource b2 put c", "3 b1 started", "4 resource b1 put c"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"started again, perhaps in between", h, []string{"1-3 resource b1 read c", "4 resource b2 put c", "2-5 b1 started", "6 resource b1 put c"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"started again, and read", h, []string{"1 resource b1 read c", "3 b1 started", "4 resource b1 read c", "5 resource b2 put c", "6 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"a line of another one", h, []string{"1 resource b1 read c", "2 resource b2 append c l", "3 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"a line of one's own", h, []string{"1 resource b1 read c", "2 resource b1 append c l", "3 resource b1 put c"}, checker.Valid, 0, "", FactReplacedSeen},
		{"a line of one's own after that of another one", h, []string{"1 resource b1 read c", "2 resource b2 append c l", "3 resource b1 append c m", "4 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
		{"lines", h, []string{"1 resource b1 read c", "2 resource b2 append c l", "3 resource b1 append c m"}, checker.NotApplicable, 0, "", FactNothingReplaced},
		{"by the load", h, []string{"1 resource load read c", "2 resource b2 put c", "3 resource load put c"}, checker.Violation, 1, "", FactOverwritten},
		{"the other one was slow", h, []string{"1-9 resource b2 put c", "2-5 resource b1 read c", "6-10 resource b1 put c"}, checker.Violation, 1, "", FactOverwritten},
	} {
		j.test(t, checker.NoLostUpdate)
	}
}

// TestOverwritten: the incident names who knew what, and who wrote what in between.
func TestOverwritten(t *testing.T) {
	f := finding(t, checker.NoLostUpdate, storing(), "1 resource b1 put c", "2 resource b1 read c", "3-7 pause b1", "4 resource b2 put c", "5 resource b3 append c l", "8 resource b1 put c", "9 resource b2 put d", "10 resource b1 refused d", "11 resource b1 put d")
	i := f.Violations[0]
	want := checker.Overwrite{Seen: 1, SeenAt: moment(t, "2"), Unseen: 2, UnseenAt: moment(t, "4")}
	if *i.Overwrite != want || i.Workers[0] != "b1" || i.Workers[1] != "b2" || i.Figures.N != 2 || i.Figures.Next != 4 || i.Figures.Holder != checker.HolderPaused || len(i.Faults) != 1 {
		t.Errorf("%+v, %+v", i, i.Overwrite)
	}
	kinds := map[checker.FactKind]int64{}
	for _, fact := range f.Facts {
		kinds[fact.Kind] = fact.N
	}
	if kinds[FactOverwritten] != 1 || kinds[FactReplacedBlind] != 2 || kinds[FactRefused] != 1 {
		t.Errorf("%+v", f.Facts)
	}
}

// TestAppended: a line that is appended is work, as one that is printed is, and belongs to a hold only where no order of the two
// is in doubt.
func TestAppended(t *testing.T) {
	h := storing(history.Holding, history.Releasing)
	for _, j := range []judgement{
		{"once", storing(), []string{"1 resource b1 append jobs j", "2 resource b2 append jobs k"}, checker.Valid, 0, "", FactDoneOnce},
		{"twice", storing(), []string{"1 resource b1 append jobs j", "2 resource b2 append jobs j"}, checker.Violation, 1, "", FactDoneTwice},
		{"in two kinds of work", storing(), []string{"1 resource b1 append jobs j", "2 resource b1 append mails j"}, checker.Valid, 0, "", FactDoneOnce},
		{"refused", storing(), []string{"1 resource b1 append jobs j", "2 resource b2 refused jobs j"}, checker.Valid, 0, "", FactDoneOnce},
		{"by the load", storing(), []string{"1 resource b1 append jobs j", "2 resource load append jobs j"}, checker.Valid, 0, "", FactDoneOnce},
		{"printed as well", storing(history.Did), []string{"1 resource b1 append jobs j", "2 b1 did j"}, checker.Valid, 0, "", FactDoneOnce},
		{"values only", storing(), []string{"1 resource b1 put c"}, checker.NotApplicable, 0, "", FactNothingDone},
		{"in two holds", h, two("1 b1 holding k", "2 resource b1 append jobs j", "3 b1 releasing k", "5 b2 holding k", "6 resource b2 append jobs j", "7 b2 releasing k"), checker.Violation, 1, CauseDecidedBeforeLock, FactDoneTwice},
		{"outside of holds", h, two("1 b1 holding k", "2 resource b1 append jobs j", "3 b1 releasing k", "6 resource b2 append jobs j", "7 b2 holding k", "8 b2 releasing k"), checker.Violation, 1, CauseWithoutLock, FactDoneTwice},
		{"perhaps in a hold that was not read", h, two("1 b1 holding k", "2 resource b1 append jobs j", "3 b1 releasing k", "6 resource b2 append jobs j", "7-8 kill b2", "8 b2 started"), checker.Violation, 1, "", FactDoneTwice},
		{"perhaps before the hold", h, two("1 b1 holding k", "2 resource b1 append jobs j", "3 b1 releasing k", "5-7 b2 holding k", "6 resource b2 append jobs j", "8 b2 releasing k"), checker.Violation, 1, "", FactDoneTwice},
	} {
		j.test(t, checker.ExactlyOnce)
	}
	for _, j := range []judgement{
		{"current", h, []string{"1 b1 holding k", "2 resource b1 append jobs j", "3 b1 releasing k"}, checker.Valid, 0, "", FactEffectsCurrent},
		{"stale", h, []string{"1 b1 holding k", "2 b2 holding k", "3 resource b1 append jobs j", "4 b1 releasing k", "5 b2 releasing k"}, checker.Violation, 1, CauseHolderHealthy, FactStaleEffects},
		{"perhaps after the hold", h, []string{"1 b1 holding k", "2 b2 holding k", "4 resource b1 append jobs j", "3-5 b1 releasing k", "6 b2 releasing k"}, checker.NotApplicable, 0, "", FactNoEffectHeld},
		{"of a thread without a name", h, []string{"1 b1 holding k who=t", "2 b2 holding k", "3 resource b1 append jobs j", "4 b1 releasing k who=t", "5 b2 releasing k"}, checker.NotApplicable, 0, "", FactNoEffectHeld},
	} {
		j.test(t, checker.NoStaleEffect)
	}
	// Only the line in the resource shows that b1 still held k.
	overlap := judgement{"overlap", h, []string{"1 b1 holding k", "2 b2 holding k", "3 resource b1 append jobs j", "5 b2 releasing k", "6 b1 released k"}, checker.Violation, 1, CauseHolderHealthy, FactHoldersOverlap}
	overlap.test(t, checker.MutualExclusion)
}

// TestWorkInResource: what is written shows that something was done, and whom a fault hit.
func TestWorkInResource(t *testing.T) {
	lines := []string{"2 phase ready", "3 b1 started", "4 b2 started", "5 resource b1 put c", "10-20 pause b1", "900 phase final", "990 phase end"}
	r := Check(script(t, asked(storing(), "pause"), lines...))
	if r.Verdict != checker.Valid || r.Application.Writes != 1 || r.Application.Replicas[0].Writes != 1 {
		t.Errorf("%s: %+v", r.Verdict, r.Findings)
	}
	if r := Check(script(t, asked(storing(), "pause"), append(lines[:3:3], "5 resource b2 read c", "10-20 pause b1", "900 phase final", "990 phase end")...)); r.Verdict != checker.Undecided {
		t.Errorf("%s: %+v", r.Verdict, r.Findings)
	}
}
