package apphunt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/history"
	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
)

// simulated is an application whose invariant is violated by kills alone.
type simulated struct {
	folder  string
	pattern func(faults []string) []checker.Finding
	runs    int
	told    told
}

func (s *simulated) test(_ context.Context, o runs.ApplicationOptions, _ <-chan struct{}, _ runs.Progress) (runs.Outcome, error) {
	s.runs++
	schedule := nemesis.Schedule{}
	if o.Schedule != nil {
		schedule = *o.Schedule
	} else {
		requests, err := nemesis.ParseRequests(o.Nemesis)
		if err != nil {
			return runs.Outcome{}, err
		}
		for i := range requests {
			requests[i].Target = "one worker" // as of an application on this machine
		}
		if schedule, err = nemesis.Random(o.Seed, requests, nemesis.Environment{Lease: time.Second}, time.Second, 10*time.Second); err != nil {
			return runs.Outcome{}, err
		}
	}
	folder, err := runs.NewFolder(s.folder)
	if err != nil {
		return runs.Outcome{}, err
	}
	if err := runs.WriteFile(folder, "schedule.yaml", schedule.Write); err != nil {
		return runs.Outcome{}, err
	}
	r := checker.Results{Verdict: checker.Valid, Findings: s.pattern(schedule.Faults())}
	for _, step := range schedule.Steps {
		r.Faults = append(r.Faults, checker.FaultCoverage{ID: step.ID, Kind: step.Fault, Applied: true, Proven: true, Exercised: true})
	}
	if len(r.Findings) > 0 {
		r.Verdict = checker.Violation
	}
	for _, p := range []checker.Property{checker.FaultEvidence, checker.Assumptions} {
		r.Findings = append(r.Findings, checker.Finding{Property: p, Verdict: checker.Valid})
	}
	return runs.Outcome{Judgement: runs.Judgement{Folder: folder, History: &history.History{}, Results: r}}, nil
}

