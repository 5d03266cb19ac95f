package runs

import (
	"path/filepath"
	"sync"
	"testing"

	"lockcheck/history"
)

// TestRecorderStalls: the history can be read even if other events of the harness are recorded at the same
// time.
func TestRecorderStalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), HistoryFile)
	writer, err := history.Create(path, history.Header{})
	if err != nil {
		t.Fatal(err)
	}
	r := recorder{writer: writer, failed: func(err error) { t.Error(err) }}
	const each = 200
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range each {
				r.Stalled(history.Now() - 1)
				r.Phase(history.PhaseRecovery, "")
			}
		})
	}
	all.Wait()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := history.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Events) != 4*each {
		t.Errorf("%d events, want %d", len(h.Events), 4*each)
	}
	if err := history.Validate(h); err != nil {
		t.Error(err)
	}
}
