package checker

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// faultyRun is a simulated run with additional faults of all kinds, on workers and on servers. Some faults
// lack their later stages.
func faultyRun(t *testing.T, seed uint64) *run {
	rng := rand.New(rand.NewPCG(seed, 21))
	w := simulation.Random(rng, rng.IntN(3) == 0)
	w.Attempts, w.Most = 1+rng.IntN(12), 0
	h, _ := simulation.Run(seed, w)
	s := newScript().servers([]string{"n1", "n2", "n3"}[:1+rng.IntN(3)]...)
	h.Header.Servers = s.header.Servers
	s.header, s.events = h.Header, h.Events[:len(h.Events)-1] // without its end
	if rng.IntN(3) == 0 {
		s.header.Reaches = map[string][]string{"w1": {"n1"}, "w2": {"n2", "n3"}}
	}
	names := []string{"w1", "w2", "w3", "n1", "n2", "n3"}
	some := func() string { return names[rng.IntN(len(names))] }
	kinds := []string{
		history.Pause, history.Kill, history.Crash, history.Clock, history.Clock, history.ClockStrobe, history.ClockRate,
		history.Partition, history.Partition, history.OneWay, history.PacketLoss, history.DelayWrite,
	}
	for i := range rng.IntN(10) {
		f := history.Fault{ID: fmt.Sprintf("f%d", i), Kind: kinds[rng.IntN(len(kinds))], Targets: []string{some()}, Step: int64(rng.IntN(3) - 1)}
		if rng.IntN(3) == 0 {
			f.Targets = append(f.Targets, some())
		}
		if rng.IntN(2) == 0 {
			f.Peers = []string{some(), some()}
		}
		from := float64(1001 + rng.IntN(400))
		if rng.IntN(6) == 0 {
			f.Stage, f.From, f.To = history.Applied, ms(from), ms(from+1)
			s.stage(from+1, f)
			continue
		}
		s.fault(f, from, from+float64(2+rng.IntN(200)))
	}
	return newRun(s.end().history(t))
}

// TestLookups compares the results of the indexes with linear scans.
func TestLookups(t *testing.T) {
	for seed := range histories(2000) {
		r := faultyRun(t, seed)
		rng := rand.New(rand.NewPCG(seed, 22))
		for range 20 {
			from := ms(float64(1000 + rng.IntN(500)))
			to := from + ms(float64(rng.IntN(200)))
			r.compareFaults(t, from, to)
			r.compareWorkers(t, from, to)
		}
		for _, w := range r.byWorker {
			if got, want := slices.Concat(w.cutOffs.common, w.cutOffs.own), r.slowCutOffs(w.name); !slices.Equal(united(got), want) {
				t.Fatalf("seed %d: %s was cut off in %v, want %v", seed, w.name, got, want)
			}
			for _, s := range w.cutOffs.own {
				for _, c := range meeting(w.cutOffs.common, s.from, s.to) {
					if c.from < s.from || c.to > s.to {
						t.Fatalf("seed %d: %v reaches beyond %v", seed, c, s)
					}
				}
			}
		}
		longest, outage := r.slowGaps()
		var m Measures
		m.addGaps(r, united(r.provenFaultTimes(r.activeTime())))
		if m.LongestGap.Nanoseconds() != longest || m.Outage.Nanoseconds() != outage {
			t.Fatalf("seed %d: longest gap %d, want %d; outage %d, want %d", seed, m.LongestGap, longest, m.Outage, outage)
		}
		met := r.meetings()
		for i := range r.faults {
			f := &r.faults[i]
			if certain, is := f.certain(); is && (f.doesAny(history.Steps, history.Deposes) || hitsProcesses(f.Kind) && !f.onWorkers(r.workers)) {
				if met.metHold(f) != r.slowMetHold(certain) || met.metOperation(f) != r.slowMetOperation(f) {
					t.Fatalf("seed %d: fault %s met something, or not", seed, f.ID)
				}
			}
		}
	}
}

// hits says whether the fault may have been in force in [from, to], ns.
func (f *fault) hits(from, to int64) bool {
	return f.Applied && f.Begin <= to && f.End >= from
}

func (r *run) compareFaults(t *testing.T, from, to int64) {
	t.Helper()
	var ids []string
	first := map[string]int{CauseClock: -1, CauseServerLost: -1, CauseServerFault: -1}
	disturbed := false
	for i := range r.faults {
		f := &r.faults[i]
		if f.hits(from, to) {
			ids = append(ids, f.ID)
		}
		disturbed = disturbed || f.hits(from, to) && r.mayEndGrants(f)
		if !f.hits(from, to) {
			continue
		}
		servers := r.onServers(f)
		for class, is := range map[string]bool{
			CauseClock:       f.hastened(from, to) || !servers && f.does(history.Steps),
			CauseServerLost:  servers && f.does(history.Ends),
			CauseServerFault: servers && f.doesAny(history.Stops, history.Cuts, history.Disturbs, history.Impairs, history.Deposes),
		} {
			if is && first[class] < 0 {
				first[class] = i
			}
		}
	}
	if got := r.inForce(from, to); !slices.Equal(got, ids) {
		t.Fatalf("in force from %d to %d: %v, want %v", from, to, got, ids)
	}
	if got := r.disturbed(from, to); got != disturbed {
		t.Fatalf("disturbed from %d to %d: %v", from, to, got)
	}
	for _, e := range r.earlyEndReasons {
		if got := e.faults.first(from, to); got != first[e.class] {
			t.Fatalf("%s from %d to %d: fault %d, want %d", e.class, from, to, got, first[e.class])
		}
	}
}

