package reports

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// overwritten is a run in which a paused holder wakes up and overwrites what others wrote under n holds in
// the meantime.
func overwritten(n int) run {
	st := newStory("none")
	first := st.grant("w4", "k0", ms)
	st.access(first, st.now+ms, history.Read, true)
	st.now = first.Deadline + 10*ms
	wakes := st.now + int64(n)*50*ms
	var lost []checker.Incident
	for i := range n {
		h := st.grant([]string{"w2", "w3", "w5"}[i%3], "k0", ms)
		st.access(h, st.now+ms, history.Read, true)
		element := st.access(h, st.now+20*ms, history.Write, true)
		st.end(h, st.now+30*ms, checker.EndedByRelease)
		lost = append(lost, checker.Incident{
			Key: "k0", From: st.now + 20*ms, To: wakes + ms, Element: element, Class: checker.ClassLost,
			Workers: []string{h.Worker, "w4"}, Grants: []string{h.Grant, first.Grant}, Faults: []string{"f1"},
			What: fmt.Sprintf("update %d of %s was overwritten by w4", element, h.Worker),
		})
		st.add(checker.MutualExclusion, checker.Incident{
			Key: "k0", From: h.Start, To: st.now + 30*ms, Class: checker.UseAfterExpiry,
			Workers: []string{"w4", h.Worker}, Grants: []string{first.Grant, h.Grant}, What: "w4 and " + h.Worker + " both held k0",
		})
		st.now += 50 * ms
	}
	for _, i := range lost {
		st.add(checker.NoLostUpdate, i)
	}
	stale := st.access(first, wakes+ms, history.Write, true)
	st.add(checker.NoStaleWrite, checker.Incident{
		Key: "k0", From: wakes + ms, Element: stale, Workers: []string{"w4", "w5"}, Grants: []string{first.Grant, "last"}, What: "stale"})
	st.end(first, wakes+2*ms, checker.EndedAtRelease)
	st.fault(checker.FaultCoverage{ID: "f1", Kind: "pause", Targets: []string{"w4"}, Applied: true, Proven: true, Exercised: true, Healed: true,
		Begin: first.Start + 2*ms, End: wakes}, ms, map[history.Stage]string{history.Applied: "", history.Healed: ""})
	h, r := st.finish(checker.Violation, "Updates were lost.")
	return run{"overwritten", h, r}
}

// shownOf returns the situation of a run and its steps, without times.
func shownOf(t *testing.T, c run) (situation, []string) {
	t.Helper()
	rec := newRecord(c.h, c.r)
	s, ok := rec.situation(c.r)
	if !ok {
		t.Fatal("there is no situation")
	}
	steps, left := rec.steps(s)
	if len(left) > 0 {
		t.Errorf("left out: %v", left)
	}
	var out []string
	for i, step := range steps {
		if i > 0 && step.time < steps[i-1].time {
			t.Errorf("%q is told too late", step.Text)
		}
		out = append(out, step.Text)
	}
	return s, out
}

// TestStepsTellTheLoss: however much happens in between, the last step tells the damage, and the summary step
// counts the holds that it sums up.
func TestStepsTellTheLoss(t *testing.T) {
	for _, c := range []struct {
		holds    int
		gathered string // the summary step; "" for none
		end      string
	}{
		{1, "", "It overwrites element 1 of w2, which is lost."},
		{2, "", "It overwrites element 1 of w2 and 1 more, which are lost."},
		// A single remaining hold is not summed up.
		{3, "", "It overwrites element 1 of w2 and 2 more, which are lost."},
		{4, "2 more holds by w2 and w5, the last of them until 2.190 s, all begun while w4 still holds it. " +
			"The resource accepts 2 reads and 2 writes of theirs; of the writes 2 are lost.", "It overwrites element 1 of w2 and 3 more, which are lost."},
		{40, "38 more holds by w2, w3 and w5, the last of them until 3.990 s, all begun while w4 still holds it. " +
			"The resource accepts 38 reads and 38 writes of theirs; of the writes 38 are lost.", "It overwrites element 1 of w2 and 39 more, which are lost."},
		// Beyond the listed incidents, the exact number is unknown.
		{checker.MaxListed + 20, "118 more holds by w2, w3 and w5, the last of them until 7.990 s, all begun while w4 still holds it. " +
			"The resource accepts 118 reads and 118 writes of theirs; of the writes at least 98 are lost.", "It overwrites element 1 of w2 and at least 99 more, which are lost."},
	} {
		_, shown := shownOf(t, overwritten(c.holds))
		gathered := slices.DeleteFunc(slices.Clone(shown), func(text string) bool { return !strings.Contains(text, " more hold") })
		if strings.Join(gathered, "\n") != c.gathered {
			t.Errorf("%d holds: gathered as %q, want %q", c.holds, gathered, c.gathered)
		}
		end := shown[len(shown)-2:]
		if want := fmt.Sprintf("The resource accepts w4's write of element %d, which is stale", c.holds+1); !strings.HasPrefix(end[0], want) || !strings.HasSuffix(end[0], c.end) {
			t.Errorf("%d holds: the loss is told as %q, want %q and %q", c.holds, end[0], want, c.end)
		}
		if want := "w4 stops: it tries to release, and the lock is already gone."; end[1] != want {
			t.Errorf("%d holds: the end is told as %q, want %q", c.holds, end[1], want)
		}
		for _, want := range []string{
			"w4 is granted the lock with token 1, valid until 2.000 s.", "Fault f1 is in force: pause w4.", "Fault f1 is healed.",
			"The resource accepts w2's write of element 1. It is acknowledged, and the final state lacks it.",
		} {
			if !slices.Contains(shown, want) {
				t.Errorf("%d holds: %q is not told in %q", c.holds, want, shown)
			}
		}
		if len(shown) > maxSteps+4 {
			t.Errorf("%d holds: %d steps", c.holds, len(shown))
		}
	}
}

