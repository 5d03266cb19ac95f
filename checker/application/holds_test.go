package application

import (
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// two is a run in which b1 and b2 take turns, so that something can be judged.
func two(lines ...string) []string {
	return append(lines, "2900 b1 holding other", "2901 b1 releasing other", "2902 b2 holding other", "2903 b2 releasing other")
}

func TestMutualExclusion(t *testing.T) {
	all := everything()
	for _, j := range []judgement{
		{"one after the other", all, two("10 b1 holding k", "20 b1 releasing k", "21 b2 holding k", "30 b2 releasing k"), checker.Valid, 0, "", FactHoldersApart},
		{"at once", all, two("10 b1 holding k", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderHealthy, FactHoldersOverlap},
		{"of two keys", all, two("10 b1 holding k", "20 b2 holding l", "30 b1 releasing k", "40 b2 releasing l"), checker.Valid, 0, "", ""},
		{"paused", all, two("10 b1 holding k", "12-25 pause b1", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderPaused, ""},
		{"cut off", all, two("10 b1 holding k", "12-25 partition b1", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderCutOff, ""},
		{"paused before it said so", all, two("5-15 pause b2", "10 b1 holding k", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderPaused, ""},
		{"paused before, and not when the other one began", all, two("5-8 pause b2", "10 b1 holding k", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"for longer than its lease", withLease(all, 10*time.Millisecond), two("10 b1 holding k", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderOutlasted, ""},
		{"within its lease", withLease(all, 11*time.Millisecond), two("10 b1 holding k", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"another one paused", all, two("10 b1 holding k", "12-25 pause b3", "20 b2 holding k", "30 b1 releasing k", "40 b2 releasing k"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"perhaps before the release was seen", all, two("10 b1 holding k", "18-30 b1 releasing k", "20-21 b2 holding k", "40 b2 releasing k"), checker.Valid, 0, "", ""},
		{"perhaps after the hold was said", all, two("10 b1 holding k", "15-30 b2 holding k", "28 b1 releasing k", "40 b2 releasing k"), checker.Valid, 0, "", ""},
		{"the inner one of two keys", all, two("10 b1 holding k", "12 b1 holding l", "20 b2 holding k", "25 b1 did j", "30 b2 releasing k"), checker.Valid, 0, "", ""},
		{"threads of one replica", all, two("10 b1 holding k who=a", "20 b1 holding k who=b", "30 b1 releasing k who=a", "40 b1 releasing k who=b"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"one thread twice", all, two("10 b1 holding k who=a", "20 b1 holding k who=a", "30 b1 releasing k who=a", "40 b1 releasing k who=a"), checker.Valid, 0, "", ""},
		{"a release that was not said", all, two("10 b1 holding k", "20 b2 holding k", "30 b2 releasing k", "40 b1 holding k", "50 b1 releasing k"), checker.Valid, 0, "", ""},
		{"work in a hold without an end", all, two("10 b1 holding k", "20 b2 holding k", "30 b2 releasing k", "40 b1 did j"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"work before the other hold", all, two("10 b1 holding k", "15 b1 did j", "20 b2 holding k", "30 b2 releasing k"), checker.Valid, 0, "", ""},
		{"killed after the other hold began", all, two("10 b1 holding k", "20 b2 holding k", "25 b1 did j", "30-50 kill b1", "55 b1 started", "60 b2 releasing k"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"killed in silence", all, two("10 b1 holding k", "20 b2 holding k", "25 b2 did j", "30-50 kill b1", "55 b1 started", "60 b2 releasing k"), checker.Valid, 0, "", ""},
		{"ended by itself", all, two("10 b1 holding k", "15 b1 ended", "20 b2 holding k", "25 b1 started", "26 b1 did j", "30 b2 releasing k"), checker.Valid, 0, "", ""},
		{"lines are lost", all, two("10 b1 holding k error=flood", "20 b2 holding k", "30 b1 did j", "40 b2 releasing k"), checker.Valid, 0, "", ""},
		{"only released, with work", saying(all, history.Holding, history.Released, history.Did), two("10 b1 holding k", "20 b2 holding k", "25 b1 did j", "30 b1 released k", "40 b2 did i", "50 b2 released k"), checker.Violation, 1, CauseHolderHealthy, ""},
		{"only released, without", saying(all, history.Holding, history.Released), two("10 b1 holding k", "20 b2 holding k", "30 b1 released k", "40 b2 released k"), checker.Valid, 0, "", ""},
		{"no ends", saying(all, history.Holding, history.Did), []string{"10 b1 holding k", "20 b2 holding k", "30 b1 did j"}, checker.Undecided, 0, "", FactEndsUnsaid},
		{"a single one", all, []string{"10 b1 holding k", "20 b1 releasing k"}, checker.Undecided, 0, "", FactFewHolders},
		{"none", all, []string{"10 b1 started"}, checker.Undecided, 0, "", FactNoHold},
		{"nothing is said", saying(all, history.Did), []string{"10 b1 started"}, checker.NotApplicable, 0, "", FactUnsaid},
	} {
		j.test(t, checker.MutualExclusion)
	}
}

// withLease is a header that names the lease of the lock.
func withLease(h history.Header, lease time.Duration) history.Header {
	h.Lease = lease
	return h
}

func TestNoStaleEffect(t *testing.T) {
	all := everything()
	for _, j := range []judgement{
		{"before", all, []string{"10 b1 holding k", "15 b1 did j", "16 b1 releasing k", "20 b2 holding k", "30 b2 did i"}, checker.Valid, 0, "", FactEffectsCurrent},
		{"after a later hold began", all, []string{"10 b1 holding k", "12-25 pause b1", "20 b2 holding k", "30 b1 did j"}, checker.Violation, 1, CauseHolderPaused, FactStaleEffects},
		{"after a later hold was over", all, []string{"10 b1 holding k", "20 b2 holding k", "22 b2 releasing k", "30 b1 did j"}, checker.Violation, 1, CauseHolderHealthy, ""},
		{"perhaps before", all, []string{"10 b1 holding k", "20 b2 holding k", "19-30 b1 did j"}, checker.Valid, 0, "", ""},
		{"of the later holder", all, []string{"10 b1 holding k", "20 b2 holding k", "30 b2 did j"}, checker.Valid, 0, "", ""},
		{"of the program after one that was killed", all, []string{"10 b1 holding k", "11 b1 did i", "15-18 kill b1", "20 b2 holding k", "30 b1 did j"}, checker.Valid, 0, "", ""},
		{"of another thread", all, []string{"10 b1 holding k who=a", "20 b2 holding k", "25 b2 did i", "30 b1 did j who=b"}, checker.Valid, 0, "", ""},
		{"a line that came late", all, []string{"10 b1 holding k token=6", "20 b2 holding k token=5", "30 b1 did j"}, checker.Valid, 0, "", ""},
		{"its answer was held back", all, []string{"5-15 partition b2", "10 b1 holding k", "20 b2 holding k", "30 b1 did j"}, checker.Valid, 0, "", ""},
		{"a greater token", all, []string{"10 b1 holding k token=6", "20 b2 holding k token=7", "30 b1 did j"}, checker.Violation, 1, CauseHolderHealthy, ""},
		{"outside of the hold", all, []string{"10 b1 holding k", "11 b1 did i", "12 b1 releasing k", "20 b2 holding k", "30 b1 did j"}, checker.Valid, 0, "", ""},
		{"nothing in a hold", all, []string{"10 b1 holding k", "12 b1 releasing k", "20 b1 did j"}, checker.NotApplicable, 0, "", FactNoEffectHeld},
		{"no ends", saying(all, history.Holding, history.Did), []string{"10 b1 holding k", "20 b2 holding k", "30 b1 did j"}, checker.Undecided, 0, "", FactEndsUnsaid},
		{"nothing is said", saying(all, history.Holding), []string{"10 b1 holding k"}, checker.NotApplicable, 0, "", FactUnsaid},
	} {
		j.test(t, checker.NoStaleEffect)
	}
}

func TestFencingOrder(t *testing.T) {
	all := everything()
	hold := func(begin, end, replica, token string) []string {
		return []string{begin + " " + replica + " holding k token=" + token, end + " " + replica + " releasing k"}
	}
	turns := func(of ...[]string) (lines []string) {
		for _, l := range of {
			lines = append(lines, l...)
		}
		return lines
	}
	for _, j := range []judgement{
		{"increasing", all, turns(hold("10", "20", "b1", "1"), hold("30", "40", "b2", "2"), hold("50", "60", "b1", "3"), hold("70", "80", "b2", "4")), checker.Valid, 0, "", checker.FactTokensIncrease},
		{"begun anew", all, turns(hold("10", "20", "b1", "1"), hold("30", "40", "b2", "7"), hold("50", "60", "b1", "8"), hold("70", "80", "b2", "1")), checker.Violation, 1, "", checker.FactTokensWrong},
		{"the same twice, in order", all, turns(hold("10", "20", "b1", "1"), hold("30", "40", "b1", "1")), checker.Violation, 1, "", ""},
		{"the same twice, in no certain order", all, turns(hold("10", "20", "b1", "1"), hold("15", "40", "b2", "1")), checker.Violation, 1, "", ""},
		{"one holder says it twice", all, []string{"10 b1 holding k token=1", "20 b1 holding k token=1", "30 b1 releasing k", "40 b1 holding k token=2"}, checker.Valid, 0, "", ""},
		{"a line that came late", all, turns(hold("10", "20", "b1", "3"), hold("22", "30", "b2", "4"), hold("40", "50", "b3", "2"), hold("52", "60", "b1", "5")), checker.Valid, 0, "", ""},
		{"in no certain order", all, turns(hold("10", "20", "b1", "3"), hold("30", "40", "b2", "2")), checker.Undecided, 0, "", FactTokensUnordered},
		{"started later", all, turns(hold("10", "20", "b1", "3"), []string{"25 b2 started"}, hold("30", "40", "b2", "2")), checker.Violation, 1, "", ""},
		{"one without", all, turns(hold("10", "20", "b1", "1"), hold("30", "40", "b2", "2"), hold("50", "60", "b1", "0")), checker.Undecided, 0, "", checker.FactTokensMissing},
		{"none", all, turns(hold("10", "20", "b1", "0")), checker.NotApplicable, 0, "", checker.FactNoToken},
	} {
		j.test(t, checker.FencingOrder)
	}
}

func TestExactlyOnce(t *testing.T) {
	all := everything()
	for _, j := range []judgement{
		{"once each", all, []string{"10 b1 did j", "20 b2 did i"}, checker.Valid, 0, "", FactDoneOnce},
		{"by two holders at once", all, []string{"10 b1 holding k", "12 b2 holding k", "20 b1 did j", "30 b2 did j"}, checker.Violation, 1, CauseOverlappingHolders, FactDoneTwice},
		{"after a replaced holder may have undone it", all, []string{"5 b3 holding k", "10 b1 holding k", "12 b1 did j", "14 b1 releasing k", "16 b3 did x", "20 b2 holding k", "30 b2 did j"}, checker.Violation, 1, "", ""},
		{"by one holder after the other", all, []string{"10 b1 holding k", "12 b1 did j", "14 b1 releasing k", "20 b2 holding k", "30 b2 did j"}, checker.Violation, 1, CauseDecidedBeforeLock, ""},
		{"perhaps at once", all, []string{"10 b1 holding k", "12 b1 did j", "14-21 b1 releasing k", "20 b2 holding k", "30 b2 did j"}, checker.Violation, 1, "", ""},
		{"without the lock", all, []string{"10 b1 holding k", "12 b1 did j", "14 b1 releasing k", "20 b2 did j"}, checker.Violation, 1, CauseWithoutLock, ""},
		{"by another thread", all, []string{"10 b1 holding k", "12 b1 did j", "14 b1 releasing k", "20 b2 holding k who=a", "30 b2 did j"}, checker.Violation, 1, "", ""},
		{"before its hold was over", all, []string{"10 b1 holding k", "12 b1 did j", "14 b1 releasing k", "15 b1 did j", "16 b1 released k"}, checker.Violation, 1, "", ""},
		{"twice in one hold", all, []string{"10 b1 holding k", "12 b1 did j", "14 b1 did j"}, checker.Violation, 1, "", ""},
		{"no holds", saying(all, history.Did), []string{"10 b1 did j", "20 b2 did j"}, checker.Violation, 1, "", ""},
		{"nothing", all, []string{"10 b1 started"}, checker.Undecided, 0, "", FactNothingDone},
		{"nothing is said", saying(all, history.Holding), []string{"10 b1 started"}, checker.NotApplicable, 0, "", FactUnsaid},
	} {
		j.test(t, checker.ExactlyOnce)
	}
}

func TestFailovers(t *testing.T) {
	for _, c := range []struct {
		name    string
		lines   []string
		holders int64
		longest int64 // ms
	}{
		{"released", []string{"10 b1 holding k", "20 b1 releasing k", "30 b2 holding k"}, 0, 0},
		{"killed", []string{"10 b1 holding k", "20-60 kill b1", "50 b2 holding k"}, 1, 30},
		{"killed and back", []string{"10 b1 holding k", "20-30 kill b1", "30 b1 started", "55 b1 holding k"}, 1, 35},
		{"killed for good", []string{"10 b1 holding k", "20-60 kill b1"}, 0, 0},
		{"paused", []string{"10 b1 holding k", "20-60 pause b1", "40 b2 holding k", "70 b1 did j"}, 1, 20},
		{"paused, and holds on", []string{"10 b1 holding k", "20-30 pause b1", "35 b1 releasing k", "40 b2 holding k"}, 0, 0},
		{"ended", []string{"10 b1 holding k", "20 b1 ended", "40 b2 holding k"}, 1, 20},
		{"another one was killed", []string{"10 b1 holding k", "20-60 kill b3", "50 b2 holding k"}, 0, 0},
	} {
		got := Check(script(t, everything(), c.lines...)).Failovers
		if got.Holders != c.holders || got.Longest.Milliseconds() != c.longest {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
