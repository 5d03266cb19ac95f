package checker

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"lockcheck/checker/simulation"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

// spread is the part of a histogram that the tests compare.
type spread struct {
	n    int64
	most time.Duration
}

func spreadOf(h stats.Histogram) spread { return spread{h.N, h.Max} }

// unanswered is the completion of a call of unknown outcome.
var unanswered = history.Event{Type: history.Info, Error: "timeout"}

func TestUncontended(t *testing.T) {
	const ms = time.Millisecond
	alone := func() *script { return newScript().acquire("w1", "a", 10, 13) }
	held := func() *script { return alone().release("a", 30, 31) }
	lostRelease := func() *script { return alone().do(history.Release, "a", 30, 31, unanswered) }
	inDoubt := func() *script { return newScript().try("w1", "a", 10, 13, unanswered) }
	for _, c := range []struct {
		name string
		s    *script
		want spread
	}{
		{"nobody", newScript(), spread{}},
		{"alone", held(), spread{1, 3 * ms}},
		{"one after the other", held().acquire("w2", "b", 32, 36), spread{2, 4 * ms}},
		{"by the same worker", held().acquire("w1", "b", 32, 36), spread{2, 4 * ms}},
		{"during a hold", held().acquire("w2", "b", 20, 36), spread{1, 3 * ms}},
		{"during a release", held().acquire("w2", "b", 30.5, 36), spread{1, 3 * ms}},
		{"of another key", held().acquire("w2", "b", 20, 36, "k1"), spread{2, 16 * ms}},
		{"asked for at once", held().busy("w2", "b", 12, 14, ""), spread{}},
		{"refused before", held().busy("w2", "b", 8, 9, ""), spread{1, 3 * ms}},
		{"still refused", held().busy("w2", "b", 8, 11, ""), spread{}},
		{"released by nobody knows", lostRelease().acquire("w2", "b", 40, 60), spread{1, 3 * ms}},
		{"released again", lostRelease().release("a", 32, 33).acquire("w2", "b", 40, 60), spread{2, 20 * ms}},
		{"gone at its release", alone().notHeld("a", 30, 31).acquire("w2", "b", 40, 60), spread{2, 20 * ms}},
		{"after that", lostRelease().acquire("w2", "b", 40, 60).release("b", 70, 71).acquire("w2", "c", 80, 85), spread{2, 5 * ms}},
		{"of the dead", alone().acquire("w2", "b", 40, 160), spread{1, 3 * ms}},
		{"in doubt", inDoubt().acquire("w2", "b", 40, 60), spread{}},
		{"in doubt, taken back", inDoubt().release("a", 14, 15).acquire("w2", "b", 40, 60), spread{1, 20 * ms}},
		{"in doubt, after the next", inDoubt().acquire("w2", "b", 40, 60).release("b", 70, 71).acquire("w2", "c", 80, 85), spread{1, 5 * ms}},
	} {
		if got := spreadOf(c.s.end().check(t).Measures.Uncontended); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestWait(t *testing.T) {
	const ms = time.Millisecond
	held := func() *script { return newScript().acquire("w1", "a", 10, 13).release("a", 30, 31) }
	polled := func() *script { return held().busy("w2", "b", 15, 16, "a").busy("w2", "c", 25, 26, "a") }
	for _, c := range []struct {
		name          string
		s             *script
		wait, acquire spread
	}{
		{"nobody", newScript(), spread{}, spread{}},
		{"never granted", newScript().busy("w2", "b", 15, 16, ""), spread{}, spread{}},
		{"at once", held(), spread{1, 3 * ms}, spread{1, 3 * ms}},
		{"after two refusals", polled().acquire("w2", "d", 35, 40), spread{2, 25 * ms}, spread{2, 5 * ms}},
		{"after an answer that was lost", held().try("w2", "b", 15, 16, unanswered).acquire("w2", "d", 35, 40), spread{2, 25 * ms}, spread{2, 5 * ms}},
		{"on a new name of the lock", polled().acquire("w2", "d", 35, 40, "k1"), spread{2, 25 * ms}, spread{2, 5 * ms}},
		{"by somebody else", polled().acquire("w3", "d", 35, 40), spread{2, 5 * ms}, spread{2, 5 * ms}},
		{"begun anew after a grant", polled().acquire("w2", "d", 35, 40).release("d", 41, 42).acquire("w2", "e", 50, 51), spread{3, 25 * ms}, spread{3, 5 * ms}},
	} {
		m := c.s.end().check(t).Measures
		if spreadOf(m.Wait) != c.wait || spreadOf(m.Acquire) != c.acquire {
			t.Errorf("%s: waited %+v, acquired %+v, want %+v and %+v", c.name, spreadOf(m.Wait), spreadOf(m.Acquire), c.wait, c.acquire)
		}
	}
}

func TestReleases(t *testing.T) {
	held := func() *script { return newScript().acquire("w1", "a", 10, 13) }
	for _, c := range []struct {
		name string
		s    *script
		want spread
	}{
		{"none", held(), spread{}},
		{"one", held().release("a", 20, 22), spread{1, 2 * time.Millisecond}},
		{"gone", held().notHeld("a", 20, 22), spread{}},
		{"nobody knows", held().do(history.Release, "a", 20, 22, unanswered), spread{}},
		{"of what was never granted", newScript().try("w1", "a", 10, 13, unanswered).release("a", 20, 22), spread{}},
	} {
		s := c.s.end()
		for _, counts := range []bool{true, false} {
			s.header.Wakes = counts
			m := s.check(t).Measures
			if spreadOf(m.Release) != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, spreadOf(m.Release), c.want)
			}
			if counted := m.WakeReleases; counts && counted != c.want.n || !counts && counted != 0 {
				t.Errorf("%s: %d releases of a lock that counts wake-ups: %v", c.name, counted, counts)
			}
		}
	}
}

