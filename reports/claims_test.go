package reports

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// watched adds what an observer of the service reports a little late: each hold was on record from its grant
// until its release or until its lease ended.
func watched(h *history.History, r checker.Results) {
	for _, hold := range r.Holds {
		service := func(t int64, f history.Function) {
			h.Events = append(h.Events, history.Event{Time: t + ms, Process: history.Service, Type: history.Info, F: f, Key: hold.Key, Token: hold.Token})
		}
		service(hold.Start, history.Claimed)
		service(min(hold.End, hold.LeaseEnd), history.Dropped)
	}
}

func TestClaims(t *testing.T) {
	hold := checker.Hold{Key: "k", Worker: "w1", Grant: "g", Token: 7, Start: 10, End: 50, Deadline: 50}
	event := func(t int64, f history.Function, key string, token uint64) history.Event {
		return history.Event{Time: t, Process: history.Service, Type: history.Info, F: f, Key: key, Token: token}
	}
	claimed, dropped := event(11, history.Claimed, "k", 7), event(30, history.Dropped, "k", 7)
	for name, c := range map[string]struct {
		events   []history.Event
		from, to int64 // of the only claim; there is no claim if both are 0
		early    bool
		unowned  int
	}{
		"nobody looked":    {},
		"dropped early":    {[]history.Event{claimed, dropped}, 11, 30, true, 0},
		"dropped after it": {[]history.Event{claimed, event(51, history.Dropped, "k", 7)}, 11, 51, false, 0},
		"to the end":       {[]history.Event{claimed}, 11, 100, false, 0},
		"seen twice":       {[]history.Event{claimed, event(12, history.Claimed, "k", 7), dropped}, 11, 30, true, 0},
		"unobserved":       {[]history.Event{claimed, event(20, history.Unobserved, "", 0), dropped}, 11, 20, false, 0},
		"of another key":   {[]history.Event{event(11, history.Claimed, "other", 7)}, 0, 0, false, 1},
		"another token":    {[]history.Event{event(11, history.Claimed, "k", 8)}, 0, 0, false, 1},
		"never claimed":    {[]history.Event{dropped}, 0, 0, false, 0},
		"not the service":  {[]history.Event{{Time: 11, Process: "w1", F: history.Claimed, Key: "k", Token: 7}}, 0, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rec := newRecord(&history.History{Events: c.events}, checker.Results{Holds: []checker.Hold{hold}, End: 100})
			if len(rec.unowned) != c.unowned {
				t.Errorf("claims without a hold: %v, want %d", rec.unowned, c.unowned)
			}
			if c.to == 0 {
				if len(rec.claims) != 0 {
					t.Errorf("claims %v, want none", rec.claims)
				}
				return
			}
			if len(rec.claims) != 1 || rec.claims[0].from != c.from || rec.claims[0].to != c.to || rec.claims[0].tooEarly() != c.early {
				t.Errorf("claims %+v, want one from %d to %d, too early: %v", rec.claims, c.from, c.to, c.early)
			}
		})
	}
}

func TestHTMLShowsWhatTheServiceHadOnRecord(t *testing.T) {
	h, r := realistic("none")
	says := []string{"on record at the service", "the service drops it", "which goes on as if it held the lock", "nobody saw what the service had on record"}
	plain := pageOf(t, run{"unwatched", h, r})
	for _, text := range says {
		if strings.Contains(plain, text) {
			t.Errorf("nobody looked, and the page says %q", text)
		}
	}
	if n := parseSVG(t, plain)["claim"]; n != 0 {
		t.Errorf("nobody looked, and %d claims are drawn", n)
	}
	watched(h, r)
	h.Events = append(h.Events, history.Event{Time: r.End - 1, Process: history.Service, Type: history.Info, F: history.Unobserved, Error: "no answer"})
	page := pageOf(t, run{"watched", h, r})
	for _, text := range says {
		if !strings.Contains(page, text) {
			t.Errorf("missing %q", text)
		}
	}
	if n := parseSVG(t, page)["claim"]; n < len(r.Holds) {
		t.Errorf("%d claims are drawn of %d holds", n, len(r.Holds))
	}
}

func TestHTMLMarksTheEndOfLeases(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*history.Header, *checker.Hold)
		marked bool
	}{
		"as it was":      {func(*history.Header, *checker.Hold) {}, true},
		"no lease":       {func(_ *history.Header, h *checker.Hold) { h.LeaseEnd = math.MaxInt64 }, false},
		"session":        {func(h *history.Header, _ *checker.Hold) { h.Session = true }, false},
		"released in it": {func(_ *history.Header, h *checker.Hold) { h.LeaseEnd, h.Ended = h.End+1, checker.EndedByRelease }, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, r := realistic("none")
			for i := range r.Holds {
				c.change(&h.Header, &r.Holds[i])
			}
			page := pageOf(t, run{"leases", h, r})
			if got := strings.Contains(page, "TTL of "+Length(2*time.Second)+" ends"); got != c.marked {
				t.Errorf("the end of the lease is marked: %v, want %v", got, c.marked)
			}
			if got := parseSVG(t, page)["#s-ttl"] > 0; got != c.marked {
				t.Errorf("the end of the lease has a symbol: %v, want %v", got, c.marked)
			}
		})
	}
}

// TestHTMLShowsClaimsWithoutAHold has one claim in the queue that was never granted.
func TestHTMLShowsClaimsWithoutAHold(t *testing.T) {
	h, r := realistic("none")
	i := r.Findings[0].Violations[0]
	service := func(at int64, f history.Function) history.Event {
		return history.Event{Time: at, Process: history.Service, Type: history.Info, F: f, Key: i.Key, Token: 4711}
	}
	const text = "claim 4711"
	for name, c := range map[string]struct {
		events []history.Event
		shown  bool
	}{
		"none":                 {nil, false},
		"in the close-up":      {[]history.Event{service(i.From, history.Claimed), service(i.To, history.Dropped)}, true},
		"elsewhere in the run": {[]history.Event{service(r.End-2, history.Claimed), service(r.End-1, history.Dropped)}, false},
	} {
		with := *h
		with.Events = slices.Concat(h.Events, c.events)
		page := pageOf(t, run{"unowned", &with, r})
		if got := strings.Contains(page, text); got != c.shown {
			t.Errorf("%s: shown: %v, want %v", name, got, c.shown)
		}
		if got := strings.Contains(page, "1 claim of the service that no hold came of left out"); got != (c.events != nil) {
			t.Errorf("%s: said of the whole run: %v", name, got)
		}
	}
}
