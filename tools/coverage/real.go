package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"lockcheck/checker"
	"lockcheck/internal/runs"
	"lockcheck/internal/stats"
)

// realRuns are runs of the lock memory, of the default length, whose holders are paused.
type realRuns struct {
	binary, store string
	count, side   int
}

// name is the folder in which lockcheck stores such runs.
const name = "memory-set-pause"

func (r realRuns) print(out io.Writer) error {
	if err := r.makeMissing(); err != nil {
		return err
	}
	all, err := r.judgeStored()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d runs of `lockcheck test --lock memory --nemesis pause`, each held against the share of all others, which are independent of it:\n\n", len(all))
	head(out, "runs", "n", "coverage in %", "too high", "too low", "mean width", "over updates")
	groups(out, "one, the first 30", chunks(all[:min(30, len(all))], 1), all)
	groups(out, "one", chunks(all, 1), all)
	groups(out, "five pooled, apart", chunks(all, 5), all)
	groups(out, "ten pooled, apart", chunks(all, 10), all)
	groups(out, "ten pooled, drawn", drawn(all, 10, 500), all)
	fmt.Fprintf(out, "\nSets of these runs against each other, each run in one of them, drawn 500 times:\n\n")
	head(out, "runs a side", "worse in %", "better in %")
	random := rand.New(rand.NewPCG(1, 6))
	for _, n := range []int{5, 10, 20} {
		worse, better := 0.0, 0.0
		for range 500 {
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			w, b := worseOrBetter(checker.Differences(all[:n], all[n:2*n]))
			worse += w
			better += b
		}
		row(out, fmt.Sprint(n), percent(worse/5), percent(better/5))
	}
	return nil
}

// makeMissing makes the missing runs.
func (r realRuns) makeMissing() error {
	there, err := runs.At(filepath.Join(r.store, name))
	if err != nil {
		there = nil // there are no runs yet
	}
	var side errgroup.Group
	side.SetLimit(r.side)
	for i := len(there); i < r.count; i++ {
		side.Go(func() error {
			command := exec.CommandContext(context.Background(), r.binary, "test", "--lock", "memory", "--nemesis", "pause",
				"--seed", fmt.Sprint(i+1), "--store", r.store)
			said, err := command.CombinedOutput()
			var exit *exec.ExitError
			const undecided = 2 // valid, violation and undecided runs all count
			if errors.As(err, &exit) && exit.ExitCode() <= undecided {
				err = nil
			}
			if err != nil {
				return fmt.Errorf("%v: %w\n%s", command.Args, err, said)
			}
			return nil
		})
	}
	return side.Wait()
}

// judgeStored judges the stored runs again with this version of lockcheck.
func (r realRuns) judgeStored() ([]checker.Results, error) {
	folders, err := runs.At(filepath.Join(r.store, name))
	if err != nil {
		return nil, err
	}
	var all []checker.Results
	for _, folder := range folders[:min(len(folders), r.count)] {
		judgement, err := runs.Judge(folder)
		if err != nil {
			return nil, err
		}
		judgement.Results.Holds = nil
		all = append(all, judgement.Results)
	}
	return all, nil
}

// chunks divides runs into groups of equal size. It leaves out the rest.
func chunks(all []checker.Results, size int) [][]checker.Results {
	return slices.Collect(slices.Chunk(all[:len(all)/size*size], size))
}

func drawn(all []checker.Results, size, n int) [][]checker.Results {
	random := rand.New(rand.NewPCG(1, 7))
	var groups [][]checker.Results
	for range n {
		var group []checker.Results
		for _, i := range random.Perm(len(all))[:size] {
			group = append(group, all[i])
		}
		groups = append(groups, group)
	}
	return groups
}

// groups prints how often the interval of each group of runs contains the share of all other runs.
func groups(out io.Writer, name string, groups [][]checker.Results, all []checker.Results) {
	everything := checker.PoolOf(all)
	var t tally
	for _, group := range groups {
		p := checker.PoolOf(group)
		others := stats.Count{K: everything.Lost - p.Lost, N: everything.Acknowledged - p.Acknowledged}
		t.addPool(others.Share(), p)
	}
	if t.trials > 0 {
		row(out, name, fmt.Sprint(t.trials), percent(t.share()), fmt.Sprint(t.above), fmt.Sprint(t.below), t.meanWidth(), percent(t.of(t.overUpdates)))
	}
}