// TestWakes: the notifications of all attempts add up, and a lock that does not count them has no figure.
func TestWakes(t *testing.T) {
	woken := func(typ history.Type, wakes int64) history.Event { return history.Event{Type: typ, Wakes: wakes} }
	s := newScript().with(func(h *history.Header) { h.Wakes = true }).
		acquire("w1", "a", 10, 11).try("w2", "b", 12, 40, woken(history.OK, 2)).try("w3", "c", 13, 30, woken(history.Fail, 1)).
		release("a", 20, 21).release("b", 50, 51)
	m := s.end().check(t).Measures
	if each, counted := m.WakesPerRelease(); m.Wakes != 3 || m.WakeReleases != 2 || each != 1.5 || !counted {
		t.Errorf("%d of %d releases, %g each", m.Wakes, m.WakeReleases, each)
	}
	m = newScript().acquire("w1", "a", 10, 11).release("a", 20, 21).end().check(t).Measures
	if each, counted := m.WakesPerRelease(); counted {
		t.Errorf("%g wake-ups of a lock that counts none", each)
	}
}

func TestOrder(t *testing.T) {
	type order struct{ waited, bypassed int64 }
	held := func() *script { return newScript().acquire("w1", "a", 10, 13).release("a", 30, 31) }
	for _, c := range []struct {
		name string
		s    *script
		want order
	}{
		{"nobody waits", held(), order{}},
		{"one waits for the holder", held().acquire("w2", "b", 25, 40), order{}},
		{"in turn", held().acquire("w2", "b", 20, 40).release("b", 50, 51).acquire("w3", "c", 35, 60), order{1, 0}},
		{"bypassed", held().acquire("w3", "c", 35, 40).release("c", 50, 51).acquire("w2", "b", 20, 60), order{1, 1}},
		{"bypassed twice", held().acquire("w3", "c", 35, 40).release("c", 50, 51).acquire("w4", "d", 50, 55).release("d", 56, 57).acquire("w2", "b", 20, 60), order{2, 2}},
		{"nobody knows who was first", held().acquire("w3", "c", 29, 40).release("c", 50, 51).acquire("w2", "b", 20, 60), order{}},
		{"on another key", held().acquire("w3", "c", 35, 40, "k1").acquire("w2", "b", 20, 60), order{}},
		{"who never got it", held().acquire("w3", "c", 35, 40).try("w2", "b", 20, 60, history.Event{Type: history.Fail, Error: "busy"}), order{}},
		{"a poller bypassed", held().busy("w2", "b", 20, 21, "a").busy("w3", "c", 32, 33, "a").acquire("w3", "d", 40, 41).release("d", 42, 43).
			acquire("w2", "e", 50, 51), order{1, 1}},
		{"pollers in turn", held().busy("w2", "b", 20, 21, "a").busy("w3", "c", 32, 33, "a").acquire("w2", "d", 40, 41).release("d", 42, 43).
			acquire("w3", "e", 50, 51), order{1, 0}},
		{"a poller that had its turn", newScript().busy("w1", "z", 2, 3, "").acquire("w1", "a", 10, 13).release("a", 30, 31).
			acquire("w2", "b", 35, 40).release("b", 42, 43).acquire("w1", "c", 50, 61), order{}},
	} {
		m := c.s.end().check(t).Measures
		if got := (order{m.Waited, m.Bypassed}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestGaps(t *testing.T) {
	type gaps struct{ longest, faults, outage float64 } // ms
	// Grants are at 11 and at 1030; w2 asks for the second from 130 on.
	waited := func() *script {
		return newScript().phase(1, history.PhaseReady).acquire("w1", "a", 10, 11).release("a", 20, 21).
			acquire("w2", "b", 130, 1030).release("b", 1040, 1041)
	}
	stopped := func(from, to float64) func(*script) *script { // of the server, starting 1 ms later
		return func(s *script) *script { return s.pause("f1", from, to, "n1") }
	}
	killed := history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}}
	unproven := func(s *script) *script {
		return s.stage(200, history.Fault{ID: "f1", Kind: "pause", Targets: []string{"n1"}, Stage: history.Applied}).
			stage(400, history.Fault{ID: "f1", Kind: "pause", Targets: []string{"n1"}, Stage: history.Healed})
	}
	for _, c := range []struct {
		name string
		s    *script
		want gaps
	}{
		{"nothing", newScript(), gaps{}},
		{"nobody waited", newScript().acquire("w1", "a", 10, 10).release("a", 20, 21), gaps{}},
		{"never granted", newScript().busy("w1", "a", 10, 710, ""), gaps{700, 0, 0}},
		{"from the first that asked", waited(), gaps{900, 0, 0}},
		{"ended by a grant of another key", waited().acquire("w3", "c", 400, 500, "k1"), gaps{530, 0, 0}},
		{"from the grant before", waited().busy("w3", "c", 5, 15, ""), gaps{1019, 0, 0}},
		{"until the last that asked", waited().busy("w3", "c", 1035, 2235, ""), gaps{1200, 0, 0}},
		{"from a try that was refused", waited().busy("w3", "c", 15, 25, ""), gaps{1015, 0, 0}},
		{"without the fault", waited().then(unproven), gaps{900, 0, 0}},
		{"in the middle", waited().then(stopped(200, 400)), gaps{900, 199, 199}},
		{"from before on", waited().then(stopped(4, 400)), gaps{900, 395, 270}},
		{"until the end", waited().then(stopped(930, 3000)), gaps{900, 109, 99}},
		{"two at once", waited().then(stopped(200, 400)).pause("f2", 300, 500, "w3"), gaps{900, 299, 299}},
		{"short", newScript().acquire("w1", "a", 10, 510).release("a", 520, 521).then(stopped(100, 400)), gaps{500, 299, 0}},
		{"too long by 1 ms", newScript().acquire("w1", "a", 10, 511).release("a", 520, 521).then(stopped(100, 400)), gaps{501, 299, 299}},
		{"killed, for its lease", waited().fault(killed, 200, 200.5), gaps{900, 100, 100}},
	} {
		m := c.s.end().check(t).Measures
		got := gaps{float64(m.LongestGap) / 1e6, float64(m.FaultTime) / 1e6, float64(m.Outage) / 1e6}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestAvailability(t *testing.T) {
	if share, known := (&Measures{FaultTime: 4 * time.Second, Outage: time.Second}).Availability(); share != 0.75 || !known {
		t.Errorf("%g, %v", share, known)
	}
	if share, known := new(Measures).Availability(); known {
		t.Errorf("without a fault: %g", share)
	}
}

func TestThroughput(t *testing.T) {
	updates := func() *script {
		return newScript().phase(10, history.PhaseReady).acquire("w1", "a", 10, 13).write("a", 100, 1, 0, 1).write("a", 200, 2, 1, 2)
	}
	mutex := func(h *history.Header) { h.Workload = history.WorkloadMutex }
	for _, c := range []struct {
		name   string
		s      *script
		active time.Duration
		work   int64
	}{
		{"nothing", newScript(), 0, 0},
		{"two updates in a hold", updates().release("a", 510, 511), 500 * time.Millisecond, 2},
		{"told to stop", updates().phase(260, history.PhaseFinal).release("a", 510, 511), 250 * time.Millisecond, 2},
		{"still asking", updates().release("a", 510, 511).busy("w2", "b", 900, 1010, ""), time.Second, 2},
		{"a hold", updates().release("a", 510, 511).with(mutex), 500 * time.Millisecond, 1},
	} {
		m := c.s.end().check(t).Measures
		rate, known := m.Throughput()
		if m.Active != c.active || m.Work != c.work || known != (c.active > 0) || known && rate != float64(c.work)/c.active.Seconds() {
			t.Errorf("%s: %d in %s, %g a second", c.name, m.Work, m.Active, rate)
		}
	}
}

// TestMergeMeasures: no figure is left out, and all except the longest gap add up.
func TestMergeMeasures(t *testing.T) {
	var m Measures
	fields := reflect.ValueOf(&m).Elem()
	for i := range fields.NumField() {
		if h, is := fields.Field(i).Addr().Interface().(*stats.Histogram); is {
			h.Add(time.Second)
		} else {
			fields.Field(i).SetInt(3)
		}
	}
	once := m
	m = Measures{}
	for range 2 {
		m.Merge(once)
	}
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		switch f := fields.Field(i).Interface().(type) {
		case stats.Histogram:
			if f.N != 2 || f.Min != time.Second || f.Max != time.Second {
				t.Errorf("%s: %+v", name, f)
			}
		default:
			want := int64(6)
			if name == "LongestGap" {
				want = 3
			}
			if got := fields.Field(i).Int(); got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
	}
	if h := once.Acquire; h.N != 1 || h.Buckets[0].N != 1 {
		t.Errorf("what was merged has changed: %+v", h)
	}
}

// slowed returns a history in which everything takes ten times as long, so that it has outages.
func slowed(h *history.History) *history.History {
	slow := shifted(h, 0)
	for i := range slow.Events {
		e := &slow.Events[i]
		e.Time, e.Until = 10*e.Time, 10*e.Until
		if e.Fault != nil {
			e.Fault.From, e.Fault.To = 10*e.Fault.From, 10*e.Fault.To
		}
	}
	return slow
}

// TestMeasuresAgainstBruteForce compares with an implementation that scans all pairs of attempts and all
// gaps.
func TestMeasuresAgainstBruteForce(t *testing.T) {
	var waited, bypassed, uncontended, outages int64
	for seed := range histories(1000) {
		w := busyWorld(seed)
		w.Keys, w.Nested = 1, false
		fast, _ := simulation.Run(seed, w)
		h := slowed(fast)
		got := Check(h, Options{}).Measures
		r := newRun(h)
		want := quadraticMeasures(r)
		if spreadOf(got.Uncontended) != spreadOf(want.Uncontended) || got.Waited != want.Waited || got.Bypassed != want.Bypassed ||
			got.LongestGap != want.LongestGap || got.Outage != want.Outage {
			t.Fatalf("seed %d:\n%+v, want\n%+v\n%s", seed, got, want, dumpEvents(h))
		}
		if got.Outage > got.FaultTime || got.FaultTime > got.Active || got.LongestGap > got.Active || got.Bypassed > got.Waited ||
			got.Waited > got.Acquire.N || got.Uncontended.N > got.Acquire.N || got.Wait.N != got.Acquire.N || got.Wait.Max < got.Acquire.Max {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		waited, bypassed, uncontended = waited+got.Waited, bypassed+got.Bypassed, uncontended+got.Uncontended.N
		if got.Outage > 0 {
			outages++
		}
	}
	t.Logf("%d bypassed of %d who waited, %d uncontended, %d outages", bypassed, waited, uncontended, outages)
	if !testing.Short() && (bypassed < 100 || waited-bypassed < 100 || uncontended < 100 || outages < 100) {
		t.Error("the simulation is too tame")
	}
}

func quadraticMeasures(r *run) Measures {
	var m Measures
	var all []*attempt
	for a := range r.attempts.each {
		if a.asked {
			all = append(all, a)
		}
	}
	for _, a := range all {
		if !a.granted() {
			continue
		}
		met := slices.ContainsFunc(all, func(b *attempt) bool {
			return b != a && b.acquire.invoke <= a.acquire.done && r.mayHaveUntil(r.byKey[b.key], b) >= a.acquire.invoke
		})
		if !met {
			m.Uncontended.Add(a.acquire.took())
		}
		asked := firstAsked(all, a)
		before := func(since int64) bool {
			return slices.ContainsFunc(all, func(b *attempt) bool {
				return b.granted() && b.acquire.done > since && firstAsked(all, b) <= asked-int64(AskedApart)
			})
		}
		if before(asked) {
			m.Waited++
		}
		if before(a.acquire.done) {
			m.Bypassed++
		}
	}
	m.quadraticGaps(r, all)
	return m
}

// firstAsked is when the worker of a grant first asked after its previous grant.
func firstAsked(all []*attempt, a *attempt) int64 {
	place := slices.Index(all, a) // by first event, because times can be equal
	first := a.acquire.invoke
	for i := place - 1; i >= 0; i-- {
		switch b := all[i]; {
		case b.worker != a.worker:
		case b.granted():
			return first
		default:
			first = b.acquire.invoke
		}
	}
	return first
}

// quadraticGaps checks for gaps at each nanosecond at which anything changes.
func (m *Measures) quadraticGaps(r *run, all []*attempt) {
	ends := []int64{r.start(), r.stopped()}
	for _, a := range all {
		if a.granted() {
			ends = append(ends, a.acquire.done)
		}
	}
	slices.Sort(ends)
	faults := united(r.provenFaultTimes(r.activeTime()))
	for i := range len(ends) - 1 {
		from := ends[i+1]
		for _, a := range all {
			if r.gaveUp(a) > ends[i] {
				from = min(from, max(ends[i], a.acquire.invoke))
			}
		}
		gap := time.Duration(ends[i+1] - from)
		m.LongestGap = max(m.LongestGap, gap)
		for _, f := range faults {
			if both := min(f.to, ends[i+1]) - max(f.from, from); gap > OutageGap && both > 0 {
				m.Outage += time.Duration(both)
			}
		}
	}
}

// TestMeasuresOfUnrelatedKey: measures of one key and its workers do not depend on other keys, and they add
// up.
func TestMeasuresOfUnrelatedKey(t *testing.T) {
	differs := 0
	for seed := range histories(300) {
		h := busyRun(seed)
		other := others(seed)
		want := ofKeys(Check(h, Options{}).Measures)
		if got := ofKeys(Check(merge(t, h, other), Options{}).Measures); !reflect.DeepEqual(got, want) {
			differs++
		}
		want.Merge(ofKeys(Check(other, Options{}).Measures))
		if got := ofKeys(Check(merge(t, h, other), Options{}).Measures); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d\n%+v\n%+v", seed, got, want)
		}
	}
	if differs == 0 {
		t.Error("the other keys were not measured at all")
	}
}

// ofKeys keeps the measures that are computed per key or per worker.
func ofKeys(m Measures) Measures {
	return Measures{
		Acquire: m.Acquire, Uncontended: m.Uncontended, Wait: m.Wait, Release: m.Release, Notified: m.Notified,
		Waited: m.Waited, Bypassed: m.Bypassed,
	}
}