// TestStepsLeaveOutNoEffect: of a hold with very many accesses, the steps tell the damage and count the rest.
func TestStepsLeaveOutNoEffect(t *testing.T) {
	for _, c := range []struct {
		reads int
		left  []string
	}{{0, nil}, {maxAccesses - 1, nil}, {maxAccesses + 4, []string{"5 more of the reads and writes of these holds left out."}}} {
		r := overwritten(1)
		first := r.r.Holds[slices.IndexFunc(r.r.Holds, func(h checker.Hold) bool { return h.Worker == "w4" })]
		for i := range c.reads {
			r.h.Events = append(r.h.Events, history.Event{Time: first.Start + int64(i), Process: history.Resource, Type: history.OK,
				F: history.Read, Key: "k0", Client: "w4", Grant: first.Grant})
		}
		rec := newRecord(r.h, r.r)
		s, _ := rec.situation(r.r)
		steps, left := rec.steps(s)
		if !slices.Equal(left, c.left) {
			t.Errorf("%d reads: left out %q, want %q", c.reads, left, c.left)
		}
		if !slices.ContainsFunc(steps, func(s step) bool { return strings.Contains(s.Text, "It overwrites element 1") }) {
			t.Errorf("%d reads: the loss is not told", c.reads)
		}
	}
}

// TestGatheredIsNotLeftOut: accesses that the summary step counts are not counted as left out too.
func TestGatheredIsNotLeftOut(t *testing.T) {
	for _, c := range []struct {
		worker   string // the worker that reads repeatedly
		left     string
		gathered string
	}{
		{"w2", "4 more of the reads and writes of these holds left out.", "accepts 8 reads and 8 writes"}, // its hold is told in steps
		{"w5", "", "accepts 16 reads and 7 writes"},                                                       // its hold is summed up
	} {
		r := overwritten(9)
		h := r.r.Holds[slices.IndexFunc(r.r.Holds, func(h checker.Hold) bool { return h.Worker == c.worker })]
		for range maxAccesses + 3 { // in addition to the existing access
			r.h.Events = append(r.h.Events, history.Event{Time: h.Start, Process: history.Resource, Type: history.OK,
				F: history.Read, Key: "k0", Client: h.Worker, Grant: h.Grant})
		}
		rec := newRecord(r.h, r.r)
		s, _ := rec.situation(r.r)
		steps, left := rec.steps(s)
		if strings.Join(left, "\n") != c.left {
			t.Errorf("%s: left out %q, want %q", c.worker, left, c.left)
		}
		if !slices.ContainsFunc(steps, func(s step) bool {
			return strings.Contains(s.Text, "more holds") && strings.Contains(s.Text, c.gathered)
		}) {
			t.Errorf("%s: %q is not gathered in %v", c.worker, c.gathered, steps)
		}
	}
}

