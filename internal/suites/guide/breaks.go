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

// Breaks lists the faults that are known to break a lock, the worst first. Faults that break it even behind
// the guard come before all others.
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
			cmp.Compare(boolToInt(b.Guarded.State == Broken), boolToInt(a.Guarded.State == Broken)),
			compareGroups(a.Worst().worstGroup(), b.Worst().worstGroup()),
		)
	})
	return all
}

// Worst is the cell that shows the break: the cell behind the guard if that is broken.
func (b Break) Worst() Cell {
	if b.Guarded.State == Broken {
		return b.Guarded
	}
	return b.Alone
}

// worstGroup is the group that broke the cell; the zero value if the cell is not broken.
func (c Cell) worstGroup() Group {
	group, _ := c.Worst()
	return group
}

// Runs counts the runs of a lock without a guard and behind the given one.
func (e Evidence) Runs(lock, guard string) int64 {
	return numberOf(slices.DeleteFunc(slices.Clone(e), func(r Run) bool {
		return r.Lock != lock || r.Guard != guard && r.Guard != history.GuardNone
	}))
}
