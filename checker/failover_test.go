package checker

import (
	"testing"
	"time"

	"lockcheck/history"
)

// TestFailovers: a holder that is stopped for longer than its lease counts as a failover. A holder that is
// stopped for less time, outside its hold, or that holds nothing does not.
func TestFailovers(t *testing.T) {
	holds := func() *script { // a from 11 to 400, b from 151 to 160
		return newScript().servers("n1", "n2", "n3").acquire("w1", "a", 10, 11).notHeld("a", 400, 401).
			acquire("w2", "b", 150, 151).release("b", 160, 161)
	}
	alone := func() *script {
		return newScript().servers("n1", "n2", "n3").acquire("w1", "a", 10, 11).notHeld("a", 400, 401)
	}
	cut := func(target string, peers ...string) history.Fault {
		return history.Fault{ID: "f1", Kind: history.Partition, Targets: []string{target}, Peers: peers}
	}
	kill := history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}}
	one := FailoverSummary{Holders: 1, Median: 131 * time.Millisecond, Longest: 131 * time.Millisecond}
	for _, c := range []struct {
		name string
		s    *script
		want FailoverSummary
	}{
		{"stopped for longer than the lease", holds().pause("f1", 20, 300, "w1"), one},
		{"nobody asks for it", alone().pause("f1", 20, 300, "w1"), FailoverSummary{}},
		{"asked for before", alone().busy("w2", "b", 12, 15, "a").pause("f1", 20, 300, "w1"), FailoverSummary{}},
		{"asked for in vain", alone().busy("w2", "b", 150, 151, "a").pause("f1", 20, 300, "w1"), FailoverSummary{Holders: 1, Stuck: 1}},
		{"stopped for less", holds().pause("f1", 20, 60, "w1"), FailoverSummary{}},
		{"stopped before it held", holds().pause("f1", 5, 300, "w1"), FailoverSummary{}},
		{"released before it was stopped for certain", newScript().acquire("w1", "a", 10, 11).release("a", 20.5, 21.5).
			acquire("w2", "b", 150, 151).pause("f1", 20, 300, "w1"), FailoverSummary{}},
		{"replaced before", holds().pause("f1", 200, 399, "w1"), FailoverSummary{}},
		{"killed", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 150, 151).release("b", 160, 161).fault(kill, 20, 20.5), one},
		{"killed after its release", newScript().acquire("w1", "a", 10, 11).release("a", 15, 16).acquire("w2", "b", 150, 151).fault(kill, 20, 20.5), FailoverSummary{}},
		{"cut off from all servers", holds().fault(cut("w1", "n1", "n2", "n3"), 20, 300), one},
		{"cut off from one of three", holds().fault(cut("w1", "n1"), 20, 300), FailoverSummary{}},
		{"cut off from another worker", holds().fault(cut("w1", "w2"), 20, 300), FailoverSummary{}},
		{"somebody else stopped", holds().pause("f1", 20, 300, "w3"), FailoverSummary{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			if r.Failovers != c.want {
				t.Errorf("got %+v, want %+v", r.Failovers, c.want)
			}
			if took := r.Measures.Failover; took.N != c.want.Holders-c.want.Stuck || took.Max != c.want.Longest {
				t.Errorf("measured %+v", took)
			}
		})
	}
}

// TestPromptFailover: only the time counts in which another worker could have been granted the lock. Lease, grace
// period and LivenessGrace are 1.15 s.
func TestPromptFailover(t *testing.T) {
	waits := func(until float64) *script {
		return newScript().servers("n1", "n2", "n3").with(func(h *history.Header) { h.Require = []string{string(PromptFailover)} }).
			acquire("w1", "a", 10, 11).fault(history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}}, 20, 20.5).
			acquire("w2", "b", 30, until).release("b", until+5, until+6)
	}
	server := func(names ...string) history.Fault {
		return history.Fault{ID: "f2", Kind: history.Kill, Targets: names}
	}
	for _, c := range []struct {
		name string
		s    *script
		want Verdict
	}{
		{"in time", waits(1100), Valid},
		{"late", waits(1300), Violation},
		{"late, one server of three was dead", waits(1300).fault(server("n1"), 100, 900), Violation},
		{"late, no majority ran", waits(1300).fault(server("n1", "n2"), 100, 900), Valid},
		{"late, and the waiter was stopped", waits(1300).pause("f2", 100, 900, "w2"), Valid},
		{"late, and asked for late", newScript().with(func(h *history.Header) { h.Require = []string{string(PromptFailover)} }).
			acquire("w1", "a", 10, 11).fault(history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}}, 20, 20.5).acquire("w2", "b", 1200, 1300).release("b", 1310, 1311), Valid},
		{"nobody was silent", newScript().with(func(h *history.Header) { h.Require = []string{string(PromptFailover)} }).acquire("w1", "a", 10, 11).release("a", 20, 21), Undecided},
	} {
		if f := c.s.end().check(t).of(PromptFailover); f.Verdict != c.want {
			t.Errorf("%s: %s, %s, want %s", c.name, f.Verdict, factsText(f.Facts), c.want)
		}
	}
}

