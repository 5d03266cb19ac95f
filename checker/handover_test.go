package checker

import (
	"testing"
	"time"
)

func hold(worker, grant string, start, end, deadline int64, how HoldEnd) Hold {
	return Hold{Key: "k", Worker: worker, Grant: grant, Start: start, End: end, Deadline: deadline, Ended: how}
}

// TestHandovers: a holder that is stopped for longer than the lease is handed over
// from; one that is stopped for less, outside its hold, or is another worker's, not.
func TestHandovers(t *testing.T) {
	const lease = int64(100)
	paused := func(target string, from, to int64) fault {
		return fault{
			FaultCoverage: FaultCoverage{Kind: "pause", Applied: true, Targets: []string{target}, Begin: from, End: to},
			certainFrom:   from, certainTo: to,
		}
	}
	late := func(f fault, certain int64) fault {
		f.certainFrom = certain
		return f
	}
	cut := func(target string, peers []string, from, to int64) fault {
		f := paused(target, from, to)
		f.Kind, f.Peers = "partition", peers
		return f
	}
	holds := []Hold{
		hold("w1", "a", 10, 400, 110, EndedByRelease),
		hold("w2", "b", 150, 160, 250, EndedByRelease),
	}
	for _, c := range []struct {
		name  string
		fault fault
		holds []Hold
		want  HandoverSummary
	}{
		{"stopped for longer than the lease", paused("w1", 20, 300), holds, HandoverSummary{Holders: 1, Median: 130, Longest: 130}},
		{"nobody follows", paused("w1", 20, 300), holds[:1], HandoverSummary{Holders: 1, Stuck: 1}},
		{"stopped for less", paused("w1", 20, 60), holds, HandoverSummary{}},
		{"stopped before it held", paused("w1", 5, 300), holds, HandoverSummary{}},
		{"released before it was stopped for certain", late(paused("w1", 20, 300), 410), holds, HandoverSummary{}},
		{"cut off from all servers", cut("w1", []string{"n1", "n2", "n3"}, 20, 300), holds, HandoverSummary{Holders: 1, Median: 130, Longest: 130}},
		{"cut off from one of three", cut("w1", []string{"n1"}, 20, 300), holds, HandoverSummary{}},
		{"cut off from another worker", cut("w1", []string{"w2"}, 20, 300), holds, HandoverSummary{}},
		{"somebody else stopped", paused("w3", 20, 300), holds, HandoverSummary{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &run{holds: c.holds, faults: []fault{c.fault}}
			r.header.Lease, r.header.Servers = time.Duration(lease), []string{"n1", "n2", "n3"}
			if got := r.handovers(); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestNotices: who learns of being replaced, and how late.
func TestNotices(t *testing.T) {
	next := hold("w2", "b", 100, 300, 400, EndedByRelease)
	for _, c := range []struct {
		how  HoldEnd
		want NoticeSummary
	}{
		{EndedByLost, NoticeSummary{Replaced: 1, Told: 1, Latest: 50}},
		{EndedByDeadline, NoticeSummary{Replaced: 1, Told: 1, Latest: 50}},
		{EndedAtRelease, NoticeSummary{Replaced: 1, AtRelease: 1}},
		{EndedByRelease, NoticeSummary{Replaced: 1, Never: 1}},
		{EndedWithoutTrace, NoticeSummary{Replaced: 1, Never: 1}},
	} {
		earlier := hold("w1", "a", 10, 150, 60, c.how)
		third := hold("w3", "c", 120, 140, 200, EndedByRelease)
		if got := notices([]overlap{{earlier: earlier, later: next}, {earlier: earlier, later: third}}); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.how, got, c.want)
		}
	}
	if got := notices(nil); got != (NoticeSummary{}) {
		t.Errorf("without overlaps: %+v", got)
	}
}

// TestReaction: how quickly faults followed what they waited for; nothing is said
// where none waited.
func TestReaction(t *testing.T) {
	waited := func(since ...time.Duration) (all []FaultCoverage) {
		for _, s := range since {
			all = append(all, FaultCoverage{Since: s})
		}
		return all
	}
	if got := reaction(waited(3*time.Millisecond, 0, 9*time.Millisecond, time.Millisecond)); got != "in force 3 ms after the event waited for (median of 3; longest 9 ms)" {
		t.Errorf("got %q", got)
	}
	if got := reaction(waited(0, 0)); got != "" {
		t.Errorf("without waiting: %q", got)
	}
}
