package guide

import (
	"strings"

	"lockcheck/checker"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/suites/matrix"
)

// Annotate tells each cell of a comparison what is known of it, where that is worse than what
// the comparison saw.
func (e Evidence) Annotate(m *matrix.Comparison) {
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.Unavailable != "" || c.Verdict == checker.Violation {
			continue
		}
		if g, broke := e.Cell(nameOfLock(c.Lock), Normal(c.Fault), c.Guard).Worst(); broke {
			c.Known = &matrix.Known{Text: g.Text(), Line: g.Command()}
		}
	}
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
