package bench

import (
	"bytes"
	"fmt"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// BenchmarkJudge reads and checks synthetic histories of a lock that often fails. It compares the findings
// with what really happened, so that a checker that finds nothing cannot pass for a fast one. Ten times the
// operations must take about ten times as long. Each of the last two shapes, which once took quadratic time,
// must take about twice as long as the shape before it.
func BenchmarkJudge(b *testing.B) {
	alternating := func(n int) fate { return []fate{double, stepped}[n%2] }
	var shapes []shape
	for _, s := range []shape{
		{name: "holds only", workload: history.WorkloadMutex, keys: 1, workers: 16, fate: mix},
		{name: "updates", workload: history.WorkloadSet, keys: 1, workers: 16, fate: mix},
		{name: "updates of 100 keys", workload: history.WorkloadSet, keys: 100, workers: 200, fate: mix},
		{name: "updates of 10,000 keys", workload: history.WorkloadSet, keys: 10_000, workers: 1_000, fate: mix},
	} {
		for s.operations = 100_000; s.operations <= 1_000_000; s.operations *= 10 {
			shapes = append(shapes, s)
		}
	}
	for n := 8_000; n <= 32_000; n *= 2 {
		shapes = append(shapes, shape{name: "as many overlaps as faults", workload: history.WorkloadMutex, keys: 1, workers: 3, operations: 4 * n, fate: alternating})
	}
	for n := 750; n <= 3_000; n *= 2 {
		shapes = append(shapes, shape{name: "half of the workers stuck", workload: history.WorkloadMutex, keys: 1, workers: n / 2, stuck: n / 2, operations: 100 * n, fate: func(int) fate { return well }})
	}
	for _, s := range shapes {
		b.Run(fmt.Sprintf("%s/%d", s.name, s.operations), func(b *testing.B) {
			var text bytes.Buffer
			happened, err := s.write(&text)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			for b.Loop() {
				h, err := history.ReadAll(bytes.NewReader(text.Bytes()))
				if err != nil {
					b.Fatal(err)
				}
				if err := happened.compareWith(checker.Check(h, checker.Options{NoHolds: true}), s.workload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// compareWith compares what really happened with the findings.
func (t truth) compareWith(r checker.Results, workload string) error {
	var counted int64
	for _, f := range r.Faults {
		if f.Counts() {
			counted++
		}
	}
	for _, c := range []struct {
		what           string
		found, happens int64
	}{
		{"overlaps", r.Overlaps.Total(), t.overlaps},
		{"lost updates", r.Updates.Lost, t.lost},
		{"acquires without an answer", r.Operations.Unknown, t.unknown},
		{"faults that count", counted, t.faults},
		{"stuck workers", int64(r.Finding(checker.Liveness).Total), t.stuck},
	} {
		if c.found != c.happens {
			return fmt.Errorf("%d %s were found, and there are %d", c.found, c.what, c.happens)
		}
	}
	switch stale := r.Finding(checker.NoStaleWrite).Total; {
	case t.overlaps+t.stuck == 0:
		return fmt.Errorf("nothing goes wrong in it")
	case workload == history.WorkloadSet && (stale == 0 || t.lost == 0):
		return fmt.Errorf("%d stale writes and %d lost updates", stale, t.lost)
	}
	return nil
}
