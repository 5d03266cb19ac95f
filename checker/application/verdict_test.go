package application

import (
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// asked adds kinds of faults that were asked for.
func asked(h history.Header, kinds ...string) history.Header {
	h.Faults = kinds
	return h
}

func TestFaultEvidence(t *testing.T) {
	all := everything()
	pause, partition, kill := asked(all, "pause"), asked(all, "partition"), asked(all, "kill")
	for _, j := range []judgement{
		{"nothing asked for", all, nil, checker.NotApplicable, 0, "", checker.FactNoFaults},
		{"never applied", pause, nil, checker.Undecided, 0, "", checker.FactNeverApplied},
		{"not proven", pause, []string{"10-20 pause b1 proven=no"}, checker.Undecided, 0, "", checker.FactNeverProven},
		{"real", pause, []string{"5 b1 did j", "10-20 pause b1"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"of one that did something later", pause, []string{"10-20 pause b1", "30 b1 did j"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"of one that never did anything", pause, []string{"5 b2 did j", "10-20 pause b1"}, checker.Undecided, 0, "", checker.FactMissedMoment},
		{"of one of which nothing is known", asked(saying(all), "pause"), []string{"10-20 pause b1"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"of a server", pause, []string{"10-20 pause redis"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"one kind missing", asked(all, "pause", "kill"), []string{"5 b1 did j", "10-20 pause b1"}, checker.Undecided, 0, "", checker.FactNeverApplied},
		{"met packets", partition, []string{"5 b1 did j", "10-20 partition b1 dropped=3"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"met no packet", partition, []string{"10-20 partition b1 dropped=0"}, checker.Undecided, 0, "", checker.FactMissedPackets},
		{"packets not counted", partition, []string{"10-20 partition b1"}, checker.Undecided, 0, "", checker.FactMissedPackets},
		{"a second one met packets", partition, []string{"5 b1 did j", "10-20 partition b1 dropped=0", "30-40 partition b1 dropped=1"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"hit the holder", pause, []string{"5 b1 holding k", "10-20 pause b1 by=b1", "30 b1 releasing k"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"came after the hold", pause, []string{"5 b1 holding k", "8 b1 releasing k", "10-20 pause b1 by=b1"}, checker.Undecided, 0, "", checker.FactMissedMoment},
		{"the hold ended in it", pause, []string{"5 b1 holding k", "9-30 b1 released k", "10-20 pause b1 by=b1"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"the hold ended at its beginning", pause, []string{"5 b1 holding k", "9-10 b1 released k", "10-20 pause b1 by=b1"}, checker.Undecided, 0, "", checker.FactMissedMoment},
		{"hit another holder", pause, []string{"5 b2 holding k", "10-20 pause b1 by=b1"}, checker.Undecided, 0, "", checker.FactMissedMoment},
		{"hit a holder by its role", pause, []string{"5 b1 holding k", "10-20 pause b1 role=holder"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"killed the holder", kill, []string{"5 b1 holding k", "10-20 kill b1 by=b1", "21 b1 started"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"killed somebody else", kill, []string{"5 b1 holding k", "8 b1 released k", "10-20 kill b1 by=b1", "21 b1 started"}, checker.Undecided, 0, "", checker.FactMissedMoment},
		{"not healed", pause, []string{"10-20 pause b1 healed=no", "30 phase end"}, checker.Broken, 0, "", checker.FactNotProvenHealed},
		{"killed and started again", kill, []string{"5 b1 did j", "10-20 kill b1 healed=no", "30 b1 started", "40 phase end"}, checker.Valid, 0, "", checker.FactFaultsCovered},
		{"killed for good", kill, []string{"10-20 kill b1 healed=no", "40 phase end"}, checker.Broken, 0, "", checker.FactNotProvenHealed},
	} {
		j.test(t, checker.FaultEvidence)
	}
}

func TestAssumptions(t *testing.T) {
	all := everything()
	works := []string{"2 phase ready", "3 b1 started", "4 b2 started", "10 b1 did j", "900 phase final", "990 phase end"}
	idle := []string{"2 phase ready", "3 b1 started", "4 b2 started", "900 phase final", "990 phase end"}
	with := func(lines []string, more ...string) []string { return append(append([]string{}, lines...), more...) }
	hungry, required := all, all
	hungry.MinOps = 2
	required.Require = []string{"speed"}
	kept, work := asking(all, "i", history.InvariantKept), asking(all, "w", history.InvariantWork)
	for _, j := range []judgement{
		{"complete", all, works, checker.Valid, 0, "", checker.FactComplete},
		{"failed", all, with(works, "980 phase broken error=docker"), checker.Broken, 0, "", checker.FactRunFailed},
		{"killed", all, works[:5], checker.Broken, 0, "", checker.FactHistoryEnds},
		{"interrupted", all, with(works[:5], "980 phase interrupted"), checker.Undecided, 0, "", checker.FactInterrupted},
		{"unknown property", required, works, checker.Broken, 0, "", checker.FactUnknownProperty},
		{"no work", all, idle, checker.Undecided, 0, "", FactNoWork},
		{"too little", hungry, works, checker.Undecided, 0, "", FactNoWork},
		{"enough", hungry, with(works, "20 b2 did i"), checker.Valid, 0, "", checker.FactComplete},
		{"accepted and kept", kept, with(idle, "20 load j", "910 ask ok i rows=j"), checker.Valid, 0, "", checker.FactComplete},
		{"accepted, and not asked", kept, with(idle, "20 load j"), checker.Undecided, 0, "", FactNoWork},
		{"asked, and nothing accepted", kept, with(idle, "910 ask ok i rows=j"), checker.Undecided, 0, "", FactNoWork},
		{"changed", work, with(idle, "1 ask ok w rows=1", "910 ask ok w rows=2"), checker.Valid, 0, "", checker.FactComplete},
		{"changed before it was ready", work, with(idle, "0.5 ask ok w rows=0", "1 ask ok w rows=1", "910 ask ok w rows=1"), checker.Undecided, 0, "", FactNoWork},
		{"not changed", work, with(idle, "1 ask ok w rows=1", "910 ask ok w rows=1"), checker.Undecided, 0, "", FactNoWork},
		{"not answered", work, with(idle, "1 ask ok w rows=1", "910 ask info w error=refused"), checker.Undecided, 0, "", FactNoWork},
		{"a single replica", all, with(works[:2], works[3:]...), checker.Undecided, 0, "", FactFewReplicas},
		{"lines are lost", all, with(works, "20 b2 ended error=flood"), checker.Undecided, 0, "", FactLinesLost},
		{"lines of the load are lost", all, with(works, "20 load missed error=flood"), checker.Undecided, 0, "", FactLinesLost},
		{"work is done, and its question never answered", work, with(works, "1 ask info w error=refused", "910 ask info w error=refused"), checker.Undecided, 0, "", FactWorkUnanswered},
		{"work is done, and its question answered once", work, with(works, "1 ask info w error=refused", "910 ask ok w rows=1"), checker.Valid, 0, "", checker.FactComplete},
		{"nothing to judge", saying(work), with(idle, "1 ask ok w rows=1", "910 ask ok w rows=2"), checker.Undecided, 0, "", FactNothingJudged},
	} {
		j.test(t, checker.Assumptions)
	}
}

// TestVerdict: violations stand, whatever went wrong besides, and a run that failed says nothing else.
func TestVerdict(t *testing.T) {
	all := saying(asking(everything(), "i", history.InvariantNever), history.Did, history.Holding, history.Releasing)
	guarded := all
	guarded.Guard = "fence"
	required := guarded
	required.Require = []string{string(checker.MutualExclusion)}
	requiredStale := all
	requiredStale.Require = []string{string(checker.NoStaleEffect)}
	stale := []string{"20 b1 holding k", "22 b2 holding k", "23 b2 releasing k", "25 b1 did s", "26 b1 releasing k"}
	paused := append([]string{"21-24 pause b1"}, stale...)
	lines := two("2 phase ready", "3 b1 started", "4 b2 started", "5 b3 started", "10 b1 holding k", "12 b1 did j", "15 b1 releasing k", "900 phase final", "910 ask ok i", "990 phase end")
	with := func(more ...string) []string { return append(append([]string{}, lines...), more...) }
	for _, c := range []struct {
		name   string
		header history.Header
		lines  []string
		want   checker.Verdict
	}{
		{"valid", all, lines, checker.Valid},
		{"an invariant", all, with("20 ask fail i"), checker.Violation},
		{"work twice", all, with("20 b2 did j"), checker.Violation},
		{"a violation of a run that failed", all, with("20 b2 did j", "980 phase broken error=docker"), checker.Violation},
		{"a run that failed", all, with("980 phase broken error=docker"), checker.Broken},
		{"a kind of fault that never came", asked(all, "kill"), lines, checker.Undecided},
		{"a run that failed, and a kind of fault that never came", asked(all, "kill"), with("980 phase broken error=docker"), checker.Broken},
		{"overlapping holders", all, with("12 b2 holding k", "14 b2 releasing k"), checker.Violation},
		{"overlapping holders with a guard", guarded, with("12 b2 holding k", "14 b2 releasing k"), checker.Valid},
		{"required all the same", required, with("12 b2 holding k", "14 b2 releasing k"), checker.Violation},
		{"an effect of a holder that was paused and replaced", all, with(paused...), checker.Valid},
		{"an effect of a holder that was replaced, and not paused", all, with(stale...), checker.Violation},
		{"the first, required all the same", requiredStale, with(paused...), checker.Violation},
		{"nothing", all, nil, checker.Broken},
	} {
		if got := Check(script(t, c.header, c.lines...)); got.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.name, got.Verdict, c.want, got.Findings)
		}
	}
	if got := Check(nil); got.Verdict == checker.Valid {
		t.Error("no history is valid")
	}
}

func TestSummary(t *testing.T) {
	s := Check(script(t, everything(), "3 b1 started", "5-20 kill b1", "20 b1 started", "21 b1 holding k", "22 b1 holding k", "23 b1 did j", "24 b2 did j", "25 b1 ended", "30 load a", "31 load a")).Application
	if s.Holds != 1 || s.Effects != 2 || s.Repeated != 1 || s.Accepted != 1 || s.Restarts != 1 {
		t.Errorf("%+v", s)
	}
	if want := (checker.ReplicaSummary{Name: "b1", Started: 2, Ended: 1, Killed: 1, Holds: 1, Effects: 1}); s.Replicas[0] != want {
		t.Errorf("%+v", s.Replicas[0])
	}
}
