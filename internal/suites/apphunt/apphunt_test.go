package apphunt

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
)

// simulated is an application whose invariant is violated by kills alone.
type simulated struct {
	folder  string
	pattern func(faults []string) []checker.Finding
	runs    int
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
		r.Faults = append(r.Faults, checker.FaultCoverage{ID: step.ID, Kind: step.Fault, Proven: true})
	}
	if len(r.Findings) > 0 {
		r.Verdict = checker.Violation
	}
	return runs.Outcome{Judgement: runs.Judgement{Folder: folder, History: &history.History{}, Results: r}}, nil
}

func hunted(t *testing.T, trials int, pattern func(faults []string) []checker.Finding) (Result, *simulated) {
	t.Helper()
	app := &simulated{folder: t.TempDir(), pattern: pattern}
	h := &hunt{
		Plan: Plan{Options: runs.ApplicationOptions{App: appfile.App{Name: "billing"}, Nemesis: "pause,kill"}, Trials: trials},
		end:  time.Now().Add(time.Hour), progress: runs.Silent{}, test: app.test, result: Result{Application: "billing", Folder: t.TempDir()},
	}
	if err := h.search(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h.result, app
}

func violated(invariant string) []checker.Finding {
	return []checker.Finding{{Property: checker.Invariants, Verdict: checker.Violation, Required: true, Violations: []checker.Incident{{Key: invariant}}}}
}

// TestHuntReduces: what kills alone violate is found, and nothing but one kill is left of the schedule.
func TestHuntReduces(t *testing.T) {
	result, _ := hunted(t, 12, func(faults []string) []checker.Finding {
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
	schedule, err := runs.ReadSchedule(result.Folder)
	if err != nil || len(schedule.Steps) != 0 { // it has another name
		t.Errorf("schedule %v, %v", schedule, err)
	}
	if lines := strings.Join(result.Lines("app.yaml"), "\n"); !strings.Contains(lines, "--schedule "+result.Folder+"/finding-1.yaml --expect violation") {
		t.Errorf("the lines are\n%s", lines)
	}
}

// TestHuntKeepsWhole: what shows under the whole schedule, and by chance alone under parts of it, keeps the whole schedule.
func TestHuntKeepsWhole(t *testing.T) {
	var first nemesis.Schedule
	lucky := 0
	app := &simulated{folder: t.TempDir()}
	h := &hunt{
		Plan: Plan{Options: runs.ApplicationOptions{App: appfile.App{Name: "billing"}, Nemesis: "kill"}, Trials: 2},
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
	text, err := os.ReadFile(filepath.Join(h.result.Folder, h.result.Findings[0].Schedule))
	if n := strings.Count(string(text), "fault: kill"); err != nil || n != len(first.Steps) || n < 2 {
		t.Errorf("%d of %d steps are left, %v", n, len(first.Steps), err)
	}
}

// TestHuntWithout: what shows without faults is found by the first trial, and not again under faults.
func TestHuntWithout(t *testing.T) {
	result, _ := hunted(t, 4, func([]string) []checker.Finding { return violated("kept-1") })
	if len(result.Findings) != 1 || result.Findings[0].Trial != 0 || result.Findings[0].Schedule != "" {
		t.Errorf("got %+v", result)
	}
}

// TestHuntNothing: an application that is right has no finding, and each trial is one run.
func TestHuntNothing(t *testing.T) {
	result, app := hunted(t, 5, func([]string) []checker.Finding { return nil })
	if len(result.Findings) != 0 || result.Trials != 5 || app.runs != 5 {
		t.Errorf("got %+v in %d runs", result, app.runs)
	}
	if lines := result.Lines("app.yaml"); !strings.Contains(lines[len(lines)-1], "Nothing was found") {
		t.Errorf("the lines are %q", lines)
	}
}