// TestSituationIsTheLoss: the page shows the violation that cost most, if it was judged at all.
func TestSituationIsTheLoss(t *testing.T) {
	valid := func(r checker.Results, properties ...checker.Property) checker.Results {
		r.Findings = slices.Clone(r.Findings)
		for i, f := range r.Findings {
			if slices.Contains(properties, f.Property) {
				r.Findings[i] = checker.Finding{Property: f.Property, Verdict: checker.Valid}
			}
		}
		return r
	}
	unjudged := func(r checker.Results) checker.Results {
		r.Findings = slices.Clone(r.Findings)
		for i, f := range r.Findings {
			r.Findings[i].Required = f.Required && f.Property == checker.MutualExclusion
		}
		return r
	}
	all := overwritten(40)
	for name, c := range map[string]struct {
		r        checker.Results
		want     checker.Property
		possible bool // the overlap is told with it
	}{
		"lost":           {all.r, checker.NoLostUpdate, true},
		"stale, no loss": {valid(all.r, checker.NoLostUpdate), checker.NoStaleWrite, false}, // it names an unknown grant
		"overlap alone":  {valid(all.r, checker.NoLostUpdate, checker.NoStaleWrite), checker.MutualExclusion, false},
		"not judged":     {unjudged(all.r), checker.MutualExclusion, false},
	} {
		rec := newRecord(all.h, c.r)
		s, ok := rec.situation(c.r)
		if !ok || s.Finding.Property != c.want {
			t.Errorf("%s: the situation is of %s, want %s", name, s.Finding.Property, c.want)
		}
		page := pageOf(t, run{"situation", all.h, c.r})
		if shown := strings.Contains(page, "<b>What made it possible:</b> At 2.010 s: w4 and w2 both held k0."); shown != c.possible {
			t.Errorf("%s: the overlap behind it is told: %v, want %v", name, shown, c.possible)
		}
	}
}

