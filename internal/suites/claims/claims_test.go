package claims

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
	"lockcheck/reports"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

const howMany = 27

var everything = regexp.MustCompile("")

// TestClaims: all claims are there, and the experiments that they refer to exist and can be prepared. Every
// experiment in the folder runs belongs to a claim.
func TestClaims(t *testing.T) {
	all, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != howMany {
		t.Errorf("%d claims, want %d", len(all), howMany)
	}
	series, err := Experiments(all, everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range series.Experiments {
		if _, err := runs.OutlineOf(e.Options); err != nil {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	own, err := ownExperiments()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range own {
		if !slices.ContainsFunc(series.Experiments, func(p suites.Experiment) bool { return p.Name == e.Name }) {
			t.Errorf("no claim rests on %s", e.Name)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(e.Name, prefix), "/control")
		if _, err := files.Open("runs/" + name + ".yaml"); err == nil {
			continue
		}
		if _, err := files.Open("runs/" + strings.TrimSuffix(name, "-"+e.Options.Lock) + ".yaml"); err != nil {
			t.Errorf("the file of %s has another name", e.Name)
		}
	}
}

// TestRead puts one mistake at a time into a file that is otherwise valid.
func TestRead(t *testing.T) {
	const good = `- number: 1
  text: It holds.
  for:
    - run: a
      shows: It does.
      within: {lost: "<= 0"}
  measured:
    - run: a
      shows: How fast it is.
      more: throughput
      than: b
`
	known := map[string]suites.Experiment{"a": {}, "b": {}}
	for _, c := range []struct{ name, old, replacement, want string }{
		{"nothing", "", "", ""},
		{"empty", good, "", "it is empty"},
		{"unknown key", "shows: It does.", "show: It does.", "line 5"},
		{"unknown experiment", "run: a", "run: c", `line 4: there is no experiment "c"`},
		{"unknown experiment to compare with", "than: b", "than: c", `line 11: there is no experiment "c"`},
		{"nothing shown", "It does.", `""`, "line 4: shows:"},
		{"unknown figure", "lost:", "found:", `line 6: there is no figure "found"`},
		{"unknown figure to compare", "more: throughput", "more: speed", `line 8: there is no figure "speed"`},
		{"malformed span", `"<= 0"`, "few", "line 6"},
		{"compared with nothing", "      than: b\n", "", "line 8: give either"},
		{"compared and bounded", "than: b", "than: b\n      within: {lost: 0-1}", "line 8: give either"},
		{"another number", "number: 1", "number: 2", "claim 2 is where claim 1 should be"},
		{"no text", "It holds.", `""`, "claim 1: text:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(strings.NewReader(strings.Replace(good, c.old, c.replacement, 1)), known)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
	for text, fine := range map[string]bool{
		"- number: 1\n  text: It holds.\n":                    false,
		"- number: 1\n  text: It holds.\n  missing: a lock\n": true,
	} {
		if _, err := read(strings.NewReader(text), known); (err == nil) != fine {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestVerdict has each verdict, and what prevents it.
func TestVerdict(t *testing.T) {
	two := make([]suites.StoredRun, 2)
	shown, missed, notRun := Result{Runs: two, AsExpected: 2}, Result{Runs: two, AsExpected: 1}, Result{}
	list := func(all ...Result) []Result { return all }
	for _, c := range []struct {
		name             string
		isFor, isAgainst []Result
		missing          string
		want             string
	}{
		{"nothing", nil, nil, "", Open},
		{"for", list(shown, shown), nil, "", Holds},
		{"for, once not as expected", list(shown, missed), nil, "", Open},
		{"for, one not run", list(shown, notRun), nil, "", Open},
		{"for, and something is missing", list(shown), nil, "a server", Open},
		{"against", nil, list(shown), "", DoesNotHold},
		{"against, not as expected", nil, list(missed), "", Open},
		{"against, not run", nil, list(notRun), "", Open},
		{"both", list(shown), list(shown), "", HoldsWithinLimits},
		{"both, the limit not as expected", list(shown), list(missed), "", Open},
		{"both, the limit not run", list(shown), list(notRun), "", Open},
		{"both, for not as expected", list(missed), list(shown), "", Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := verdict(Judged{For: c.isFor, Against: c.isAgainst, Missing: c.missing}); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// valid is a valid run of an experiment with this many updates in one second.
func valid(updates int64) suites.StoredRun {
	r := checker.Results{Verdict: checker.Valid, Findings: []checker.Finding{
		{Property: checker.FaultEvidence, Verdict: checker.Valid}, {Property: checker.Assumptions, Verdict: checker.Valid},
	}}
	r.Measures.Work, r.Measures.Active = updates, 1e9
	return suites.StoredRun{Document: reports.Document{Results: r}, Folder: "somewhere"}
}

// TestJudge: figures decide whether a measurement supports a claim. Without figures, or if the run itself was
// not as expected, the claim stays open.
func TestJudge(t *testing.T) {
	expected := suites.Expectation{Verdict: checker.Valid}
	known := map[string]suites.Experiment{"a": {Name: "a", Expect: expected}, "b": {Name: "b", Expect: expected}}
	bounded := `- {number: 1, text: It is fast., measured: [{run: a, shows: How fast., within: {throughput: 10-20}}]}`
	compared := `- {number: 1, text: It is faster., measured: [{run: a, shows: How fast., more: throughput, than: b}]}`
	also := `- {number: 1, text: It is fast., for: [{run: a, shows: It is., within: {throughput: 10-20}}]}`
	violation := valid(15)
	violation.Results.Verdict = checker.Violation
	empty := valid(0)
	empty.Results.Measures.Active = 0
	runs := func(a ...suites.StoredRun) map[string][]suites.StoredRun {
		return map[string][]suites.StoredRun{"a": a, "b": {valid(10)}}
	}
	for _, c := range []struct {
		name, claim string
		runs        map[string][]suites.StoredRun
		want        string
	}{
		{"within", bounded, runs(valid(15)), Holds},
		{"at the edge", bounded, runs(valid(20)), Holds},
		{"below", bounded, runs(valid(9)), DoesNotHold},
		{"above", bounded, runs(valid(21)), DoesNotHold},
		{"within, of two together", bounded, runs(valid(5), valid(21)), Holds},
		{"within, but no valid run", bounded, runs(violation), Open},
		{"no data", bounded, runs(empty), Open},
		{"not run", bounded, runs(), Open},

		{"more", compared, runs(valid(11)), Holds},
		{"as much", compared, runs(valid(10)), DoesNotHold},
		{"less", compared, runs(valid(9)), DoesNotHold},
		{"compared, but not run", compared, runs(), Open},
		{"compared with no run", compared, map[string][]suites.StoredRun{"a": {valid(11)}}, Open},
		{"compared with no valid run", compared, map[string][]suites.StoredRun{"a": {valid(11)}, "b": {violation}}, Open},
		{"compared without data", compared, runs(empty), Open},

		{"expected too", also, runs(valid(15)), Holds},
		{"expected too, and missed", also, runs(valid(21)), Open},
		{"expected of each run", also, runs(valid(5), valid(21)), Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := read(strings.NewReader(c.claim), known)
			if err != nil {
				t.Fatal(err)
			}
			if got := (judger{known, c.runs}).claim(all[0]); got.Verdict != c.want {
				t.Errorf("%s, want %s: %+v", got.Verdict, c.want, got)
			}
		})
	}
}

// TestExperiments: each experiment runs once, and measurements run last and alone.
func TestExperiments(t *testing.T) {
	all, err := Claims()
	if err != nil {
		t.Fatal(err)
	}
	series, err := Experiments(all, everything)
	if err != nil {
		t.Fatal(err)
	}
	seen, alone := make(map[string]bool), false
	for _, e := range series.Experiments {
		if seen[e.Name] {
			t.Errorf("%s is run twice", e.Name)
		}
		seen[e.Name] = true
		if alone && !series.Alone[e.Name] {
			t.Errorf("%s waits for what runs alone", e.Name)
		}
		alone = series.Alone[e.Name]
	}
	if !alone || !seen["claim/cas-rare/control"] {
		t.Error("nothing runs alone, or what something is compared with is not run")
	}
	some, err := Experiments(all, regexp.MustCompile("^claim/wakes-5$"))
	if err != nil || len(some.Experiments) != 1 {
		t.Errorf("chosen by name: %+v, %v", some.Experiments, err)
	}
	if left := some.Without(map[string][]suites.StoredRun{"claim/wakes-5": {valid(1)}}); len(left.Experiments) != 0 {
		t.Errorf("run though it was: %+v", left.Experiments)
	}
}

// TestRun runs an experiment on the embedded lock and judges two claims by it: one that the run supports, and
// one that expects something else.
func TestRun(t *testing.T) {
	clustertest.StartsServers(t)
	const text = "name: x\nlock: memory\nworkload: set\nguard: none\nconcurrency: 2\nttl: 300ms\nsection: 5ms\ntime-limit: 3s\nmin-ops: 5\n" +
		"expect: {verdict: %s}\n"
	expecting := func(v checker.Verdict) map[string]suites.Experiment {
		all, err := repros.ReadExperiments(strings.NewReader(fmt.Sprintf(text, v)), prefix)
		if err != nil || len(all) != 1 {
			t.Fatalf("%d experiments, %v", len(all), err)
		}
		return map[string]suites.Experiment{all[0].Name: all[0]}
	}
	known := expecting(checker.Valid)
	store := t.TempDir()
	var told []suites.Ran
	series := suites.Series{
		Experiments: []suites.Experiment{known["claim/x"], known["claim/x"]},
		Machine:     runs.Machine{Binary: clustertest.Binary(t), Store: store}, Parallel: 2, Progress: runs.Silent{},
		Done: func(r suites.Ran) { told = append(told, r) },
	}
	interrupted, err := series.Run(t.Context(), nil)
	if interrupted || err != nil || len(told) != 2 {
		t.Fatalf("%v, %v: %+v", interrupted, err, told)
	}
	runs, err := suites.StoredRuns(store)
	if err != nil {
		t.Fatal(err)
	}
	all, err := read(strings.NewReader("- {number: 1, text: It works., for: [{run: claim/x, shows: It does.}]}"), known)
	if err != nil {
		t.Fatal(err)
	}
	got := judger{known, runs}.claim(all[0])
	if got.Verdict != Holds || len(got.For[0].Runs) != 2 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(store, got.For[0].Runs[0].Folder)); err != nil {
		t.Error(err)
	}
	if got := (judger{expecting(checker.Violation), runs}).claim(all[0]); got.Verdict != Open {
		t.Errorf("a violation was expected, and the claim %s", got.Verdict)
	}
	stop := make(chan struct{})
	close(stop)
	series.Done = func(r suites.Ran) { t.Errorf("told of %+v", r) }
	interrupted, err = series.Run(t.Context(), stop)
	if !interrupted || err != nil {
		t.Errorf("stopped before it began: %v, %v", interrupted, err)
	}
}
