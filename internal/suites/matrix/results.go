package matrix

import (
	"time"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
)

// Comparison builds the comparison from the runs made so far.
func (f *Folder) Comparison() (Comparison, error) {
	c := Comparison{
		Schema: Schema, Shard: f.Shard.String(),
		Locks: f.Suite.Locks, Faults: f.Suite.Faults, Guards: f.Suite.Guards,
		Thresholds: len(f.Suite.Thresholds) > 0, About: make(map[string]About),
	}
	for _, lock := range f.Suite.Locks {
		c.About[lock] = about(lock)
	}
	c.Began, c.Took = f.timeSpan()
	for _, place := range f.Suite.places() {
		cell, err := f.judgedCell(place)
		if err != nil {
			return c, err
		}
		c.Cells = append(c.Cells, cell)
	}
	c.Verdict = VerdictOf(c)
	return c, nil
}

func about(lock string) About {
	name, _ := lockfile.CutVersion(lock)
	found, _ := lockfile.Find(name) // the lock file may no longer exist
	return About{Servers: found.Servers.Nodes, Token: found.Info.Token, Clock: found.Info.Clock}
}

// Began is when the first run of the comparison began; zero if none has.
func (f *Folder) Began() time.Time {
	began, _ := f.timeSpan()
	return began
}

// timeSpan returns when the first run began, and how long it took until the last run ended.
func (f *Folder) timeSpan() (began time.Time, took time.Duration) {
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

// judgedCell returns a cell with everything known about it.
func (f *Folder) judgedCell(place Place) (Cell, error) {
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
	// A failed run may have been repeated, so that the cell is valid now. The violations in the rounds
	// happened nevertheless.
	if len(rounds) > 0 {
		first := c.Pool
		c.FirstPool, c.Pool = &first, checker.PoolOf(all)
	}
	if len(rounds) > 0 || f.needsConfirmation(c) {
		confirmCell(&c, rounds, f.Suite.Confirm)
	}
	c.Outdated = f.outdated(place)
	f.Suite.applyExpectation(&c)
	return c, nil
}

// needsConfirmation says whether the runs of a cell must be repeated: the cell is complete, not valid, and
// not as expected.
func (f *Folder) needsConfirmation(c Cell) bool {
	f.Suite.applyExpectation(&c)
	return f.Suite.Confirm > 0 && len(c.Runs) > 0 && c.Missing == 0 && c.Counts != checker.Valid
}

// whyUncounted says why the machine kept a trial from saying anything about its attack; "" if it did not.
func (e entry) whyUncounted(r checker.Results) string {
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

// round builds a cell from one round of its runs. It also returns their results.
func (f *Folder) round(place Place, n int) (c Cell, all []checker.Results, err error) {
	c = Cell{Place: place, Excused: f.Suite.Thresholds.excuse(), Attack: f.attacks[place]}
	outline, why := place.outline(f.Suite)
	for _, seed := range f.Suite.seedsOf(place, n) {
		e, ran := f.latestRun(place, seed)
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
			if why := e.whyUncounted(document.Results); why != "" {
				r = Run{Seed: seed, Folder: e.Run, Verdict: checker.Undecided, Sentence: why, Rest: checker.Undecided}
			} else {
				all = append(all, document.Results)
			}
		}
		if place.isAttack() && !e.Whole {
			r.Folder = "" // only the results are left
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
