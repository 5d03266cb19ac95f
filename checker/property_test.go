package checker

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"lockcheck/history"
)

// more multiplies the number of random histories: go test ./checker -more 20.
var more = flag.Uint64("more", 1, "how many times as many random histories to try")

// histories is how many to try where so many are usual: a tenth with -short.
func histories(usual uint64) uint64 {
	if testing.Short() {
		usual /= 10
	}
	return usual * *more
}

func TestOverlapAgainstBruteForce(t *testing.T) {
	for seed := range histories(5000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := newScript()
		for i := range 2 + rng.IntN(12) {
			g := fmt.Sprintf("g%d", i)
			from := float64(1 + rng.IntN(30))
			worker := fmt.Sprintf("w%d", 1+rng.IntN(4))
			key := fmt.Sprintf("k%d", rng.IntN(2))
			s.grants[g] = history.Event{Process: worker, Key: key, Grant: g}
			s.do(history.Acquire, g, from, from+float64(rng.IntN(3)), history.Event{Type: history.OK, Until: ms(from + float64(rng.IntN(12)))})
			if rng.IntN(8) > 0 {
				s.release(g, from+3+float64(rng.IntN(12)), from+40)
			}
		}
		h := &history.History{Header: s.header, Events: s.events}
		r := newRun(h)
		got, want := r.pairs(slices.Collect(r.overlaps)), r.pairs(quadraticOverlaps(r.holds))
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

func (r *run) pairs(overlaps []overlap) []string {
	var all []string
	for _, o := range overlaps {
		grants := r.nameAll(o.earlier.grant, o.later.grant)
		slices.Sort(grants)
		all = append(all, fmt.Sprint(grants, o.from, o.to, o.class))
	}
	slices.Sort(all)
	return all
}

func TestPorcupineAgainstBruteForce(t *testing.T) {
	illegal, compared := 0, 0
	for seed := range histories(40000) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := randomWorld(rng, rng.IntN(4) == 0)
		w.workers, w.attempts = 2+rng.IntN(2), 1+rng.IntN(2)
		h := simulate(seed, w).history(t)
		if len(h.Events) > 2 && rng.IntN(4) == 0 {
			h.Events = h.Events[:rng.IntN(len(h.Events))] // killed
		}
		if clientOps(h) > 7 {
			continue
		}
		compared++
		want := porcupine.Ok
		if !naiveLinearizable(h) {
			want = porcupine.Illegal
			illegal++
		}
		o := secondOpinion(newRun(h), time.Minute)
		got, judged := o.results["k0"]
		if !judged {
			continue
		}
		if got != want || o.conflicts.total > 0 != (want == porcupine.Illegal) {
			t.Fatalf("seed %d: porcupine says %s with %v, the search %s\n%s", seed, got, o.conflicts.first(), want, dumpEvents(h))
		}
	}
	t.Logf("%d of %d illegal", illegal, compared)
	if !testing.Short() && (illegal < compared/10 || illegal > compared*9/10 || compared < 5000) {
		t.Errorf("%d of %d illegal: this compares little", illegal, compared)
	}
}

func dumpEvents(h *history.History) string {
	var b strings.Builder
	for _, e := range h.Events {
		line, _ := json.Marshal(e)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// TestCorrectLock: no violation is reported that did not happen.
func TestCorrectLock(t *testing.T) {
	outlived, stale := 0, 0
	for seed := range histories(3000) {
		w := randomWorld(rand.New(rand.NewPCG(seed, 4)), true)
		s := simulate(seed, w).end()
		r := Check(s.history(t), Options{})
		outlived += int(r.Overlaps.OutlivedLeases)
		for _, v := range r.of(NoStaleWrite).Violations {
			stale++
			if slices.Index(s.served, v.Grants[0]) > slices.Index(s.served, v.Grants[1]) {
				t.Fatalf("seed %d: %s, but %s was granted first\n%s", seed, v.What, v.Grants[1], r.dump())
			}
		}
		for _, p := range []Property{NoWrongRelease, FencingOrder, Linearizability} {
			if r.of(p).Verdict == Violation {
				t.Fatalf("seed %d: a correct lock violates %s\n%s", seed, p, r.dump())
			}
		}
		// Without a lease a lost release leaves the lock locked for good.
		if !w.noLease && r.of(Liveness).Verdict == Violation {
			t.Fatalf("seed %d: a correct lock is stuck\n%s", seed, r.dump())
		}
		if r.Overlaps.BrokenPromises > 0 {
			t.Fatalf("seed %d: a correct lock broke a promise\n%s", seed, r.dump())
		}
		for _, p := range []Property{MutualExclusion, NoStaleWrite, NoLostUpdate} {
			if r.of(p).Causes[CauseTwice] > 0 {
				t.Fatalf("seed %d: a correct lock is said to have granted twice\n%s", seed, r.dump())
			}
		}
		noBug(t, r)
	}
	if !testing.Short() && (outlived < 100 || stale < 10) {
		t.Errorf("only %d outlived leases and %d stale writes: the simulation is too tame", outlived, stale)
	}
}

// TestBuggyLock: whatever a lock does wrong, the checkers agree on it.
func TestBuggyLock(t *testing.T) {
	bad, promises, wrong := 0, 0, 0
	for seed := range histories(4000) {
		w := randomWorld(rand.New(rand.NewPCG(seed, 5)), false)
		h := simulate(seed, w).end().history(t)
		r := Check(h, Options{})
		noBug(t, r)
		if t.Failed() {
			t.Fatalf("seed %d\n%s", seed, dumpEvents(h))
		}
		if r.of(Linearizability).Verdict == Violation {
			bad++
		}
		promises += int(r.Overlaps.BrokenPromises)
		wrong += r.of(NoWrongRelease).Total
		if f := r.of(NoWrongRelease); f.Total > 0 && r.of(Linearizability).Verdict != Violation {
			t.Fatalf("seed %d: a wrong release that is linearizable\n%s", seed, r.dump())
		}
		if f := r.of(FencingOrder); f.Total > 0 && r.of(Linearizability).Verdict != Violation {
			t.Fatalf("seed %d: a fencing fault that is linearizable\n%s", seed, r.dump())
		}
	}
	t.Logf("%d illegal, %d broken promises, %d wrong releases", bad, promises, wrong)
	if !testing.Short() && (bad < 500 || promises < 500 || wrong < 100) {
		t.Errorf("%d illegal, %d broken promises, %d wrong releases: the simulation is too tame", bad, promises, wrong)
	}
}

// TestUpdatesAgainstStore compares with a store that really loses updates.
func TestUpdatesAgainstStore(t *testing.T) {
	for seed := range histories(4000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		s := newScript().acquire("w1", "a", 10, 11)
		states := [][]int64{nil} // content by version
		var elements []int64
		for i := range 1 + rng.IntN(12) {
			version := int64(len(states))
			base := version - 1
			if rng.IntN(3) == 0 {
				base = int64(rng.IntN(len(states)))
			}
			x := int64(100 + i)
			elements = append(elements, x)
			states = append(states, append(slices.Clone(states[base]), x))
			s.write("a", 12+float64(i), x, base, version)
		}
		content := states[len(states)-1]
		lost := int64(0)
		for _, x := range elements {
			if !slices.Contains(content, x) {
				lost++
			}
		}
		value := fmt.Sprint(len(content))
		if seed%2 == 0 {
			text, _ := json.Marshal(content)
			value = string(text)
		} else {
			s.header.Workload = history.WorkloadCounter
		}
		r := s.final("k0", value).end().check(t)
		if r.Updates.Lost != lost || r.Updates.Acknowledged != int64(len(elements)) || r.Updates.Phantom+r.Updates.Duplicated > 0 {
			t.Fatalf("seed %d: %+v, want %d lost\n%s", seed, r.Updates, lost, r.dump())
		}
		for _, v := range r.of(NoLostUpdate).Violations {
			if slices.Contains(content, v.Element) || len(v.Workers) != 2 {
				t.Fatalf("seed %d: wrong explanation: %+v", seed, v)
			}
		}
	}
}

// busyRun is a simulated run of two keys with faults on top.
func busyRun(t *testing.T, seed uint64) *history.History {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := randomWorld(rng, rng.IntN(2) == 0)
	s := simulate(seed, w)
	s.pause("f1", float64(rng.IntN(100)+1), float64(rng.IntN(100)+102), "w1")
	s.header.Faults = []string{"pause"}
	return s.final("k0", "[1,2,3]").end().history(t)
}

func TestShiftOfTime(t *testing.T) {
	const shift = 1_000_000_007
	for seed := range histories(300) {
		h := busyRun(t, seed)
		want := Check(h, Options{})
		got := Check(shifted(h, shift), Options{})
		unshift(&got, shift)
		if a, b := encode(t, want), encode(t, got); a != b {
			t.Fatalf("seed %d\n%s\n%s", seed, a, b)
		}
	}
}

func shifted(h *history.History, by int64) *history.History {
	moved := &history.History{Header: h.Header, Events: slices.Clone(h.Events)}
	for i := range moved.Events {
		e := &moved.Events[i]
		e.Time += by
		if e.Until != 0 {
			e.Until += by
		}
		if e.Fault != nil {
			f := *e.Fault
			f.From, f.To = f.From+by, f.To+by
			e.Fault = &f
		}
	}
	return moved
}

func unshift(r *Results, by int64) {
	r.Begin -= by
	r.End -= by
	for i := range r.Faults {
		r.Faults[i].Begin -= by
		r.Faults[i].End -= by
	}
	for _, f := range r.Findings {
		for i := range f.Violations {
			v := &f.Violations[i]
			v.From -= by
			if v.To != 0 {
				v.To -= by
			}
		}
	}
}

func encode(t *testing.T, r Results) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOrderOfEqualTimes: the file has events in order of arrival, which says
// nothing about processes that stamped the same time.
func TestOrderOfEqualTimes(t *testing.T) {
	for seed := range histories(300) {
		h := busyRun(t, seed)
		want := encode(t, Check(h, Options{}))
		mixed := &history.History{Header: h.Header, Events: slices.Clone(h.Events)}
		rng := rand.New(rand.NewPCG(seed, 8))
		rank := map[string]int{}
		for i, name := range rng.Perm(len(h.Header.Workers)) {
			rank[h.Header.Workers[name]] = i
		}
		slices.SortStableFunc(mixed.Events, func(a, b history.Event) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(rank[a.Process], rank[b.Process]))
		})
		for i := range mixed.Events {
			mixed.Events[i].Index = int64(i)
		}
		if err := history.Validate(mixed); err != nil {
			t.Fatal(err)
		}
		if got := encode(t, Check(mixed, Options{})); got != want {
			t.Fatalf("seed %d\n%s\n%s", seed, want, got)
		}
	}
}

// TestUnrelatedKey: what is found on a key does not depend on other keys.
func TestUnrelatedKey(t *testing.T) {
	for seed := range histories(300) {
		h := busyRun(t, seed)
		other := simulate(seed+1e6, randomWorld(rand.New(rand.NewPCG(seed, 9)), false)).history(t)
		both := merge(t, h, other)
		want, got := onKey(Check(h, Options{})), onKey(Check(both, Options{}))
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("seed %d\n%+v\n%+v", seed, want, got)
		}
	}
}