// hastened says whether a fault may have moved a clock forward in a time.
func (f *fault) hastened(from, to int64) bool {
	if !f.does(history.Steps) || !f.hits(from, to) {
		return false
	}
	came := f.Begin <= to && f.certainFrom >= from
	went := f.certainTo != 0 && f.certainTo <= to && f.End >= from
	switch {
	case f.Kind == history.ClockStrobe, f.Kind == history.ClockRate: // of unknown speed
		return true
	case f.step > 0:
		return came
	case f.step < 0:
		return went
	}
	return came || went
}

func (r *run) compareWorkers(t *testing.T, from, to int64) {
	t.Helper()
	for _, w := range r.byWorker {
		var held []*attempt
		for _, a := range w.attempts {
			if a.heldIn(from, to) {
				held = append(held, a)
			}
		}
		if got := slices.Collect(w.heldBetween(from, to)); !slices.Equal(got, held) {
			t.Fatalf("%s held %d from %d to %d, want %d", w.name, len(got), from, to, len(held))
		}
		// A stuck worker is not served in that time, so only such workers are compared.
		if well := r.fortunes().othersServed(from, to); !w.servedIn(from, to) && well != r.slowWell(w, from, to) {
			t.Fatalf("well for all but %s from %d to %d: %v", w.name, from, to, well)
		}
	}
	for _, k := range r.byKey {
		for but := range r.byWorker {
			var want *attempt
			for _, h := range slices.Backward(k.holds) {
				if h.acquire.done > from && h.worker != but {
					want = h
				}
			}
			if got := k.nextGrantExcept(from, but); got != want {
				t.Fatalf("next after %d: %v, want %v", from, got, want)
			}
		}
		for _, h := range k.holds {
			want := slices.ContainsFunc(k.attempts, func(a *attempt) bool {
				return a.worker != h.worker && a.asked && !a.shares(h) && a.acquire.doneOr(r.end) > from
			})
			if got := r.wantedByOthers(h, from); got != want {
				t.Fatalf("wanted by others after %d: %v", from, got)
			}
		}
	}
}

func (w *actor) servedIn(from, to int64) bool {
	return slices.ContainsFunc(w.attempts, func(a *attempt) bool { return a.granted() && a.acquire.done >= from && a.acquire.done <= to })
}

func (r *run) slowWell(stuck *actor, from, to int64) bool {
	served := 0
	for _, w := range r.byWorker {
		if w == stuck || !w.servedIn(from, to) {
			continue
		}
		served++
		for _, a := range w.attempts {
			for c := range a.calls {
				trouble := c.unknown() || c == &a.acquire && !c.ok() && !a.busy
				if trouble && c.done >= from && c.done <= to && c.outcome != open {
					return false
				}
			}
		}
	}
	return served >= 2
}

func (r *run) slowCutOffs(worker string) []span {
	away := make(map[string][]span)
	for i := range r.faults {
		for _, server := range r.faults[i].putsOutOfReach(worker) {
			away[server] = append(away[server], r.faults[i].outOfReach())
		}
	}
	servers := r.reaches(worker)
	var groups [][]span
	for _, server := range servers {
		groups = append(groups, united(away[server]))
	}
	return togetherAtLeast(max(1, (len(servers)+1)/2), groups)
}

func (r *run) slowGaps() (longest, outage int64) {
	var granted []int64
	for _, h := range r.holds {
		granted = append(granted, h.acquire.done)
	}
	slices.SortFunc(granted, cmp.Compare)
	last, faults := r.start(), united(r.provenFaultTimes(r.activeTime()))
	for _, at := range append(granted, r.stopped()) {
		at = min(at, r.stopped())
		first := int64(math.MaxInt64)
		for a := range r.attempts.each {
			if a.asked && a.acquire.invoke <= at && r.gaveUp(a) > last {
				first = min(first, max(last, a.acquire.invoke))
			}
		}
		if gap := (span{first, at}); first < at {
			longest = max(longest, gap.length())
			for _, f := range faults {
				if gap.length() > int64(OutageGap) && f.meets(gap.from, gap.to) {
					outage += min(f.to, gap.to) - max(f.from, gap.from)
				}
			}
		}
		last = max(last, at)
	}
	return longest, outage
}

func (r *run) slowMetHold(certain span) bool {
	return slices.ContainsFunc(r.holds, func(h *attempt) bool { return h.heldIn(certain.from, certain.to) })
}

func (r *run) slowMetOperation(f *fault) bool {
	for _, w := range r.byWorker {
		for _, a := range w.attempts {
			for c := range a.calls {
				if f.concerns(r.reaches(w.name)) && c.invoke <= f.certainTo && c.doneOr(r.end) >= f.certainFrom {
					return true
				}
			}
		}
	}
	return false
}
