package matrix

import (
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
)

// Comparison puts together the results of the runs that are there.
func (f *Folder) Comparison() (Comparison, error) {
	c := Comparison{
		Schema: Schema, Shard: f.Shard.String(),
		Locks: f.Suite.Locks, Faults: f.Suite.Faults, Guards: f.Suite.Guards,
		Thresholds: len(f.Suite.Thresholds) > 0, About: make(map[string]About),
	}
	for _, lock := range f.Suite.Locks {
		c.About[lock] = about(lock)
	}
	c.Began, c.Took = f.times()
	for _, place := range f.Suite.places() {
		cell, err := f.judged(place)
		if err != nil {
			return c, err
		}
		c.Cells = append(c.Cells, cell)
	}
	c.Verdict = VerdictOf(c)
	return c, nil
}

func about(lock string) About {
	name, _, _ := strings.Cut(lock, "@")
	found, _ := lockfile.Find(name) // a file may be gone by now
	return About{Servers: found.Servers.Nodes, Token: found.Info.Token, Clock: found.Info.Clock}
}

// times says when the first run began and how long it was until the last one ended.
func (f *Folder) times() (began time.Time, took time.Duration) {
	var end time.Time
	for _, e := range f.entries() {
		if e.OutOfTime {
			continue
		}
		if began.IsZero() || e.Began.Before(began) {
			began = e.Began
		}
		if over := e.Began.Add(e.Took); over.After(end) {
			end = over
		}
	}
	return began, end.Sub(began)
}

// judged is a cell with all that is there of it.
func (f *Folder) judged(place Place) (Cell, error) {
	c, all, err := f.round(place, 0)
	if err != nil {
		return c, err
	}
	var rounds []Cell
	for n := 1; n <= f.Suite.Confirm; n++ {
		r, results, err := f.round(place, n)
		if err != nil {
			return c, err
		}
		if len(r.Runs) > 0 {
			rounds, all = append(rounds, r), append(all, results...)
		}
	}
	// A failed run may have been repeated since, so that the cell is valid now. What the rounds saw
	// happened nevertheless.
	if len(rounds) > 0 {
		first := c.Pool
		c.FirstPool, c.Pool = &first, checker.PoolOf(all)
	}
	if len(rounds) > 0 || f.needsConfirmation(c) {
		confirm(&c, rounds, f.Suite.Confirm)
	}
	c.Outdated = f.outdated(place)
	f.Suite.expect(&c)
	return c, nil
}

// needsConfirmation says whether the runs of a cell are to be repeated: it is complete, not valid,
// and not as expected.
func (f *Folder) needsConfirmation(c Cell) bool {
	f.Suite.expect(&c)
	return f.Suite.Confirm > 0 && len(c.Runs) > 0 && c.Missing == 0 && c.Counts != checker.Valid
}

// uncounted says why a trial tells nothing of its attack, because of the machine; "" if it does.
func (e entry) uncounted(r checker.Results) string {
	switch {
	case !e.isAttack():
		return ""
	case byMachine(r, e.Late):
		return tooBusy
	case e.Late && r.Verdict == checker.Valid && len(r.Faults) > 0:
		return tooLate
	}
	return ""
}

// round is a cell by one round of its runs, and the results of these.
func (f *Folder) round(place Place, n int) (c Cell, all []checker.Results, err error) {
	c = Cell{Place: place, Excused: f.Suite.Thresholds.excuse(), Attack: f.attacks[place]}
	outline, why := place.outline(f.Suite)
	for _, seed := range f.Suite.seedsOf(place, n) {
		e, ran := f.ran(place, seed)
		if !ran || e.OutOfTime {
			c.Missing++
			if ran {
				c.OutOfTime++
			}
			continue
		}
		r := Run{Seed: seed, Verdict: checker.Broken, Sentence: e.Failed}
		if e.Run != "" {
			document, err := runs.ReadResults(f.file(e.Run))
			if err != nil {
				return c, nil, err
			}
			r = c.add(seed, e.Run, document)
			if why := e.uncounted(document.Results); why != "" {
				r = Run{Seed: seed, Folder: e.Run, Verdict: checker.Undecided, Sentence: why, Rest: checker.Undecided}
			} else {
				all = append(all, document.Results)
			}
		}
		if place.isAttack() && !e.Whole {
			r.Folder = "" // of its history nothing is left
		}
		r.Took, r.Command = e.Took, place.command(f.Suite, outline, seed)
		c.Runs = append(c.Runs, r)
	}
	if unsupported(why) != "" && len(c.Runs) == 0 {
		c.Unavailable, c.Missing = unsupported(why), 0
		return c, nil, nil
	}
	c.Pool = checker.PoolOf(all)
	if len(c.Runs) > 0 {
		c.Thresholds = f.Suite.Thresholds.judge(place, c.Pool, c.Missing == 0)
	}
	c.judge()
	return c, all, nil
}