// merge adds other to h as key k1 with workers of its own.
func merge(t *testing.T, h, other *history.History) *history.History {
	both := &history.History{Header: h.Header, Events: slices.Clone(h.Events)}
	both.Header.Workers = append(slices.Clone(h.Header.Workers), "x1", "x2", "x3", "x4")
	seq := int64(0)
	for _, e := range other.Events {
		e.Key = "k1"
		if e.Grant != "" {
			e.Grant = "x" + e.Grant
		}
		if e.Holder != "" {
			e.Holder = "x" + e.Holder
		}
		e.Process = strings.Replace(e.Process, "w", "x", 1)
		e.Client = strings.Replace(e.Client, "w", "x", 1)
		both.Events = append(both.Events, e)
	}
	slices.SortStableFunc(both.Events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range both.Events {
		e := &both.Events[i]
		e.Index = int64(i)
		if e.Process == history.Resource && e.F != history.Final {
			seq++
			e.Seq = seq
		}
	}
	if err := history.Validate(both); err != nil {
		t.Fatal(err)
	}
	return both
}

func onKey(r Results) []Incident {
	var all []Incident
	for _, f := range r.Findings {
		for _, v := range f.Violations {
			if v.Key == "k0" {
				v.Why = "" // it tells times since the begin of the history, which may be another
				all = append(all, v)
			}
		}
	}
	return all
}

// TestViolationsStay: what was found in a prefix stays found, of what depends on nothing
// but what happened so far. Liveness and linearizability may turn out to be excused by
// what comes: a fault that was still in force, an acquire that failed after all.
func TestViolationsStay(t *testing.T) {
	lasting := []Property{MutualExclusion, NoExpiredGrant, NoWrongRelease, NoStaleWrite, FencingOrder}
	found := 0
	for seed := range histories(400) {
		h := busyRun(t, seed)
		whole := Check(h, Options{})
		for cut := 1; cut < len(h.Events); cut += 3 {
			r := Check(&history.History{Header: h.Header, Events: h.Events[:cut]}, Options{})
			for _, p := range lasting {
				found += r.of(p).Total
				if before, after := r.of(p).Total, whole.of(p).Total; before > after {
					t.Fatalf("seed %d: %d violations of %s after %d events, %d in the end\n%s", seed, before, p, cut, after, dumpEvents(h))
				}
			}
		}
	}
	if !testing.Short() && found < 1000 {
		t.Errorf("only %d violations in prefixes: this shows little", found)
	}
}

// TestPrefixes: whatever a killed run leaves can be judged, and is never valid.
func TestPrefixes(t *testing.T) {
	for seed := range histories(40) {
		h := busyRun(t, seed)
		for cut := range h.Events {
			r := Check(&history.History{Header: h.Header, Events: h.Events[:cut]}, Options{})
			noBug(t, r)
			if r.Verdict == Valid {
				t.Fatalf("seed %d: a prefix of %d events is valid", seed, cut)
			}
		}
	}
}
