package profile

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/runs"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		low, high int
		want      []int
	}{{1, 1, []int{1}}, {1, 4, []int{1, 2, 4}}, {1, 5, []int{1, 2, 4, 5}}, {3, 20, []int{3, 6, 12, 20}}} {
		if got := Load(c.low, c.high); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d: %v, want %v", c.low, c.high, got, c.want)
		}
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{{nil, 0}, {[]float64{0, 0}, 0}, {[]float64{5}, 1}, {[]float64{3, 3, 3}, 1}, {[]float64{4, 0, 0, 0}, 0.25}, {[]float64{1, 3}, 0.8}} {
		if got := jain(c.shares); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %v, want %v", c.shares, got, c.want)
		}
	}
}

// TestMeasure: workers with separate locks never wait for each other. Workers that share a lock hold it one
// after another.
func TestMeasure(t *testing.T) {
	clustertest.StartsServers(t)
	folder := t.TempDir()
	plan := Plan{Locks: []string{"memory"}, Workers: []int{2}, Time: time.Second}
	m := Machine{Machine: runs.Machine{Binary: clustertest.Binary(t), Store: folder}, Progress: runs.Silent{}}
	p, interrupted, err := plan.Measure(t.Context(), m, nil)
	if err != nil || interrupted || len(p.Points) != 2 {
		t.Fatalf("%+v, %v, %v", p.Points, interrupted, err)
	}
	for _, point := range p.Points {
		if point.Verdict != checker.Valid || point.Holds == 0 || point.PerSecond <= 0 || point.P50 <= 0 || point.P999 < point.P50 || point.Fairness <= 0 {
			t.Errorf("%+v", point)
		}
		if point.Alone && point.Bypassed != nil {
			t.Errorf("alone, and bypassed: %+v", point)
		}
	}
	if err := p.WriteReports(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"profile.json", MarkdownFile, "profile.html", ChartFile} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := (Plan{}).Measure(t.Context(), m, nil); err == nil {
		t.Error("nothing to measure is no error")
	}
}
