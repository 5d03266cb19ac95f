package checker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lockcheck/history"
)

func TestFaultEvidence(t *testing.T) {
	asked := func(kinds ...string) *script {
		return newScript().with(func(h *history.Header) { h.Faults = kinds })
	}
	held := func(kinds ...string) *script { // valid until 110, held until 150
		return asked(kinds...).acquire("w1", "a", 10, 11).notHeld("a", 150, 151)
	}
	contended := func(kinds ...string) *script { return held(kinds...).acquire("w2", "b", 15, 160) }
	readers := func(h *history.Header) { h.Workload = "read-write" }
	only := func(h *history.Header) { h.Workers = []string{"w1"} }
	dropped := func(n int64) history.Fault {
		return history.Fault{ID: "f1", Kind: "partition", Targets: []string{"w1"}, Peers: []string{"n1"}, Dropped: &n}
	}
	onDisk := func(n *int64) history.Fault {
		return history.Fault{ID: "f1", Kind: "disk-full", Targets: []string{"n1"}, Dropped: n}
	}
	kill := func(target string) history.Fault {
		return history.Fault{ID: "f1", Kind: "kill", Targets: []string{target}}
	}
	clock := history.Fault{ID: "f1", Kind: "clock", Targets: []string{"n1"}, Step: 1}
	ofWorker := func(worker string) history.Fault {
		return history.Fault{ID: "f1", Kind: "clock", Targets: []string{worker}, Step: 1}
	}
	transfer := history.Fault{ID: "f1", Kind: "transfer-leader", Targets: []string{"n1"}}
	waiter := history.Fault{ID: "f1", Kind: "pause", Role: "waiter", Targets: []string{"w1"}}
	at := func(moment, kind, actor, target string) history.Fault {
		zero := int64(7)
		return history.Fault{ID: "f1", Kind: kind, Moment: moment, Actor: actor, Targets: []string{target}, Since: ms(1), Dropped: &zero}
	}
	since := func(f history.Fault, after float64) history.Fault {
		f.Since = ms(after)
		return f
	}
	twice := func(s *script) *script { // held from 11 to 25 and from 31 to 180
		return s.acquire("w1", "a", 10, 11).release("a", 25, 26).acquire("w1", "b", 30, 31).release("b", 180, 181)
	}
	kill2 := func(target string) history.Fault {
		return history.Fault{ID: "f2", Kind: "kill", Targets: []string{target}}
	}
	released := func(from, to float64) *script { // w1 releases
		return asked("pause").acquire("w1", "a", 10, 11).release("a", from, to)
	}
	stage := func(st history.Stage, from, to float64) history.Fault {
		return history.Fault{ID: "f1", Kind: "pause", Targets: []string{"w1"}, Stage: st, From: ms(from), To: ms(to)}
	}
	for _, c := range []struct {
		name      string
		s         *script
		v         Verdict
		found     string
		exercised bool
		outlasted bool
	}{
		{"none asked for", newScript(), NotApplicable, "kind:no-faults", false, false},
		{"never applied", held("pause"), Undecided, "kind:never-applied,fault_kind:pause", false, false},
		{"holder paused beyond its validity", contended("pause").pause("f1", 20, 140, "w1"), Valid, "1 pause of holders", true, true},
		{"the only worker paused", held("pause").with(only).pause("f1", 20, 140, "w1"), Valid, "1 pause of holders", true, true},
		{"holder paused, the others silent", held("pause").pause("f1", 20, 140, "w1"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"reader paused next to another", asked("pause").with(readers).share("w1", "a", 10, 11).notHeld("a", 150, 151).share("w2", "b", 15, 16).notHeld("b", 155, 156).pause("f1", 20, 140, "w1"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"reader paused that a writer waits for", asked("pause").with(readers).share("w1", "a", 10, 11).notHeld("a", 150, 151).acquire("w2", "b", 15, 160).pause("f1", 20, 140, "w1"), Valid, "1 pause of holders", true, true},
		{"holder paused whose lock others asked for before, and not again", held("pause").busy("w2", "b", 13, 15, "a").pause("f1", 20, 140, "w1"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"holder paused while another lock is asked for", held("pause").acquire("w2", "b", 15, 160, "k1").pause("f1", 20, 140, "w1"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"holder paused shortly", contended("pause").pause("f1", 20, 30, "w1"), Valid, "1 pause of holders", true, false},
		{"somebody else paused", held("pause").pause("f1", 20, 140, "w2"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"paused outside of a section", held("pause").pause("f1", 200, 240, "w1"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"waiter paused in its acquire", asked("pause").acquire("w1", "a", 10, 145).fault(waiter, 20, 140), Valid, "1 waiter pause", true, false},
		{"waiter paused, its acquire over before", asked("pause").acquire("w1", "a", 10, 15).release("a", 16, 17).fault(waiter, 20, 140), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"paused in its acquire, but not for that", asked("pause").acquire("w1", "a", 10, 145).pause("f1", 20, 140, "w1"), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"gone before it was certain", held("pause").fault(history.Fault{ID: "f1", Kind: "pause", Targets: []string{"w1"}}, 149.5, 170), Undecided, "kind:missed-holders,fault_kind:pause", false, false},
		{"not proven", held("pause").stage(20, stage(history.Applied, 19, 20)).stage(25, stage(history.Unproven, 0, 0)).stage(30, stage(history.Healed, 29, 30)).stage(31, stage(history.ProvenHealed, 31, 31)), Undecided, "kind:never-proven,fault_kind:pause", false, false},
		{"not healed", held("pause").stage(20, stage(history.Applied, 19, 20)).stage(25, stage(history.Proven, 0, 0)).stage(30, stage(history.Unhealed, 29, 30)), Broken, "kind:not-proven-healed,faults:[f1]", false, false},
		{"server paused under an operation", asked("pause").acquire("w1", "a", 10, 50).pause("f1", 20, 40, "n1"), Valid, "1 server pause", true, false},
		{"server paused while nobody asked", asked("pause").acquire("w1", "a", 10, 15).pause("f1", 20, 40, "n1"), Undecided, "kind:missed-operations,fault_kind:pause", false, false},
		{"server paused, never answered", asked("pause").try("w1", "a", 10, -1, history.Event{}).pause("f1", 20, 40, "n1"), Valid, "", true, false},
		{"holder killed", asked("kill").acquire("w1", "a", 10, 11).fault(kill("w1"), 20, 40), Valid, "1 kill", true, false},
		{"killed while it asked", asked("kill").try("w1", "a", 10, -1, history.Event{}).fault(kill("w1"), 20, 40), Valid, "", true, false},
		{"killed while it released", asked("kill").acquire("w1", "a", 10, 11).do(history.Release, "a", 19, -1, history.Event{}).fault(kill("w1"), 20, 40), Valid, "", true, false},
		{"killed while idle", asked("kill").acquire("w1", "a", 10, 11).release("a", 12, 13).acquire("w2", "b", 14, 200).fault(kill("w1"), 20, 40), Undecided, "kind:missed-workers,fault_kind:kill", false, false},
		{"server killed under an operation", asked("kill").acquire("w1", "a", 10, 50).fault(kill("n1"), 20, 40), Valid, "1 server kill", true, false},
		{"server killed while nobody asked", asked("kill").acquire("w1", "a", 10, 15).fault(kill("n1"), 20, 40), Undecided, "kind:missed-operations,fault_kind:kill", false, false},
		{"server paused under an operation of a worker tied to it", tied(asked("pause").servers("n1", "n2"), "n1").acquire("w1", "a", 10, 50).pause("f1", 20, 40, "n1"), Valid, "", true, false},
		{"server paused under an operation of a worker tied to another", tied(asked("pause").servers("n1", "n2"), "n2").acquire("w1", "a", 10, 50).pause("f1", 20, 40, "n1"), Undecided, "kind:missed-operations,fault_kind:pause", false, false},
		{"clock under an operation", asked("clock").acquire("w1", "a", 10, 25).fault(clock, 20, 40), Valid, "1 clock", true, false},
		{"clock under a holder", asked("clock").acquire("w1", "a", 10, 11).release("a", 50, 51).fault(clock, 20, 40), Valid, "", true, false},
		{"clock while nobody asked", asked("clock").acquire("w1", "a", 10, 11).release("a", 12, 13).fault(clock, 20, 40), Undecided, "kind:missed-all,fault_kind:clock", false, false},
		{"clock of a worker that asks", asked("clock").acquire("w1", "a", 10, 25).fault(ofWorker("w1"), 20, 40), Valid, "1 clock", true, false},
		{"clock of a worker that is idle", asked("clock").acquire("w1", "a", 10, 11).release("a", 50, 51).fault(ofWorker("w2"), 20, 40), Undecided, "kind:missed-all,fault_kind:clock", false, false},
		{"of an unknown kind", asked("packet").acquire("w1", "a", 10, 50).fault(history.Fault{ID: "f1", Kind: "packet", Targets: []string{"n1"}}, 20, 40), Undecided, "kind:effect-unknown,fault_kind:packet", false, false},
		{"cut", asked("partition").fault(dropped(3), 20, 40), Valid, "", true, false},
		{"cut that dropped nothing", asked("partition").fault(dropped(0), 20, 40), Undecided, "kind:missed-packets,fault_kind:partition", false, false},
		{"disk that failed operations", asked("disk-full").fault(onDisk(new(int64(3))), 20, 40), Valid, "1 server disk-full", true, false},
		{"disk that the server did not use", asked("disk-full").acquire("w1", "a", 10, 50).fault(onDisk(new(int64(0))), 20, 40), Undecided, "kind:missed-disk,fault_kind:disk-full", false, false},
		{"disk that ended before it could tell", asked("disk-full").acquire("w1", "a", 10, 50).fault(onDisk(nil), 20, 40), Undecided, "kind:missed-disk,fault_kind:disk-full", false, false},
		{"change of leader under an operation", asked("transfer-leader").acquire("w1", "a", 10, 25).fault(transfer, 20, 40), Valid, "1 transfer-leader", true, false},
		{"change of leader under a holder", asked("transfer-leader").acquire("w1", "a", 10, 11).release("a", 50, 51).fault(transfer, 20, 40), Valid, "", true, false},
		{"change of leader while nobody asked", asked("transfer-leader").acquire("w1", "a", 10, 11).release("a", 12, 13).fault(transfer, 20, 40), Undecided, "kind:missed-operations,fault_kind:transfer-leader", false, false},
		{"one kind of two", contended("pause", "clock").pause("f1", 20, 140, "w1"), Undecided, "kind:never-applied,fault_kind:clock", true, true},
		{"release paused in flight", released(20, 145).caught("a", 21, "f1").fault(at("releasing", "pause", "w1", "w1"), 22, 140), Valid, "1 releasing pause", true, false},
		{"release over before the pause", released(20, 22).caught("a", 21, "f1").fault(at("releasing", "pause", "w1", "w1"), 23, 140), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"release never caught", released(20, 145).fault(at("releasing", "pause", "w1", "w1"), 22, 140), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"release of another caught", released(20, 145).caught("a", 21, "f1").fault(at("releasing", "pause", "w2", "w2"), 22, 140), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"renewal paused in flight", asked("pause").acquire("w1", "a", 10, 11).renew("a", 20, 80).caught("a", 21, "f1").fault(at("renewing", "pause", "w1", "w1"), 22, 75).release("a", 90, 91), Valid, "1 renewing pause", true, false},
		{"acquire paused in flight", asked("pause").acquire("w1", "a", 20, 80).caught("a", 21, "f1").fault(at("acquiring", "pause", "w1", "w1"), 22, 75), Valid, "1 acquiring pause", true, false},
		{"killed with its release in flight", asked("kill").acquire("w1", "a", 10, 11).do(history.Release, "a", 20, -1, history.Event{}).caught("a", 21, "f1").fault(at("releasing", "kill", "w1", "w1"), 22, 40), Valid, "1 releasing kill", true, false},
		{"server paused before a release", released(20, 145).caught("a", 21, "f1").fault(at("releasing", "pause", "w1", "n1"), 22, 140), Valid, "1 server pause", true, false},
		{"server paused after a release", released(20, 22).caught("a", 21, "f1").fault(at("releasing", "pause", "w1", "n1"), 23, 140).busy("w2", "b", 30, 135, "a"), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"cut off before a release", asked("partition").acquire("w1", "a", 10, 11).release("a", 20, 145).caught("a", 21, "f1").fault(at("releasing", "partition", "w1", "w1"), 22, 140), Valid, "1 partition", true, false},
		{"cut off after a release", asked("partition").acquire("w1", "a", 10, 11).release("a", 20, 22).caught("a", 21, "f1").fault(at("releasing", "partition", "w1", "w1"), 23, 140), Undecided, "kind:missed-moment,fault_kind:partition", false, false},
		{"paused in the queue", asked("pause").acquire("w1", "a", 10, 145).fault(at("queued", "pause", "w1", "w1"), 22, 140), Valid, "1 queued pause", true, false},
		{"paused when its turn had come", asked("pause").acquire("w1", "a", 10, 20).fault(at("queued", "pause", "w1", "w1"), 22, 140), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"paused after its loss", asked("pause").acquire("w1", "a", 10, 11).lost("a", 20, "service").notHeld("a", 22, 23).fault(at("lost", "pause", "w1", "w1"), 20, 140), Valid, "1 lost pause", true, false},
		{"paused when it had the lock again", asked("pause").acquire("w1", "a", 10, 11).lost("a", 20, "service").acquire("w1", "b", 20.2, 20.4).fault(at("lost", "pause", "w1", "w1"), 20, 140), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"clock moved in the awaited hold", asked("clock").then(twice).fault(at("holding", "clock", "w1", "n1"), 20, 140), Valid, "1 clock", true, false},
		{"clock moved in the next hold", asked("clock").then(twice).fault(at("holding", "clock", "w1", "n1"), 28.5, 140), Undecided, "kind:missed-moment,fault_kind:clock", false, false},
		{"clock moved in the next hold, whose moment it awaited", asked("clock").then(twice).fault(since(at("holding", "clock", "w1", "n1"), 0.2), 32, 140), Valid, "1 clock", true, false},
		{"clock moved as the awaited hold ended", asked("clock").then(twice).fault(at("holding", "clock", "w1", "n1"), 24.5, 140), Undecided, "kind:missed-moment,fault_kind:clock", false, false},
		{"server killed in the awaited hold", asked("kill").then(twice).busy("w2", "c", 15, 60, "a").fault(at("holding", "kill", "w1", "n1"), 20, 140), Valid, "1 server kill", true, false},
		{"server killed in the next hold", asked("kill").then(twice).busy("w2", "c", 35, 60, "b").fault(since(at("holding", "kill", "w1", "n1"), 9), 32, 140), Undecided, "kind:missed-moment,fault_kind:kill", false, false},
		{"server killed before the death of the holder", asked("kill").acquire("w1", "a", 10, 11).read("a", 19, 0).fault(kill2("w1"), 30, 40).busy("w2", "b", 15, 35, "a").fault(since(at("holding", "kill", "w1", "n1"), 2), 20, 140), Valid, "1 server kill", true, false},
		{"server killed after the death of the holder", asked("kill").acquire("w1", "a", 10, 11).read("a", 19, 0).fault(kill2("w1"), 19.5, 40).busy("w2", "b", 15, 35, "a").fault(since(at("holding", "kill", "w1", "n1"), 2), 20, 140), Undecided, "kind:missed-moment,fault_kind:kill", false, false},
		{"cut off in the awaited hold", asked("partition").then(twice).fault(at("holding", "partition", "w1", "w1"), 20, 140), Valid, "1 partition", true, false},
		{"cut off in the next hold", asked("partition").then(twice).fault(since(at("holding", "partition", "w1", "w1"), 9), 32, 140), Undecided, "kind:missed-moment,fault_kind:partition", false, false},
		{"paused in the awaited hold", asked("pause").then(twice).acquire("w2", "c", 15, 190).fault(at("holding", "pause", "w1", "w1"), 20, 24), Valid, "1 pause of holders", true, false},
		{"paused in the next hold", asked("pause").then(twice).acquire("w2", "c", 15, 190).fault(since(at("holding", "pause", "w1", "w1"), 9), 32, 140), Undecided, "kind:missed-moment,fault_kind:pause", false, false},
		{"killed in the awaited hold", asked("kill").acquire("w1", "a", 10, 11).read("a", 20, 0).fault(at("holding", "kill", "w1", "w1"), 20, 40), Valid, "1 kill", true, false},
		{"killed as it released the awaited hold", asked("kill").acquire("w1", "a", 10, 11).do(history.Release, "a", 20.5, -1, history.Event{}).fault(at("holding", "kill", "w1", "w1"), 20, 40), Undecided, "kind:missed-moment,fault_kind:kill", false, false},
		{"write held back after the awaited hold", asked("delay-write").then(twice).acquire("w2", "c", 15, 190).fault(at("holding", "delay-write", "w1", "w1"), 20, 140).deferred("b", 40, "f1"), Undecided, "kind:missed-moment,fault_kind:delay-write", false, false},
		{"write held back in the awaited hold", asked("delay-write").then(twice).acquire("w2", "c", 15, 190).fault(at("holding", "delay-write", "w1", "w1"), 20, 140).deferred("a", 23, "f1"), Valid, "1 delay-write of holders", true, true},
		{"skipped", held("pause").stage(20, history.Fault{ID: "f1", Kind: "pause", Stage: history.Skipped, Evidence: "no target"}), Undecided, "kind:never-applied,fault_kind:pause", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			found := factsText(r.of(FaultEvidence).Facts)
			for _, g := range FaultGroups(r.Faults, c.s.header) {
				found += fmt.Sprintf("; %d %s", g.Count(FaultCoverage.Counts), g.Name)
				if g.OfHolders {
					found += " of holders"
				}
			}
			if f := r.of(FaultEvidence); f.Verdict != c.v || !strings.Contains(found, c.found) {
				t.Errorf("%s %q", f.Verdict, found)
			}
			if len(r.Faults) == 0 {
				return
			}
			f := r.Faults[slices.IndexFunc(r.Faults, func(f FaultCoverage) bool { return f.ID == "f1" })]
			if f.Exercised != c.exercised || f.Outlasted != c.outlasted {
				t.Errorf("%+v", f)
			}
			if !f.Exercised && f.Missed == "" && f.Healed {
				t.Errorf("no reason: %+v", f)
			}
		})
	}
}

// TestRoles: the role decides for a fault that never began.
func TestRoles(t *testing.T) {
	for role, workers := range map[string]bool{
		"holder": true, "waiter": true, "workers": true, "one worker": true, "majority workers": true, "w2": true, "n1, w2": true,
		"": false, "leader": false, "follower": false, "one": false, "servers": false, "one server": false, "n3": false, "halves": false,
	} {
		f := FaultCoverage{Kind: "pause", Role: role}
		if got := f.meansWorkers(workersIn(newScript().header)); got != workers {
			t.Errorf("%q means workers: %v", role, got)
		}
	}
}

func TestAssumptions(t *testing.T) {
	for _, c := range []struct {
		name  string
		s     *script
		v     Verdict
		found string
	}{
		{"complete", smallestValid(), Valid, ""},
		{"too few", smallestValid().with(func(h *history.Header) { h.MinOps = 3 }), Undecided, "kind:too-few,n:2,of:3"},
		{"no end", oneUpdate(newScript(), "w1", "a", 10, 1, 1).final("k0", "[1]"), Broken, "kind:history-ends"},
		{"nothing done", newScript().end(), Undecided, "kind:too-few,of:1"},
		{"unknown requirement", smallestValid().with(func(h *history.Header) { h.Require = []string{"speed"} }), Broken, "kind:unknown-property,said:speed"},
		{"mutex", newScript().with(func(h *history.Header) { h.Workload = "mutex" }).acquire("w1", "a", 10, 11).release("a", 20, 21).end(), Valid, ""},
		{"mutex without releases", newScript().with(func(h *history.Header) { h.Workload = "mutex" }).acquire("w1", "a", 10, 11).end(), Undecided, "kind:too-few,of:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.check(t)
			if f := r.of(Assumptions); f.Verdict != c.v || !strings.Contains(factsText(f.Facts), c.found) {
				t.Errorf("%s %q", f.Verdict, factsText(f.Facts))
			}
		})
	}
	broken := smallestValid()
	broken.add(9002, history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: history.PhaseBroken, Error: "docker is gone"})
	if r := broken.check(t); r.Verdict != Broken || factsText(r.of(Assumptions).Facts) != "[{kind:run-failed,said:docker is gone}]" {
		t.Error(r.dump())
	}
	h := smallestValid().history(t)
	h.Truncated = 17
	if f := Check(h, Options{}).of(Assumptions); !strings.Contains(factsText(f.Facts), "kind:cut-off,n:17") {
		t.Error(factsText(f.Facts))
	}
}
