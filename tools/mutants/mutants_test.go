//go:build mutants

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/hunt"
	"lockcheck/internal/suites/repros"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// TestMutants: each mutant known to the servers is judged once, and there are enough mutants to be
// convincing.
func TestMutants(t *testing.T) {
	var names []string
	wrong := 0
	for _, a := range mutants() {
		if _, err := new(runner).options(a, 1); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		if a.control != "" {
			continue
		}
		names = append(names, clients.MutantPrefix+a.name)
		if a.guilty != "" {
			wrong++
		}
	}
	slices.Sort(names)
	names = slices.Compact(names) // a mutant may run in several workloads
	if known := clusters.MutantNames(); !slices.Equal(names, known) {
		t.Errorf("judged are %v, known to servers %v", names, known)
	}
	if wrong < 15 || len(names)-wrong < 8 {
		t.Errorf("%d wrong and %d correct mutants", wrong, len(names)-wrong)
	}
	for _, name := range clients.Names() {
		if strings.HasPrefix(name, clients.MutantPrefix) {
			t.Errorf("%s is offered to users", name)
		}
	}
	if _, known := clusters.ByName(clients.MutantPrefix + "unicorn"); known {
		t.Error("there is a unicorn")
	}
}

// TestHuntWrong: a wrong lock is found, and the finding is confirmed, reduced as far as possible, and written
// as a file that can be read.
func TestHuntWrong(t *testing.T) {
	clustertest.StartsServers(t)
	binary := filepath.Join(t.TempDir(), "lockcheck")
	if output, err := exec.Command("go", "build", "-tags", "mutants embedded", "-o", binary, "lockcheck/cmd/lockcheck").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	plan, err := hunt.Plan{Lock: "mutant-early-end", Seed: 1, Blind: hunt.DefaultBlind}.Ready()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := hunt.Create(filepath.Join(t.TempDir(), "hunt"), plan)
	if err != nil {
		t.Fatal(err)
	}
	m := hunt.Machine{Machine: runs.Machine{Binary: binary}, Parallel: 8, Progress: runs.Silent{}, Budget: 3 * time.Minute, Trials: 4}
	if interrupted, err := folder.Run(t.Context(), m, nil); interrupted || err != nil {
		t.Fatalf("%v, %v", interrupted, err)
	}
	h := folder.Result()
	i := slices.IndexFunc(h.Findings, func(f hunt.Finding) bool { return f.File != "" && f.Property == checker.MutualExclusion })
	if h.Verdict() != checker.Violation || i < 0 {
		t.Fatalf("%s: %+v", h.Verdict(), h.Findings)
	}
	f := h.Findings[i]
	if f.ReducedRuns.Shown == 0 || len(f.Reduced.Steps) > 1 {
		t.Errorf("shown %+v by %s", f.ReducedRuns, f.Reduced)
	}
	if _, err := repros.FromFile(filepath.Join(folder.Path, f.File)); err != nil {
		t.Error(err)
	}
	if _, err := runs.ReadResults(filepath.Join(folder.Path, f.Run)); err != nil {
		t.Error(err)
	}
}

// TestJudge: a wrong mutant is judged by what it must be found guilty of. A correct mutant must not be
// accused of anything except what no lease prevents.
func TestJudge(t *testing.T) {
	results := func(v checker.Verdict, broken int64, violated ...checker.Property) checker.Results {
		r := checker.Results{Verdict: v, Overlaps: checker.OverlapSummary{DoubleGrants: broken}}
		for _, p := range checker.Properties() {
			f := checker.Finding{Property: p, Verdict: checker.Valid}
			if slices.Contains(violated, p) {
				f.Verdict = checker.Violation
			}
			r.Findings = append(r.Findings, f)
		}
		return r
	}
	correct, twice, tokens := mutant{}, mutant{guilty: checker.MutualExclusion}, mutant{guilty: checker.FencingOrder}
	for _, c := range []struct {
		name string
		of   mutant
		got  checker.Results
		good bool
	}{
		{"correct, valid", correct, results(checker.Valid, 0), true},
		{"correct, with inherent overlaps", correct, results(checker.Valid, 0, checker.MutualExclusion), true},
		{"correct, with a double grant", correct, results(checker.Valid, 1, checker.MutualExclusion), false},
		{"correct, accused of what is not required", correct, results(checker.Valid, 0, checker.Linearizability), false},
		{"correct, undecided", correct, results(checker.Undecided, 0), false},
		{"wrong, caught", tokens, results(checker.Violation, 0, checker.FencingOrder), true},
		{"wrong, caught by another", tokens, results(checker.Violation, 0, checker.Liveness), false},
		{"wrong, not caught", tokens, results(checker.Valid, 0), false},
		{"granted twice", twice, results(checker.Violation, 1, checker.MutualExclusion), true},
		{"granted twice, with inherent overlaps only", twice, results(checker.Violation, 0, checker.MutualExclusion), false},
	} {
		if wrong := c.of.judge(c.got); (wrong == "") != c.good {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

// TestMissedFault: a fault that hit no worker excuses a correct mutant only if nothing else accuses it.
func TestMissedFault(t *testing.T) {
	with := func(changes ...checker.Finding) checker.Results {
		r := checker.Results{Verdict: checker.Undecided}
		for _, p := range checker.Properties() {
			f := checker.Finding{Property: p, Verdict: checker.Valid}
			for _, c := range changes {
				if c.Property == p {
					f = c
				}
			}
			r.Findings = append(r.Findings, f)
		}
		return r
	}
	missed := checker.Finding{Property: checker.FaultEvidence, Verdict: checker.Undecided}
	if !(mutant{}).missedFault(with(missed)) {
		t.Error("a fault that hit nobody is held against a correct mutant")
	}
	for name, r := range map[string]checker.Results{
		"stuck":           with(missed, checker.Finding{Property: checker.Liveness, Verdict: checker.Violation}),
		"too few updates": with(missed, checker.Finding{Property: checker.Assumptions, Verdict: checker.Undecided}),
	} {
		if (mutant{}).missedFault(r) {
			t.Errorf("%s is excused", name)
		}
	}
	if (mutant{guilty: checker.Liveness}).missedFault(with(missed)) {
		t.Error("a wrong mutant that was not caught is excused")
	}
}

// TestTally: each run counts once: as expected, as a run whose fault hit no worker, or as wrong.
func TestTally(t *testing.T) {
	made := func(r checker.Results) suites.Made {
		return suites.Made{Outcome: runs.Outcome{Judgement: runs.Judgement{Results: r}}}
	}
	all := tally{mutant: mutant{guilty: checker.Liveness}}
	caught := checker.Results{Verdict: checker.Violation, Findings: []checker.Finding{{Property: checker.Liveness, Verdict: checker.Violation}}}
	all.add(1, made(caught))
	all.add(2, made(checker.Results{Verdict: checker.Valid}))
	all.add(3, suites.Made{Err: errors.New("no binary")})
	if all.asExpected != 1 || all.undecided != 0 || len(all.words) != 2 || all.words[1] != "seed 3: no binary" {
		t.Errorf("of a wrong mutant: %+v", all)
	}
	correct := tally{}
	correct.add(1, made(checker.Results{Verdict: checker.Undecided, Findings: []checker.Finding{{Property: checker.FaultEvidence, Verdict: checker.Undecided}}}))
	correct.add(2, made(checker.Results{Verdict: checker.Valid}))
	if correct.asExpected != 1 || correct.undecided != 1 || len(correct.words) != 0 {
		t.Errorf("of a correct mutant: %+v", correct)
	}
}
