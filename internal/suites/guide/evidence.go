package guide

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/clients"
)

//go:embed evidence.jsonl
var embeddedEvidence []byte

// Evidence is what is known of locks: runs sorted by lock, fault and time.
type Evidence []Run

// Known is the evidence embedded in this lockcheck.
func Known() (Evidence, error) { return Read(bytes.NewReader(embeddedEvidence)) }

// maxLine bounds the JSON of one run, in bytes. A run may contain a sentence from a user's own lock.
const maxLine = 1 << 20

// Read reads evidence as written by Write. Errors name the line.
func Read(r io.Reader) (Evidence, error) {
	var all Evidence
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var run Run
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			return nil, fmt.Errorf("evidence: line %d: %w", n, err)
		}
		all = append(all, run)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	return all, nil
}

// Write writes evidence as JSON, one run per line.
func (e Evidence) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, run := range e {
		if err := encoder.Encode(run); err != nil {
			return fmt.Errorf("evidence: %w", err)
		}
	}
	return nil
}

// With adds runs. A run that is already there is replaced only if it has been judged worse since. Sums of trials
// are replaced by sums of as many trials or more. No other run is ever removed.
func (e Evidence) With(more Evidence) Evidence {
	all, more := latestSums(e, more)
	at := make(map[string]int)
	for i, run := range all {
		at[run.ID] = i
	}
	for _, run := range more {
		i, there := at[run.ID]
		switch {
		case !there:
			at[run.ID] = len(all)
			all = append(all, run)
		case isWorse(run.Verdict, all[i].Verdict):
			all[i] = run
		}
	}
	slices.SortStableFunc(all, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Guard, b.Guard), cmp.Compare(a.Experiment, b.Experiment),
			cmp.Compare(a.When, b.When), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// isWorse says whether verdict a is more serious than another verdict b of the same run.
func isWorse(a, b checker.Verdict) bool {
	return a != b && checker.MostTelling([]checker.Verdict{a, b}) == a
}

// Locks lists the locks that have runs: first in the order of the table of locks, then others.
func (e Evidence) Locks() []string {
	var names []string
	for _, r := range e {
		if !slices.Contains(names, r.Lock) {
			names = append(names, r.Lock)
		}
	}
	table := clients.Names()
	place := func(lock string) int {
		name, _, _ := strings.Cut(lock, "@")
		name = strings.FieldsFunc(name, func(r rune) bool { return r == '+' || r == ',' })[0]
		if i := slices.Index(table, name); i >= 0 {
			return i
		}
		return len(table)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return names
}

// faultsOf lists the faults of the runs of a lock behind a guard, the usual ones first.
func (e Evidence) faultsOf(lock, guard string) []string {
	faults := Usual()
	for _, r := range e {
		if r.Lock != lock || r.Guard != guard {
			continue
		}
		for _, f := range r.Faults {
			if !slices.Contains(faults, f.Name) {
				faults = append(faults, f.Name)
			}
		}
	}
	return faults
}