func hunted(t *testing.T, trials int, pattern func(faults []string) []checker.Finding) (Result, *simulated) {
	t.Helper()
	app := &simulated{folder: t.TempDir(), pattern: pattern}
	h := &hunt{
		Plan: Plan{Options: runs.ApplicationOptions{App: billing(t), Nemesis: "pause,kill", MinOps: 1}, Trials: trials},
		end:  time.Now().Add(time.Hour), progress: &app.told, test: app.test, result: Result{Application: "billing", Folder: t.TempDir()},
	}
	if err := h.search(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h.result, app
}

// told keeps the lines that a hunt prints.
type told []string

func (l *told) Step(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }
func (*told) Status(string, ...any)             {}

// billing is an application of a file.
func billing(t *testing.T) appfile.App {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.yaml")
	text := `name: billing
app: {command: ["true"], says: {did: "(?P<id>.+)"}}
invariants:
  - {never: "false", name: billed-once}
  - {never: "false", name: kept-1}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	app, err := appfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

func violated(invariant string) []checker.Finding {
	return []checker.Finding{{
		Property: checker.Invariants, Verdict: checker.Violation, Required: true, Violations: []checker.Incident{{Key: invariant}},
		Facts: []checker.Fact{{Kind: application.FactViolated, Keys: []string{invariant}, N: 1}},
	}}
}

// reproductionOf reads the file of a finding from another folder, and prepares its runs.
func reproductionOf(t *testing.T, r Result, f Finding) (repros.Reproduction, []suites.Experiment) {
	t.Helper()
	path := filepath.Join(r.Folder, f.Reproduction)
	t.Chdir(t.TempDir())
	file, err := repros.FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	experiments, err := file.Experiments()
	for _, e := range experiments {
		if err == nil {
			_, err = e.Outline()
		}
	}
	if err != nil {
		text, _ := os.ReadFile(path)
		t.Fatalf("%v\n%s", err, text)
	}
	return file, experiments
}

// TestHuntReduces: what kills alone violate is found, and nothing but one kill is left of the schedule.
func TestHuntReduces(t *testing.T) {
	result, app := hunted(t, 12, func(faults []string) []checker.Finding {
		if slices.Contains(faults, "kill") {
			return violated("billed-once")
		}
		return nil
	})
	if len(result.Findings) != 1 || result.Trials != 12 {
		t.Fatalf("got %+v", result)
	}
	f := result.Findings[0]
	if f.String() != "invariants billed-once" || f.Trial == 0 || f.Seen != reruns || !slices.Equal(f.Faults, []string{"kill"}) {
		t.Errorf("got %+v", f)
	}
	if lines := strings.Join(result.Lines(), "\n"); !strings.Contains(lines, "lockcheck repro "+result.Folder+"/finding-1.yaml") {
		t.Errorf("the lines are\n%s", lines)
	}
	_, experiments := reproductionOf(t, result, f)
	if len(experiments) != 2 {
		t.Fatalf("%d experiments: a finding under faults has a control", len(experiments))
	}
	finding, control := experiments[0], experiments[1]
	if got := finding.Expect.String(); got != "violation: invariant billed-once violated" || len(finding.Application.Schedule.Steps) != 1 {
		t.Errorf("the finding is %s of %+v", got, finding.Application.Schedule)
	}
	if control.Application.Nemesis != "none" || control.Expect.Verdict != checker.Valid {
		t.Errorf("the control is %+v", control)
	}
	tellsReruns(t, app, result)
}

// tellsReruns: each rerun has a line, numbered, and the first line says how many there are at most.
func tellsReruns(t *testing.T, app *simulated, result Result) {
	t.Helper()
	most, n := 0, 0
	for _, line := range app.told {
		var number, of int
		if _, err := fmt.Sscanf(line, "at most %d reruns follow", &of); err == nil {
			most = of
		}
		if _, err := fmt.Sscanf(line, "rerun %d of at most %d, ", &number, &of); err == nil {
			if n++; number != n || of != most || number > most {
				t.Errorf("rerun %d of at most %d is told as %q", n, most, line)
			}
		}
	}
	if n == 0 || n != app.runs-result.Trials {
		t.Errorf("%d reruns are told of %d", n, app.runs-result.Trials)
	}
}

// TestHuntKeepsWhole: what shows under the whole schedule, and by chance alone under parts of it, keeps the whole schedule.
func TestHuntKeepsWhole(t *testing.T) {
	var first nemesis.Schedule
	lucky := 0
	app := &simulated{folder: t.TempDir()}
	h := &hunt{
		Plan: Plan{Options: runs.ApplicationOptions{App: billing(t), Nemesis: "kill"}, Trials: 2},
		end:  time.Now().Add(time.Hour), progress: runs.Silent{}, result: Result{Application: "billing", Folder: t.TempDir()},
	}
	h.test = func(ctx context.Context, o runs.ApplicationOptions, stop <-chan struct{}, p runs.Progress) (runs.Outcome, error) {
		app.pattern = func(faults []string) []checker.Finding {
			whole := o.Schedule == nil || len(o.Schedule.Steps) == len(first.Steps)
			if lucky++; len(faults) > 0 && (whole || lucky == 3) {
				return violated("billed-once")
			}
			return nil
		}
		outcome, err := app.test(ctx, o, stop, p)
		if o.Schedule == nil && err == nil {
			first, err = runs.ReadSchedule(outcome.Folder)
		}
		return outcome, err
	}
	if err := h.search(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(h.result.Findings) != 1 || h.result.Findings[0].Seen != reruns {
		t.Fatalf("got %+v", h.result.Findings)
	}
	text, err := os.ReadFile(filepath.Join(h.result.Folder, h.result.Findings[0].Reproduction))
	if n := strings.Count(string(text), "fault: kill"); err != nil || n != len(first.Steps) || n < 2 {
		t.Errorf("%d of %d steps are left, %v", n, len(first.Steps), err)
	}
}

// TestHuntWithout: what shows without faults is found by the first trial, and not again under faults.
func TestHuntWithout(t *testing.T) {
	result, _ := hunted(t, 4, func([]string) []checker.Finding { return violated("kept-1") })
	if len(result.Findings) != 1 || result.Findings[0].Trial != 0 || len(result.Findings[0].Faults) != 0 {
		t.Fatalf("got %+v", result)
	}
	file, experiments := reproductionOf(t, result, result.Findings[0])
	if file.Control != nil || experiments[0].Application.Nemesis != "none" || !slices.Equal(experiments[0].Expect.Invariants, []string{"kept-1"}) {
		t.Errorf("the file is %+v", file)
	}
}

// TestHuntNotCalm: where the application violates another invariant without faults, no control is promised.
func TestHuntNotCalm(t *testing.T) {
	result, _ := hunted(t, 12, func(faults []string) []checker.Finding {
		if slices.Contains(faults, "kill") {
			return violated("billed-once")
		}
		return violated("kept-1")
	})
	if len(result.Findings) != 2 {
		t.Fatalf("got %+v", result.Findings)
	}
	if file, _ := reproductionOf(t, result, result.Findings[1]); file.Control != nil || len(file.Schedule.Steps) == 0 {
		t.Errorf("the file is %+v", file)
	}
}

// TestExpectation: what a file expects is what tells its finding from others.
func TestExpectation(t *testing.T) {
	for s, want := range map[Signature]string{
		{checker.Invariants, "kept-1"}:                      "violation: invariant kept-1 violated",
		{checker.ExactlyOnce, application.CauseWithoutLock}: "violation: exactly-once violated, cause: done without the lock",
		{checker.FencingOrder, ""}:                          "violation: fencing-order violated",
	} {
		if got := s.expectation().String(); got != want {
			t.Errorf("%s: %s, want %s", s, got, want)
		}
	}
}

// TestInForce: steps whose faults do not count are left out, unless nothing would be left.
func TestInForce(t *testing.T) {
	s := nemesis.Schedule{Steps: []nemesis.Step{{ID: "a"}, {ID: "b"}}}
	counts := checker.FaultCoverage{ID: "b", Applied: true, Proven: true, Exercised: true}
	idle := checker.FaultCoverage{ID: "a", Applied: true, Proven: true}
	if got := inForce(s, checker.Results{Faults: []checker.FaultCoverage{idle, counts}}); len(got.Steps) != 1 || got.Steps[0].ID != "b" {
		t.Errorf("left are %+v", got.Steps)
	}
	if got := inForce(s, checker.Results{Faults: []checker.FaultCoverage{idle}}); len(got.Steps) != 2 {
		t.Errorf("left are %+v", got.Steps)
	}
}

// TestHuntNothing: an application that is right has no finding, and each trial is one run.
func TestHuntNothing(t *testing.T) {
	result, app := hunted(t, 5, func([]string) []checker.Finding { return nil })
	if len(result.Findings) != 0 || result.Trials != 5 || app.runs != 5 {
		t.Errorf("got %+v in %d runs", result, app.runs)
	}
	if lines := result.Lines(); !strings.Contains(lines[len(lines)-1], "Nothing was found") {
		t.Errorf("the lines are %q", lines)
	}
}
