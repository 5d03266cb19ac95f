package suites

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"lockcheck/internal/runs"
)

// Recorded is a run as a ledger stores it.
type Recorded struct {
	// Run is the run's folder, relative to the ledger's folder; "" if the run has no results.
	Run   string    `json:"run"`
	Began time.Time `json:"began"`
	// Took is how long the run took, including the start and end of its servers.
	Took   time.Duration `json:"took_ns"`
	Failed string        `json:"failed,omitempty"` // why there are no results
}

// Record describes a run that was made below a folder. Its error is what went wrong after the run was judged,
// such as a failure to remove something.
func Record(folder string, m Made) (Recorded, error) {
	r := Recorded{Began: m.Began, Took: m.Took}
	if m.Outcome.History == nil {
		r.Failed = m.Err.Error()
		return r, nil
	}
	run, err := filepath.Rel(folder, m.Outcome.Folder)
	if err != nil {
		return r, err
	}
	if _, err := runs.ReadResults(m.Outcome.Folder); err != nil {
		err = cmp.Or(m.Err, err) // why there are no results
		r.Failed, _, _ = strings.Cut(err.Error(), "\n")
		return r, m.Err
	}
	r.Run = run
	return r, m.Err
}
