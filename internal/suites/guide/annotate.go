package guide

import (
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/suites/matrix"
)

// Annotate tells each cell of a comparison what is known of it, where that is worse than what
// the comparison saw, and which reproduction shows what an attack did.
func (e Evidence) Annotate(m *matrix.Comparison) {
	for i := range m.Cells {
		c := &m.Cells[i]
		_, attack := matrix.AttackByName(c.Fault)
		if c.Unavailable != "" || c.Verdict == checker.Violation && !attack {
			continue
		}
		known := e.Cell(nameOfLock(c.Lock), Normal(matrix.Nemesis(c.Fault)), c.Guard)
		if c.Verdict == checker.Violation {
			c.Repro = known.reproduction()
		} else if g, broke := known.Worst(); broke {
			c.Known = &matrix.Known{Text: g.Text(), Line: g.Command()}
		}
	}
}

// reproduction is the command of one that breaks the lock; nil for none.
func (c Cell) reproduction() []string {
	for _, g := range c.Groups {
		if isRepro := strings.HasPrefix(g.Experiment, "repro/"); isRepro && g.Broke > 0 && !strings.HasSuffix(g.Experiment, "/control") {
			return strings.Fields(g.Command())
		}
	}
	return nil
}

// nameOfLock is the name under which there is evidence of what a comparison calls a lock: that
// of its file, if it has one.
func nameOfLock(lock string) string {
	path, version, _ := strings.Cut(lock, "@")
	found, err := lockfile.Find(path)
	if err != nil {
		return lock
	}
	if version == "" || version == found.Servers.Version("") {
		return found.Info.Name
	}
	return found.Info.Name + "@" + version
}
