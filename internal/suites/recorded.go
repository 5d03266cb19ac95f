package suites

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"lockcheck/internal/runs"
)

// Recorded is a run as a ledger has it.
type Recorded struct {
	// Run is its folder, relative to that of the ledger; "" if it has no results.
	Run   string    `json:"run"`
	Began time.Time `json:"began"`
	// Took is how long it took, start and end of its servers included.
	Took   time.Duration `json:"took_ns"`
	Failed string        `json:"failed,omitempty"` // why there are no results
}

// Record describes a run that was made below a folder. Its error is what went wrong after the run
// was judged, such as that not all could be removed.
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
		err = cmp.Or(m.Err, err) // why there are none
		r.Failed, _, _ = strings.Cut(err.Error(), "\n")
		return r, m.Err
	}
	r.Run = run
	return r, m.Err
}
