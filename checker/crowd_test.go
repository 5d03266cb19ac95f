package checker

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// countedBy counts all overlaps and lists none.
func countedBy(h *history.History, crowdFrom int) (*run, together) {
	return found(h, crowdFrom, incidents{full: true, last: Incident{From: math.MinInt64}})
}

// listedBy counts all overlaps and lists the first ones.
func listedBy(h *history.History, crowdFrom int) together {
	_, t := found(h, crowdFrom, incidents{})
	return t
}

func found(h *history.History, crowdFrom int, into incidents) (*run, together) {
	r := newRun(h)
	wrongReleases(r)
	t := together{early: make(map[string]overlap), incidents: into}
	t.find(r, crowdFrom)
	return r, t
}

// crowdDifference says how two counts of the overlaps of a history differ; "" if they agree.
func crowdDifference(h *history.History, one, other int) string {
	r1, t1 := countedBy(h, one)
	r2, t2 := countedBy(h, other)
	listed1, listed2 := listedBy(h, one), listedBy(h, other)
	early := func(r *run, t together) []string { return r.pairs(slices.Collect(maps.Values(t.early))) }
	marked := func(r *run) (all []string) {
		for _, a := range r.holds {
			all = append(all, fmt.Sprint(r.name(a.grant), a.countedAsOrigin, a.replaced))
		}
		return all
	}
	explained := func(r *run) (all []string) {
		for o := range r.origins.faults {
			id := ""
			if o.fault != nil {
				id = o.fault.ID
			}
			all = append(all, fmt.Sprint(id, o.from))
		}
		slices.Sort(all)
		return all
	}
	for _, c := range []struct {
		what       string
		one, other any
	}{
		{"listed", factsText(listed1.first()), factsText(listed2.first())},
		{"total where some are listed", listed1.total, listed2.total},
		{"causes where some are listed", listed1.causes, listed2.causes},
		{"total", t1.total, t2.total},
		{"keys", t1.keys, t2.keys},
		{"causes", t1.causes, t2.causes},
		{"summary", t1.summary, t2.summary},
		{"notifications", t1.notifications, t2.notifications},
		{"times of notifications", t1.notified, t2.notified},
		{"early", early(r1, t1), early(r2, t2)},
		{"marks", marked(r1), marked(r2)},
		{"origins", r1.origins.others, r2.origins.others},
		{"faults", explained(r1), explained(r2)},
	} {
		if !reflect.DeepEqual(c.one, c.other) {
			return fmt.Sprintf("%s: %v, and one by one %v", c.what, c.one, c.other)
		}
	}
	return ""
}

// TestCrowd checks that a crowd counts the same as a comparison of all pairs.
func TestCrowd(t *testing.T) {
	causes := make(map[string]int64)
	pairs := 0
	for seed := range histories(3000) {
		h := tangled(seed)
		if seed%3 == 0 {
			h, _ = simulation.Run(seed, simulation.Random(rand.New(rand.NewPCG(seed, 3)), seed%2 == 0))
		}
		for _, from := range []int{1, 3} {
			if what := crowdDifference(h, from, math.MaxInt); what != "" {
				t.Fatalf("seed %d, a crowd of %d: %s\n%s", seed, from, what, dumpEvents(h))
			}
		}
		_, counted := countedBy(h, 1)
		pairs += counted.total
		for cause, n := range counted.causes {
			causes[cause] += n
		}
	}
	t.Logf("%d pairs: %v", pairs, causes)
	for _, c := range Causes() {
		if causes[c.Name] == 0 && c.Name != CauseUnlocked {
			t.Errorf("no overlap is caused by: %s", c.Name)
		}
	}
}

// TestCrowdListed checks that the listed overlaps are the first ones, even if several begin at the time of
// the last one.
func TestCrowdListed(t *testing.T) {
	full, tied := 0, 0
	for seed := range histories(300) {
		h := tangledBy(rand.New(rand.NewPCG(seed, 6)), 80, 4)
		want, total := firstByHand(h)
		for _, from := range []int{1, math.MaxInt} {
			listed := listedBy(h, from)
			if got := listingsOf(listed.first()); !slices.Equal(got, want) {
				t.Fatalf("seed %d, a crowd of %d lists\n%v, want\n%v", seed, from, got, want)
			}
		}
		if total > 2*MaxListed {
			full++
			if n := len(want); want[n-2].from == want[n-1].from {
				tied++
			}
		}
	}
	if full == 0 || tied == 0 {
		t.Errorf("in %d histories not all are listed, and in %d several begin at the time of the last", full, tied)
	}
}

// listing is what decides the place of an overlap in the list.
type listing struct {
	from           int64
	key            string
	earlier, later string
}

func listingsOf(all []Incident) (listings []listing) {
	for _, i := range all {
		listings = append(listings, listing{i.From, i.Key, i.Grants[0], i.Grants[1]})
	}
	return listings
}

// firstByHand compares all pairs, keeps all overlaps, and returns the first ones and their total number.
func firstByHand(h *history.History) (first []listing, total int) {
	r := newRun(h)
	wrongReleases(r)
	var all []listing
	for _, key := range r.keys {
		holds := r.byKey[key].holds
		for i, b := range holds {
			for _, a := range holds[:i] {
				if a.holdEnd > b.acquire.done && a.worker != b.worker && !a.shares(b) && (b.holdEnd > b.acquire.done || b.beginsWithin(a)) {
					o := r.overlap(a, b)
					all = append(all, listing{o.from, r.name(key), r.name(o.earlier.grant), r.name(o.later.grant)})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b listing) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.key, b.key), cmp.Compare(a.earlier, b.earlier), cmp.Compare(a.later, b.later))
	})
	return all[:min(len(all), MaxListed)], len(all)
}

