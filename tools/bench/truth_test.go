package bench

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// TestTruthIsWhatTheCheckerFinds: the checker finds in a history exactly what its writer reports. It uses
// keys that many workers want, and keys that no other worker asks for during a pause.
func TestTruthIsWhatTheCheckerFinds(t *testing.T) {
	for _, s := range []shape{
		{workload: history.WorkloadSet, keys: 1, workers: 16, operations: 20_000},
		{workload: history.WorkloadMutex, keys: 1, workers: 16, operations: 20_000},
		{workload: history.WorkloadSet, keys: 100, workers: 200, operations: 4_600}, // no worker asks for the lock of the last pause
		{workload: history.WorkloadSet, keys: 10_000, workers: 20, operations: 20_000},
		{workload: history.WorkloadMutex, keys: 1_000, workers: 5, operations: 20_000},
	} {
		s.fate = mix
		t.Run(fmt.Sprintf("%s-%d-%d-%d", s.workload, s.keys, s.workers, s.operations), func(t *testing.T) {
			var text bytes.Buffer
			happened, err := s.write(&text)
			if err != nil {
				t.Fatal(err)
			}
			h, err := history.ReadAll(&text)
			if err != nil {
				t.Fatal(err)
			}
			found := checker.Check(h, checker.Options{NoHolds: true, PorcupineLimit: time.Millisecond})
			if err := happened.compareWith(found, s.workload); err != nil {
				t.Error(err)
			}
		})
	}
}
