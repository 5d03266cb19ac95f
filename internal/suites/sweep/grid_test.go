package sweep

import (
	"slices"
	"testing"
	"time"

	"lockcheck/clients"
	"lockcheck/workloads"
)

func span(low, high time.Duration) workloads.Range { return workloads.Range{Min: low, Max: high} }

func plan(ttl, pause, section workloads.Range, steps int) Plan {
	return Plan{Lock: "memory", TTL: ttl, Pause: pause, Section: section, Steps: steps, info: clients.Info{Name: "memory", TTL: time.Second}}
}

// TestValues: an axis includes both ends, and neighbours have the same ratio.
func TestValues(t *testing.T) {
	a := axis{span(100*time.Millisecond, 10*time.Second), 3}
	for position, want := range map[int]time.Duration{
		0: 100 * time.Millisecond, a.last() / 2: time.Second, a.last(): 10 * time.Second, 1: 130 * time.Millisecond,
	} {
		if got := a.value(position); got != want {
			t.Errorf("value %d is %s, want %s", position, got, want)
		}
	}
	if fixed := (axis{span(time.Second, time.Second), 3}); fixed.last() != 0 || fixed.value(0) != time.Second {
		t.Errorf("one value is %d more, from %s", fixed.last(), fixed.value(0))
	}
}

// TestCells: the first grid has a cell for each pair of neighbours, and the halves of a cell cover it.
func TestCells(t *testing.T) {
	second := span(time.Second, time.Second)
	for _, c := range []struct {
		name                   string
		plan                   Plan
		cells, corners, halves int
	}{
		{"one dimension", plan(span(time.Second, time.Minute), second, second, 3), 2, 2, 2},
		{"two", plan(span(time.Second, time.Minute), span(time.Second, time.Minute), second, 3), 4, 4, 4},
		{"three", plan(span(time.Second, time.Minute), span(time.Second, time.Minute), span(time.Second, time.Minute), 2), 1, 8, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			cells := c.plan.cells()
			if len(cells) != c.cells || len(cells[0].corners()) != c.corners || len(cells[0].halves()) != c.halves {
				t.Fatalf("%d cells, %d corners, %d halves", len(cells), len(cells[0].corners()), len(cells[0].halves()))
			}
			whole := cells[0]
			var corners []place
			for _, h := range whole.halves() {
				corners = append(corners, h.corners()...)
			}
			for _, at := range whole.corners() {
				if !slices.Contains(corners, at) {
					t.Errorf("%v is in no half", at)
				}
			}
			for range depth {
				whole = whole.halves()[0]
			}
			if whole.halves() != nil {
				t.Errorf("%v is divided further", whole)
			}
		})
	}
}

// TestLeasesAsGranted: if the service rounds leases up, the point has the granted lease.
func TestLeasesAsGranted(t *testing.T) {
	p := plan(span(time.Second, 4*time.Second), span(time.Second, time.Second), span(time.Second, time.Second), 2)
	p.info.TTLStep = time.Second
	if got := p.pointAt(place{1}).TTL; got != 2*time.Second {
		t.Errorf("the lease is %s", got)
	}
}

// TestPlanCheck has each mistake once, and valid plans.
func TestPlanCheck(t *testing.T) {
	second, more := span(time.Second, time.Second), span(time.Second, time.Minute)
	for _, c := range []struct {
		name string
		plan Plan
		ok   bool
	}{
		{"one varies", plan(more, second, second, 4), true},
		{"all vary", plan(more, more, more, 4), true},
		{"none varies", plan(second, second, second, 4), false},
		{"no time", plan(more, span(0, time.Second), second, 4), false},
		{"one step", plan(more, second, second, 1), false},
		{"steps without end", plan(more, second, second, 21), false},
	} {
		if err := c.plan.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	for lock, ok := range map[string]bool{"memory": true, "file": false, "memroy": false} {
		p := plan(more, second, second, 2)
		p.Lock = lock
		if _, err := p.Ready(); (err == nil) != ok {
			t.Errorf("%s: %v", lock, err)
		}
	}
}
