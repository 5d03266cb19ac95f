package guide

import (
	"cmp"
	"slices"

	"lockcheck/history"
)

// Break is a fault that is known to break a lock: without a guard, behind one, or both.
type Break struct {
	Alone, Guarded Cell
}

// Breaks lists what is known to break a lock, the worst first: what does so even behind the guard
// is before all else.
func (e Evidence) Breaks(lock, guard string) []Break {
	faults := e.faultsOf(lock, history.GuardNone)
	for _, fault := range e.faultsOf(lock, guard) {
		if !slices.Contains(faults, fault) {
			faults = append(faults, fault)
		}
	}
	var all []Break
	for _, fault := range faults {
		b := Break{e.Cell(lock, fault, history.GuardNone), e.Cell(lock, fault, guard)}
		if b.Alone.State == Broken || b.Guarded.State == Broken {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b Break) int {
		return cmp.Or(
			cmp.Compare(one(b.Guarded.State == Broken), one(a.Guarded.State == Broken)),
			compareGroups(a.Worst().worst(), b.Worst().worst()),
		)
	})
	return all
}

// Worst is the cell that shows it, that behind the guard if it is broken.
func (b Break) Worst() Cell {
	if b.Guarded.State == Broken {
		return b.Guarded
	}
	return b.Alone
}

// worst is the group that the cell is broken by, the zero value if it is not.
func (c Cell) worst() Group {
	group, _ := c.Worst()
	return group
}

// Runs counts the runs of a lock without a guard and behind one.
func (e Evidence) Runs(lock, guard string) int64 {
	var n int64
	for _, r := range e {
		n += int64(one(r.Lock == lock && (r.Guard == guard || r.Guard == history.GuardNone)))
	}
	return n
}
