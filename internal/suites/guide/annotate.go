package guide

import (
	"strings"

	"lockcheck/internal/lockfile"
	"lockcheck/reports"
)

// Annotate tells each cell of a comparison what is known of it, where that is worse than what
// the comparison saw.
func (e Evidence) Annotate(m *reports.Matrix) {
	for i := range m.Cells {
		c := &m.Cells[i]
		if c.Unavailable != "" {
			continue
		}
		c.Known = c.WorseIn(e.Cell(nameOfLock(c.Lock), Normal(c.Fault), c.Guard).View())
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