// tangled is a history of a lock that is granted to any worker at any time. It has faults, varies everything
// that may be known of a grant, and has many equal times.
func tangled(seed uint64) *history.History {
	rng := rand.New(rand.NewPCG(seed, 5))
	return tangledBy(rng, 4+rng.IntN(24), 80)
}

// tangledBy is such a history with a number of grants, asked for at a number of distinct times.
func tangledBy(rng *rand.Rand, grants, times int) *history.History {
	chance := func(n int) bool { return rng.IntN(n) == 0 }
	s := newScript().servers("n1", "n2", "n3")
	s.header.Session, s.header.Tokens, s.header.Grace = chance(4), chance(2), 20*time.Millisecond
	switch rng.IntN(12) {
	case 0:
		s.header.Lease = 0
	case 1:
		s.header.Workload = history.WorkloadReadWrite
	case 2:
		s.header.Reentrant = 2
	case 3:
		s.header.Lock += "+" + ClocksApart
	case 4:
		s.header.Imported, s.header.Lease = "jepsen", 0
	}
	s.header.Renewals = s.header.Session && chance(2)
	at := func(n int) float64 { return float64(10*rng.IntN(n)) / 4 }
	last := make(map[string]uint64) // the token of each worker and key
	for i := range grants {
		g, from := fmt.Sprintf("g%d", i), 10+at(times)
		answered := from + at(1+rng.IntN(times/2))
		s.grants[g] = history.Event{Process: fmt.Sprintf("w%d", 1+rng.IntN(6)), Key: fmt.Sprintf("k%d", rng.IntN(5)/4), Grant: g}
		ok := history.Event{Type: history.OK, Expired: chance(12)}
		if s.header.Tokens && !chance(8) {
			ok.Token = uint64(1 + 2*i + rng.IntN(4))
			owner := s.grants[g].Process + s.grants[g].Key
			if last[owner] != 0 && chance(3) { // as if it were given again
				ok.Token = last[owner]
			}
			last[owner] = ok.Token
		}
		if !s.header.Session && chance(2) {
			ok.Until = ms(answered + at(60))
		}
		s.do(history.Acquire, g, from, answered, ok)
		if s.header.Workload == history.WorkloadReadWrite {
			s.events[len(s.events)-2].Shared = chance(2)
		}
		for range rng.IntN(3) {
			renewed := answered + at(40)
			s.do(history.Renew, g, renewed, renewed+at(30), history.Event{Type: []history.Type{history.OK, history.OK, history.Info}[rng.IntN(3)], Until: ms(renewed + 50)})
		}
		if chance(3) {
			s.lost(g, answered+at(60), []string{"service", "deadline"}[rng.IntN(2)])
		}
		released := answered + at(80) - float64(rng.IntN(2))
		switch rng.IntN(6) {
		case 0:
			s.notHeld(g, released, released+at(10))
		case 1:
			s.do(history.Release, g, released, -1, history.Event{})
		case 2:
			s.read(g, released, 0)
		default:
			s.release(g, released, released+at(10))
		}
		if chance(12) {
			s.deferred(g, answered+1, "f0")
		}
	}
	for i := range rng.IntN(5) {
		f := history.Fault{ID: fmt.Sprintf("f%d", i), Kind: []string{history.Pause, history.Partition, history.Kill, history.Clock}[rng.IntN(4)]}
		w, n := fmt.Sprintf("w%d", 1+rng.IntN(6)), fmt.Sprintf("n%d", 1+rng.IntN(3))
		switch {
		case f.Kind == history.Partition:
			f.Targets, f.Peers = []string{w}, []string{"n1", "n2", "n3"}
		case f.Kind == history.Clock:
			f.Targets, f.Step = []string{n}, int64(rng.IntN(3)-1)*int64(time.Second)
		case chance(2):
			f.Targets = []string{n}
		default:
			f.Targets = []string{w}
		}
		from := 5 + at(100)
		s.fault(f, from, from+2+at(40))
	}
	slices.SortStableFunc(s.events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	return &history.History{Header: s.header, Events: s.events}
}

// allHold is a history in which n workers hold one key at once. Each is granted it after the previous one,
// and all release it at the end.
func allHold(n int) *history.History {
	s := newScript()
	s.header.Workers = nil
	for i := range n {
		w, g := fmt.Sprintf("w%d", i+1), fmt.Sprintf("g%d", i+1)
		s.header.Workers = append(s.header.Workers, w)
		s.acquire(w, g, float64(i), float64(i)+0.5)
	}
	for i := range n {
		s.release(fmt.Sprintf("g%d", i+1), float64(n+i), float64(n+i)+0.5)
	}
	return &history.History{Header: s.header, Events: s.events}
}

// TestAllHold: if all workers hold one key at once, each pair overlaps. No incident is listed twice.
func TestAllHold(t *testing.T) {
	const n = 3 * crowdFrom
	f := Check(allHold(n), Options{}).of(MutualExclusion)
	if f.Total != n*(n-1)/2 || len(f.Violations) != MaxListed {
		t.Errorf("%d overlaps, %d listed", f.Total, len(f.Violations))
	}
	if what := crowdDifference(allHold(n), crowdFrom, math.MaxInt); what != "" {
		t.Error(what)
	}
}

// BenchmarkAllHold: twice as many workers that all hold one key must not take four times as long.
func BenchmarkAllHold(b *testing.B) {
	for n := 2_000; n <= 8_000; n *= 2 {
		h := allHold(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if f := Check(h, Options{NoHolds: true}).of(MutualExclusion); f.Total != n*(n-1)/2 {
					b.Fatal(f.Total)
				}
			}
		})
	}
}
