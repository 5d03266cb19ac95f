package checker

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// cases is the folder for the smallest histories that are judged wrongly.
var cases = flag.String("cases", "", "a folder for the smallest histories of simulated disagreements, one folder each")

func keep(t *testing.T, kind string, h *history.History) {
	if *cases == "" {
		return
	}
	dir := filepath.Join(*cases, strings.NewReplacer(" ", "-", ":", "", ",", "").Replace(kind))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "history.jsonl"), []byte(lines(h)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSimulated compares the checkers with simulations that know the truth.
func TestSimulated(t *testing.T) {
	kinds, reached := make(map[string]int), make(map[string]int)
	small := make(map[string]*history.History)
	first := make(map[string]string)
	searched, illegal := 0, 0
	n := histories(3000)
	for seed := range n {
		rng := rand.New(rand.NewPCG(seed, 2))
		w := simulation.Random(rng, seed%2 == 0)
		h, truth := simulation.Run(seed, w)
		if w.Most == 0 && rng.IntN(4) == 0 { // simulates a killed run
			h.Events = h.Events[:1+rng.IntN(len(h.Events)-1)]
		}
		if err := history.Validate(h); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := askOracle(w, h, truth, Check(h, Options{}))
		searched, illegal = searched+o.searched, illegal+o.illegal
		for name, is := range situations {
			if is(o) {
				reached[name]++
			}
		}
		for kind := range o.wrong {
			if kinds[kind]++; kinds[kind] > 1 {
				continue
			}
			small[kind] = shrink(w, h, truth, kind)
			first[kind] = fmt.Sprintf("seed %d: %s", seed, disagree(w, small[kind], truth)[kind])
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Errorf("%s: %d of %d, first %s\n%s", kind, kinds[kind], n, first[kind], lines(small[kind]))
		keep(t, kind, small[kind])
	}
	t.Logf("all orders were tried of %d keys, and none was legal of %d", searched, illegal)
	for _, name := range slices.Sorted(maps.Keys(situations)) {
		t.Logf("%5d of %d: %s", reached[name], n, name)
		if reached[name] == 0 && !testing.Short() {
			t.Errorf("no simulation in which %s", name)
		}
	}
}

// TestForgedResults checks that the oracle detects wrong results.
func TestForgedResults(t *testing.T) {
	lists := func(r *Results, p Property) *Finding {
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Property == p })
		r.Findings = slices.Clone(r.Findings)
		if i < 0 { // the run does not have this property
			return &Finding{}
		}
		return &r.Findings[i]
	}
	silent := func(p Property) func(*Results, *history.History) {
		return func(r *Results, _ *history.History) {
			f := lists(r, p)
			f.Verdict, f.Total, f.Violations = Valid, 0, nil
		}
	}
	pair := func(p Property, cause string) func(*Results, *history.History) {
		return func(r *Results, h *history.History) {
			if len(r.Holds) < 2 {
				return
			}
			a, b := r.Holds[len(r.Holds)-1], r.Holds[0] // the later before the earlier
			f := lists(r, p)
			f.Verdict, f.Total = Violation, f.Total+1
			f.Violations = append(slices.Clone(f.Violations), Incident{
				Key: a.Key, From: a.Start, To: b.Start, Workers: []string{a.Worker, b.Worker}, Grants: []string{a.Grant, b.Grant},
				Cause: cause, Element: -1, Figures: IncidentFigures{Holder: HolderPaused},
			})
		}
	}
	for _, c := range []struct {
		name, kind string
		forge      func(*Results, *history.History)
	}{
		{"no overlaps", "overlaps counted", silent(MutualExclusion)},
		{"no expired grants", "expired grants counted", silent(NoExpiredGrant)},
		{"no wrong releases", "wrong release missed", silent(NoWrongRelease)},
		{"no wrong renewals", "wrong renewal missed", silent(NoWrongRenewal)},
		{"no stale writes", "stale write missed", silent(NoStaleWrite)},
		{"no lost updates", "final state judged", silent(NoLostUpdate)},
		{"no wrong tokens", "wrong token missed", silent(FencingOrder)},
		{"linearizable", "order: illegal, not accused", silent(Linearizability)},
		{"a wrong release", "release not wrong", pair(NoWrongRelease, "")},
		{"a wrong renewal", "renewal not wrong", pair(NoWrongRenewal, "")},
		{"a wrong token", "token not wrong", pair(FencingOrder, "")},
		{"a stale write", "write not stale", pair(NoStaleWrite, CauseUnexplained)},
		{"granted twice", "cause: " + CauseTwice, pair(MutualExclusion, CauseTwice)},
		{"released by another", "cause: " + CauseReleasedByOther, pair(MutualExclusion, CauseReleasedByOther)},
		{"paused", "cause: " + CausePaused, pair(MutualExclusion, CausePaused)},
		{"a paused holder", "state: paused", pair(MutualExclusion, "")},
		{"a double grant", "right service: double grant", func(r *Results, _ *history.History) { r.Overlaps.DoubleGrants++ }},
		{"a loss", "lost updates counted", func(r *Results, _ *history.History) { r.Updates.Lost++ }},
		{"a loss event", "loss events counted", func(r *Results, _ *history.History) { r.Updates.LossEvents++ }},
		{"a refusal", "refusals counted", func(r *Results, _ *history.History) { r.Fence.RefusedWrites++ }},
		{"faults that met all", "exercised: " + history.Pause, func(r *Results, _ *history.History) {
			r.Faults = slices.Clone(r.Faults)
			for i := range r.Faults {
				r.Faults[i].Exercised = true
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3000) {
				w := simulation.Random(rand.New(rand.NewPCG(seed, 2)), seed%2 == 0)
				h, truth := simulation.Run(seed, w)
				r := Check(h, Options{})
				if askOracle(w, h, truth, r).wrong[c.kind] != "" {
					continue
				}
				if c.forge(&r, h); askOracle(w, h, truth, r).wrong[c.kind] != "" {
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// TestOrderAgainstSearch: for small histories without faults, porcupine and the order of grants agree with a
// search over all orders.
func TestOrderAgainstSearch(t *testing.T) {
	compared, illegal := 0, 0
	for seed := range histories(10000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := simulation.Random(rng, seed%4 == 0)
		w.Workers, w.Attempts, w.Keys, w.Most, w.Jam = 2+rng.IntN(2), 1+rng.IntN(2), 1, 0, 0
		if w.Workload != history.WorkloadReadWrite {
			w.Workload = history.WorkloadMutex
		}
		h, _ := simulation.Run(seed, w)
		n := newSearch(recordOf(h), "k0")
		if n == nil || !n.exact {
			continue
		}
		compared++
		want := porcupine.Ok
		if !n.legal() {
			want = porcupine.Illegal
			illegal++
		}
		o := secondOpinion(newRun(h), time.Minute)
		got, judged := o.results["k0"]
		exclusive := w.Permits == 1 && w.Reentrant == 1 && w.Workload != history.WorkloadReadWrite // only exclusive locks have an order of grants
		if judged && (got != want || exclusive && o.conflicts.total > 0 != (want == porcupine.Illegal)) {
			t.Fatalf("seed %d: porcupine says %s with %v, the search %s\n%s", seed, got, o.conflicts.first(), want, lines(h))
		}
	}
	t.Logf("%d of %d illegal", illegal, compared)
	if !testing.Short() && (illegal < compared/20 || illegal > compared/2 || compared < 1000) {
		t.Errorf("%d of %d illegal: this compares little", illegal, compared)
	}
}
