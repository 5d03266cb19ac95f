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

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// more multiplies the number of random histories: go test ./checker -more 20.
var more = flag.Uint64("more", 1, "how many times as many random histories to try")

// histories is the number of random histories to try: a tenth of the usual number with -short.
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
		var got []string // few enough to be all listed
		found := findOverlaps(r)
		for _, v := range found.first() {
			grants := slices.Sorted(slices.Values(v.Grants))
			got = append(got, fmt.Sprint(grants, v.From, v.To, v.Class))
		}
		slices.Sort(got)
		if want := r.pairs(quadraticOverlaps(r.holds)); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// quadraticOverlaps compares every pair of holds.
func quadraticOverlaps(holds []*attempt) []overlap {
	var found []overlap
	for i, a := range holds {
		for _, b := range holds[i+1:] {
			from, to := max(a.acquire.done, b.acquire.done), min(a.holdEnd, b.holdEnd)
			instant := from == to && a.acquire.done < b.acquire.done && b.acquire.done < a.holdEnd
			if a.key != b.key || a.worker == b.worker || to < from || to == from && !instant {
				continue
			}
			class := UseAfterExpiry
			if from < a.deadline && (from < b.deadline || instant && from == b.deadline) {
				class = DoubleGrant
			}
			found = append(found, overlap{earlier: a, later: b, from: from, to: to, class: class})
		}
	}
	return found
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

func dumpEvents(h *history.History) string {
	var b strings.Builder
	for _, e := range h.Events {
		line, _ := json.Marshal(e)
		b.Write(append(line, '\n'))
	}
	return b.String()
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

// busyRun is a simulated run on several keys with faults of workers, whose service may be wrong.
func busyRun(seed uint64) *history.History {
	h, _ := simulation.Run(seed, busyWorld(seed))
	return h
}

func busyWorld(seed uint64) simulation.World {
	w := simulation.Random(rand.New(rand.NewPCG(seed, 7)), seed%2 == 0)
	w.Faults = []string{history.Pause, history.Partition, history.DelayWrite}
	return w
}

// others is another run of the same kind of lock, without faults.
func others(seed uint64) *history.History {
	w := busyWorld(seed)
	w.Most = 0
	h, _ := simulation.Run(seed+1e6, w)
	return h
}

func TestShiftOfTime(t *testing.T) {
	const shift = 1_000_000_007
	for seed := range histories(300) {
		h := busyRun(seed)
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
	back := func(i *Incident) {
		for _, at := range incidentTimes(i) {
			if *at != 0 {
				*at -= by
			}
		}
	}
	for _, f := range r.Findings {
		for i := range f.Violations {
			back(&f.Violations[i])
		}
		for _, fact := range f.Facts {
			if fact.Incident != nil {
				back(fact.Incident)
			}
		}
	}
}

func incidentTimes(i *Incident) []*int64 {
	all := []*int64{&i.From, &i.To}
	past := func(p *Past) {
		if p == nil {
			return
		}
		all = append(all, &p.Asked, &p.At)
		if p.Granted != nil {
			all = append(all, &p.Granted.At)
		}
	}
	if l := i.LastHold; l != nil {
		past(&l.Past)
		past(l.Since)
	}
	e := i.Explanation
	if e == nil {
		return all
	}
	all = append(all, &e.Holder.At, &e.Next.At, &e.LeaseEnd, &e.ValidUntil, &e.HeldUntil)
	for _, s := range []*Stop{e.Stop, e.Cut} {
		if s != nil {
			all = append(all, &s.From, &s.Resumed, &s.To)
		}
	}
	past(e.Between)
	if e.Releaser != nil {
		all = append(all, &e.Releaser.At)
	}
	if e.Renewal != nil {
		all = append(all, &e.Renewal.Asked, &e.Renewal.Answered, &e.Renewal.LeaseEnd)
	}
	if e.Record != nil {
		all = append(all, &e.Record.Dropped)
	}
	if e.Recovering != nil {
		all = append(all, &e.Recovering.Fault.From)
	}
	if e.Unlocked != nil {
		all = append(all, &e.Unlocked.Asked, &e.Unlocked.Answered)
	}
	for i := range e.InForce {
		all = append(all, &e.InForce[i].From)
	}
	return all
}

func encode(t *testing.T, r Results) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOrderOfEqualTimes: the file has events in the order of arrival. That says nothing about processes that
// recorded the same time.
func TestOrderOfEqualTimes(t *testing.T) {
	for seed := range histories(300) {
		h := busyRun(seed)
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

// TestUnrelatedKey: the findings on a key do not depend on other keys.
func TestUnrelatedKey(t *testing.T) {
	for seed := range histories(300) {
		h := busyRun(seed)
		other := others(seed)
		both := merge(t, h, other)
		want, got := ofTheRest(Check(h, Options{})), ofTheRest(Check(both, Options{}))
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("seed %d\n%+v\n%+v", seed, want, got)
		}
	}
}

// merge adds other to h, under different keys and workers.
func merge(t *testing.T, h, other *history.History) *history.History {
	both := &history.History{Header: h.Header, Events: slices.Clone(h.Events)}
	both.Header.Workers = append(slices.Clone(h.Header.Workers), "x1", "x2", "x3", "x4")
	seq := int64(0)
	for _, e := range other.Events {
		if e.Process == history.Harness || e.F == history.Renew && e.Grant == "" {
			continue
		}
		e.Key = "x" + e.Key
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
		if e.Seq > 0 {
			seq++
			e.Seq = seq
		}
	}
	if err := history.Validate(both); err != nil {
		t.Fatal(err)
	}
	return both
}

// ofTheRest returns the incidents on keys that were not added.
func ofTheRest(r Results) []Incident {
	var all []Incident
	for _, f := range r.Findings {
		for _, v := range f.Violations {
			if strings.HasPrefix(v.Key, "k") {
				if v.Class == classEndedEarly {
					v.Kind, v.Figures = "", IncidentFigures{} // these tell whether an end lies beyond that of the history
				}
				if v.Explanation != nil {
					v.Explanation = &Explanation{Key: v.Explanation.Key, Holder: v.Explanation.Holder, Next: v.Explanation.Next} // so does LeaseEnd
				}
				all = append(all, v)
			}
		}
	}
	return all
}

// TestViolationsStay: what was found in a prefix stays found, if it depends only on what happened so far.
// Liveness and linearizability are exempt, because later events may excuse them: a fault that was still in
// force, or an acquire that failed after all.
func TestViolationsStay(t *testing.T) {
	lasting := []Property{MutualExclusion, NoExpiredGrant, NoWrongRelease, NoStaleWrite, FencingOrder}
	found := 0
	for seed := range histories(400) {
		h := busyRun(seed)
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

// TestPrefixes: every prefix that a killed run may leave can be judged, and is never valid.
func TestPrefixes(t *testing.T) {
	for seed := range histories(40) {
		h := busyRun(seed)
		for cut := range h.Events {
			r := Check(&history.History{Header: h.Header, Events: h.Events[:cut]}, Options{})
			noBug(t, r)
			if r.Verdict == Valid {
				t.Fatalf("seed %d: a prefix of %d events is valid", seed, cut)
			}
		}
	}
}