// TestLossNotifications checks which holders learn that they were replaced, and how late.
func TestLossNotifications(t *testing.T) {
	// w1 holds from 11; w2 is granted the lock at 121 and w3 at 131.
	replaced := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).acquire("w3", "c", 130, 131).
			release("c", 135, 136).notHeld("b", 134, 135)
	}
	others := LossNotificationSummary{Replaced: 2, AtRelease: 1} // w2, replaced by w3
	for _, c := range []struct {
		name string
		s    *script
		want LossNotificationSummary
	}{
		{"notified", replaced().lost("a", 151, "service"), LossNotificationSummary{Notified: 1, Latest: 30 * time.Millisecond}},
		{"by its deadline", replaced().lost("a", 151, "deadline"), LossNotificationSummary{Notified: 1, Latest: 30 * time.Millisecond}},
		{"at its release", replaced().notHeld("a", 151, 152), LossNotificationSummary{AtRelease: 1}},
		{"never", replaced().release("a", 151, 152), LossNotificationSummary{Never: 1}},
		{"never, dead", replaced().read("a", 151, 0), LossNotificationSummary{Never: 1}},
	} {
		want := c.want
		want.Replaced, want.AtRelease = others.Replaced, want.AtRelease+others.AtRelease
		r := c.s.end().check(t)
		if r.LossNotifications != want {
			t.Errorf("%s: got %+v, want %+v", c.name, r.LossNotifications, want)
		}
		if notified := r.Measures.Notified; notified.N != want.Notified || notified.Max != want.Latest {
			t.Errorf("%s: measured %+v", c.name, notified)
		}
	}
	if got := smallestValid().check(t).LossNotifications; got != (LossNotificationSummary{}) {
		t.Errorf("without overlaps: %+v", got)
	}
}

// TestFailoverOfReader: another reader that rightly shares the lock of a dead or stopped reader keeps writers
// out. That is neither a failover nor a stuck lock.
func TestFailoverOfReader(t *testing.T) {
	dead := func() *script {
		return readWriteScript().share("w1", "a", 10, 11).fault(history.Fault{ID: "f1", Kind: history.Kill, Targets: []string{"w1"}}, 20, 20.5)
	}
	for name, c := range map[string]struct {
		s      *script
		killed int64
	}{
		"another reader after it":    {dead().share("w2", "b", 60, 61).release("b", 70, 71), 0},
		"another reader next to it":  {dead().share("w2", "b", 15, 16).release("b", 500, 501).acquire("w3", "c", 505, 506).release("c", 510, 511), 0},
		"another reader, who leaves": {dead().share("w2", "b", 15, 16).release("b", 21, 22).acquire("w3", "c", 118, 119).release("c", 125, 126), 1},
		"nobody but a writer":        {dead().acquire("w3", "c", 150, 151).release("c", 160, 161), 1},
		"a writer, asking in vain":   {dead().busy("w3", "c", 150, 151, "a"), 1},
		"a writer before all others": {dead().acquire("w3", "c", 150, 151).release("c", 160, 161).share("w2", "b", 165, 166).release("b", 170, 171), 1},
	} {
		r := c.s.end().check(t)
		if r.Failovers.Holders != c.killed || r.Orphans.Killed != c.killed {
			t.Errorf("%s: %+v, %+v", name, r.Failovers, r.Orphans)
		}
	}
}
