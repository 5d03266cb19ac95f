//go:build mutants

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/hunt"
	"lockcheck/workloads"
)

// hunts hunts each mutant with guided and with blind trials, given only its name, and compares how many
// trials the first finding takes.
type hunts struct {
	binary, store string
	trials        int // at most, per hunt
	seeds         int
	side          int // number of trials run in parallel
	only          string
}

type attempt struct {
	mutant
	seed  uint64
	blind float64
	// first is the number of the trial that found the mutant; 0 if no trial did.
	first, trials int
	found         string
	verdict       checker.Verdict
}

// arms are the shares of blind trials that are compared.
func arms() []float64 { return []float64{0, 1} }

// atOnce is how many hunts run at the same time.
const atOnce = 2

func (h hunts) run(ctx context.Context, out io.Writer) (err error) {
	if h.binary, err = filepath.Abs(h.binary); err != nil {
		return err
	}
	if h.store, err = os.MkdirTemp("", "lockcheck-hunts-"); err != nil {
		return err
	}
	defer os.RemoveAll(h.store)
	attempts := h.attempts()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range attempts {
		group.Go(func() error {
			err := h.attempt(ctx, i, &attempts[i])
			fmt.Fprintf(os.Stderr, "%-20s blind %v, seed %d: %s\n", attempts[i].name, attempts[i].blind, attempts[i].seed, attempts[i])
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return huntTable(out, attempts)
}

// huntable are the mutants that a hunt can find from their names alone and that it uses as a mutex. It leaves
// out mutants with their own schedule, under which nothing may show, and the mutant whose lock is right and
// whose guard is wrong.
func huntable() []mutant {
	return slices.DeleteFunc(mutants(), func(m mutant) bool { return m.control != "" || m.guard == workloads.FenceWrites || m.sharedByRight() })
}

// attempts lists several hunts for each wrong mutant, and one for each right mutant.
func (h hunts) attempts() []attempt {
	var all []attempt
	for _, m := range huntable() {
		switch {
		case h.only != "" && m.name != h.only:
		case m.guilty == "":
			all = append(all, attempt{mutant: m, seed: 1, blind: hunt.DefaultBlind})
		default:
			for _, blind := range arms() {
				for seed := range h.seeds {
					all = append(all, attempt{mutant: m, seed: uint64(seed + 1), blind: blind})
				}
			}
		}
	}
	return all
}

func (h hunts) attempt(ctx context.Context, i int, a *attempt) error {
	plan, err := hunt.Plan{Lock: clients.MutantPrefix + a.name, Seed: a.seed, Blind: a.blind}.Ready()
	if err != nil {
		return err
	}
	path := filepath.Join(h.store, fmt.Sprint(i))
	folder, err := hunt.Create(path, plan)
	if err != nil {
		return err
	}
	m := hunt.Machine{
		Machine: runs.Machine{Binary: h.binary}, Parallel: h.side, Progress: runs.Silent{}, Budget: time.Hour, Trials: h.trials,
	}
	if a.guilty != "" { // only these hunts end early: a finding against a right mutant must be seen again
		m.Enough = a.isFound
	}
	if _, err := folder.Run(ctx, m, nil); err != nil {
		return err
	}
	result := folder.Result()
	a.verdict = result.Verdict()
	for _, arm := range result.Arms {
		a.trials += arm.Trials
	}
	for _, f := range result.Findings {
		if a.isExposedBy(f) && (a.first == 0 || f.First < a.first) {
			a.first = f.First
		}
		a.found = strings.Join(slices.DeleteFunc([]string{a.found, string(f.Property)}, func(s string) bool { return s == "" }), ", ")
	}
	return os.RemoveAll(path)
}

// missed says whether the hunt did not end as it should.
func (a attempt) missed() bool {
	if a.guilty == "" {
		return a.verdict != checker.Valid
	}
	return a.first == 0
}

// isFound says whether a hunt found what the mutant is guilty of, or anything else that counts.
func (a attempt) isFound(h hunt.Result) bool { return slices.ContainsFunc(h.Findings, a.isExposedBy) }

// isExposedBy says whether a finding exposes the mutant. A mutant that is known to get stuck need not be seen stuck
// again.
func (a attempt) isExposedBy(f hunt.Finding) bool {
	return f.Property == a.guilty || f.Counts()
}

func (a attempt) String() string {
	if a.first == 0 {
		return fmt.Sprintf("nothing in %d trials (%s)", a.trials, a.verdict)
	}
	return fmt.Sprintf("trial %d: %s", a.first, a.found)
}

// errHunted says that a hunt did not end as it should.
var errHunted = errors.New("a wrong mutant was not found by guided trials, or a right one was not valid")

func huntTable(out io.Writer, all []attempt) error {
	fmt.Fprintln(out, "| mutant | guided: found, in trials | blind: found, in trials |\n| --- | --- | --- |")
	var err error
	var sums [2][]int
	for _, m := range huntable() {
		var cells [2][]attempt
		for _, a := range all {
			if a.name == m.name {
				arm := 0
				if a.blind == 1 {
					arm = 1
				}
				cells[arm] = append(cells[arm], a)
			}
		}
		if len(cells[0]) == 0 {
			continue
		}
		if slices.ContainsFunc(cells[0], attempt.missed) {
			err = errHunted
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", m.name, summary(m, cells[0]), summary(m, cells[1]))
		for arm, cell := range cells {
			for _, a := range cell {
				if m.guilty != "" {
					sums[arm] = append(sums[arm], a.trialsUsed())
				}
			}
		}
	}
	for arm, name := range []string{"guided", "blind"} {
		total := 0
		for _, n := range sums[arm] {
			total += n
		}
		fmt.Fprintf(out, "\n%s: %d hunts of wrong mutants, %d trials until the first find or the end", name, len(sums[arm]), total)
	}
	fmt.Fprintln(out)
	return err
}

// trialsUsed is the number of trials until the mutant was found, or of all trials if it was not.
func (a attempt) trialsUsed() int {
	if a.first == 0 {
		return a.trials
	}
	return a.first
}

// summary is, for example, "3 of 3: 1, 1, 4".
func summary(m mutant, all []attempt) string {
	if len(all) == 0 {
		return "–"
	}
	found := 0
	var numbers []string
	for _, a := range all {
		if a.first > 0 {
			found++
			numbers = append(numbers, fmt.Sprint(a.first))
			continue
		}
		numbers = append(numbers, fmt.Sprintf("none in %d", a.trials))
	}
	return fmt.Sprintf("%d of %d: %s", found, len(all), strings.Join(numbers, ", "))
}