// TestLossesThatTellMost: losses with a known cause come before losses without. Losses that another lock
// could have prevented come before losses that no lock could. A loss caused by a stale write comes before a
// stale write that was itself lost.
func TestLossesThatTellMost(t *testing.T) {
	loss := func(what, cause string, grants ...string) checker.Incident {
		return checker.Incident{What: what, Class: checker.ClassLost, Cause: cause, Grants: grants, From: 1, To: 9}
	}
	r := checker.Results{Findings: []checker.Finding{
		{Property: checker.NoLostUpdate, Violations: []checker.Incident{
			{What: "phantom", Class: checker.ClassPhantom}, loss("nobody knows", checker.CauseUnexplained, "a"),
			loss("stale", checker.CausePaused, "late", "b"), loss("by stale", checker.CausePaused, "b", "late"), loss("twice", checker.CauseTwice, "c", "d")}},
		{Property: checker.NoStaleWrite, Violations: []checker.Incident{{Grants: []string{"late", "b"}, From: 9}}},
	}}
	var got []string
	for _, i := range mostInformativeFirst(r, r.Findings[0]) {
		got = append(got, i.What)
	}
	if want := []string{"twice", "by stale", "stale", "phantom", "nobody knows"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFaultsSayHowHard: the name of a fault includes its strength, if it has one. A pause has none.
func TestFaultsSayHowHard(t *testing.T) {
	for _, c := range []struct {
		kind  string
		value history.Fault
		want  string
	}{
		{history.Pause, history.Fault{}, "pause n1 from w1"},
		{history.Clock, history.Fault{Step: 13 * s}, "clock n1 (+13 s) from w1"},
		{history.Clock, history.Fault{Step: -10_983 * ms}, "clock n1 (-10.983 s) from w1"},
		{history.PacketLoss, history.Fault{Loss: 0.4}, "packet-loss n1 (40 % lost) from w1"},
		{history.PacketDelay, history.Fault{Delay: 250 * ms}, "packet-delay n1 (250 ms late) from w1"},
		{history.SlowLink, history.Fault{Rate: 3000}, "slow-link n1 (3,000 bytes/s) from w1"},
	} {
		c.value.ID, c.value.Stage = "f", history.Applied
		h := &history.History{Events: []history.Event{{Process: history.Nemesis, F: history.FaultPhase, Fault: &c.value}}}
		rec := newRecord(h, checker.Results{})
		if got := rec.faultName(checker.FaultCoverage{ID: "f", Kind: c.kind, Targets: []string{"n1"}, Peers: []string{"w1"}}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if got := rec.faultName(checker.FaultCoverage{ID: "other", Kind: c.kind, Targets: []string{"n1"}}); got != c.kind+" n1" {
			t.Errorf("another fault is called %q", got)
		}
	}
}

// TestLegendExplainsAttempts: the legend explains attempts only if a hold is named after its attempt.
func TestLegendExplainsAttempts(t *testing.T) {
	const explained = "<li>w4-1: 1st attempt of w4</li>"
	c := overwritten(1)
	if strings.Contains(pageOf(t, c), "attempt of") {
		t.Error("attempts are explained where holds are named after their tokens")
	}
	for i := range c.r.Holds {
		c.r.Holds[i].Token = 0
	}
	if !strings.Contains(pageOf(t, c), explained) {
		t.Errorf("the page has no %s", explained)
	}
	for grant, want := range map[string]string{
		"w1-10": "w1-10: 10th attempt of w1", "w1-22": "w1-22: 22nd attempt of w1",
		"w1": "", "w1-": "", "w2-3": "", "w1-0": "", "w1-x": "", "": "",
	} {
		if got := attempt(checker.Hold{Worker: "w1", Grant: grant}); got != want {
			t.Errorf("%s: %q, want %q", grant, got, want)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int64]string{
		1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 10: "10th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 111: "111th", 1102: "1,102nd",
	} {
		if got := ordinal(n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestIncidentsInOrder: the incidents that cost most come first, and only a few of each property are
// unfolded.
func TestIncidentsInOrder(t *testing.T) {
	for _, c := range []struct {
		holds int
		want  []string // property, number of incidents, and number of rows in each part
	}{
		{1, []string{"no-lost-update 1 [1]", "no-stale-write 1 [1]", "mutual-exclusion 1 [1]"}},
		{5, []string{"no-lost-update 5 [5]", "no-stale-write 1 [1]", "mutual-exclusion 5 [5]"}},
		{6, []string{"no-lost-update 6 [5 1]", "no-stale-write 1 [1]", "mutual-exclusion 6 [5 1]"}},
		{26, []string{"no-lost-update 25 of 26; the rest is in the history [5 20]", "no-stale-write 1 [1]",
			"mutual-exclusion 25 of 26; the rest is in the history [5 20]"}},
	} {
		story := overwritten(c.holds)
		page := pageOf(t, story)
		var got []string
		for _, of := range strings.Split(page, `<h3 id="incidents-`)[1:] {
			name := regexp.MustCompile(`>(.*?) <span class="soft">\((.*?)\)</span></h3>`).FindStringSubmatch(of)
			var rows []int
			for _, table := range strings.Split(of, `<table class="incidents">`)[1:] {
				rows = append(rows, strings.Count(table, `<tr id="incident-`))
			}
			got = append(got, fmt.Sprint(name[1], " ", name[2], " ", rows))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d holds: %q, want %q", c.holds, got, c.want)
		}
		if folds := strings.Count(page, "<details>"); folds != 2*one(c.holds > maxUnfolded) {
			t.Errorf("%d holds: %d are folded", c.holds, folds)
		}
		for _, what := range unreadable(page) {
			t.Errorf("%d holds: %s", c.holds, what)
		}
	}
}

// TestStopped: a worker counts as paused only while its own proven pause is certainly in force.
func TestStopped(t *testing.T) {
	stage := func(stage history.Stage, from, to int64) history.Event {
		return history.Event{Time: to, Process: history.Nemesis, F: history.FaultPhase, Fault: &history.Fault{ID: "f", Kind: history.Pause, Stage: stage, Targets: []string{"w1"}, From: from, To: to}}
	}
	fault := checker.FaultCoverage{ID: "f", Kind: history.Pause, Targets: []string{"w1"}, Applied: true, Proven: true, Begin: 5, End: 35}
	rec := newRecord(&history.History{Events: []history.Event{stage(history.Applied, 8, 10), stage(history.Healed, 30, 33)}}, checker.Results{Faults: []checker.FaultCoverage{fault}})
	for _, c := range []struct {
		worker string
		at     int64
		want   bool
	}{{"w1", 9, false}, {"w1", 10, true}, {"w1", 29, true}, {"w1", 30, false}, {"w2", 20, false}} {
		if got := rec.isPaused(c.worker, c.at); got != c.want {
			t.Errorf("%s at %d: %v", c.worker, c.at, got)
		}
	}
}

// TestStepsTellTheCause: what came before the holds is told if it is the cause, and only then.
func TestStepsTellTheCause(t *testing.T) {
	explained := &checker.Explanation{
		Holder: checker.Granted{Worker: "w1"}, Earlier: &checker.Past{Asked: 2e9}, Renewal: &checker.Renewal{Asked: 3e9},
	}
	for cause, want := range map[string]string{
		checker.CauseLateRelease: "w1 sends a release that gets no answer.",
		checker.CauseUnrenewed:   "The session of w1 is renewed for the last time.",
		checker.CauseTwice:       "",
	} {
		told := &teller{record: &record{}, situation: situation{example: example{Incident: checker.Incident{Cause: cause, Explanation: explained}}}}
		told.tellCause()
		got := ""
		for _, s := range told.shown {
			got += s.Text
		}
		if got != want {
			t.Errorf("%s: %q, want %q", cause, got, want)
		}
	}
}
