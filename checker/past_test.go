package checker

import (
	"slices"
	"testing"
	"time"

	"lockcheck/history"
)

// TestBetween: for a double grant the finding names what another attempt left between the two grants. It
// names nothing from before or after.
func TestBetween(t *testing.T) {
	unknown := history.Event{Type: history.Info, Error: "timeout"}
	gaveUp := func(from, to float64) func(*script) *script {
		return func(s *script) *script { return s.try("w3", "c", from, to, unknown) }
	}
	released := func(at float64) func(*script) *script {
		return func(s *script) *script { return s.acquire("w4", "x", 2, 3).release("x", at, at+1) }
	}
	for _, c := range []struct {
		name, want string
		s          func(*script) *script
	}{
		{"nothing", "null", func(s *script) *script { return s }},
		{"an attempt given up", "{granted:{worker:w3,grant:c,at:0},fate:gave-up,at:20ms}", gaveUp(12, 20)},
		{"an attempt given up before", "null", gaveUp(2, 5)},
		{"an attempt given up after", "null", gaveUp(12, 35)},
		{"an attempt that was refused", "null", func(s *script) *script { return s.busy("w3", "c", 12, 20, "") }},
		{"a release", "{granted:{worker:w4,grant:x,at:3ms},fate:released,asked:15ms,at:16ms}", released(15)},
		{"a release before", "null", released(9)},
		{"a release after", "null", released(33)},
		{"a release without an answer", "{granted:{worker:w4,grant:x,at:3ms},fate:unanswered,asked:15ms}", func(s *script) *script {
			return s.acquire("w4", "x", 2, 3).do(history.Release, "x", 15, -1, history.Event{})
		}},
		{"a release of a lock that several may hold", "null", func(s *script) *script {
			return released(15)(s).with(func(h *history.Header) { h.Reentrant = 2 })
		}},
		{"a release, then an attempt given up", "{granted:{worker:w3,grant:c,at:0},fate:gave-up,at:20ms}", func(s *script) *script { return gaveUp(12, 20)(released(15)(s)) }},
		{"an attempt given up, then a release", "{granted:{worker:w4,grant:x,at:3ms},fate:released,asked:22ms,at:23ms}", func(s *script) *script { return gaveUp(12, 20)(released(22)(s)) }},
		{"refused in favour of nobody's", "{granted:{worker:,grant:z,at:0},fate:named,at:14ms}", func(s *script) *script { return gaveUp(12, 20)(s.busy("w4", "d", 13, 14, "z")) }},
		{"refused in favour of an attempt without an answer", "{granted:{worker:w3,grant:c,at:0},fate:named,at:14ms}", func(s *script) *script {
			return s.try("w3", "c", 12, -1, history.Event{}).busy("w4", "d", 13, 14, "c")
		}},
		{"refused in favour of the holder", "null", func(s *script) *script { return s.busy("w4", "d", 13, 14, "a") }},
		{"refused in favour of nobody's after", "null", func(s *script) *script { return s.busy("w4", "d", 33, 34, "z") }},
	} {
		s := c.s(newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 30, 31)).release("b", 40, 41).release("a", 50, 51)
		v := s.end().check(t).of(MutualExclusion).Violations
		i := slices.IndexFunc(v, func(i Incident) bool { return slices.Equal(i.Grants, []string{"a", "b"}) })
		if i < 0 || v[i].Cause != CauseTwice {
			t.Errorf("%s: %s", c.name, factsText(v))
			continue
		}
		if got := factsText(v[i].Explanation.Between); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestLastHold: for a stuck lock the finding names the last holder and what may have blocked the lock since.
func TestLastHold(t *testing.T) {
	unknown := history.Event{Type: history.Info, Error: "timeout"}
	refused := func(holder string) func(*script) *script {
		return func(s *script) *script { return s.busy("w2", "b", 200, 3000, holder) }
	}
	service := func(at float64, f history.Function, token uint64) func(*script) *script {
		return func(s *script) *script {
			s.add(at, history.Event{Process: history.Service, Type: history.Info, F: f, Key: "k0", Token: token})
			return s
		}
	}
	for _, c := range []struct {
		name, want string
		s          []func(*script) *script
	}{
		{"nothing", "null", nil},
		{"named as before", "{granted:{worker:w1,grant:a,at:11ms,token:5},fate:named,at:3000ms}", []func(*script) *script{refused("a")}},
		{"nobody's is named", "{granted:{worker:,grant:z,at:0},fate:named,at:3000ms}", []func(*script) *script{refused("z")}},
		{"an attempt refused because of itself", "{granted:{worker:w3,grant:c,at:0,refused_by_itself:true},fate:named,at:3000ms}", []func(*script) *script{
			func(s *script) *script { return s.busy("w3", "c", 15, 25, "c") }, refused("c"),
		}},
		{"an attempt refused because of another", "{granted:{worker:w3,grant:c,at:0},fate:named,at:3000ms}", []func(*script) *script{
			func(s *script) *script { return s.busy("w3", "c", 15, 25, "a") }, refused("c"),
		}},
		{"an attempt given up before", "{granted:{worker:w3,grant:c,at:0},fate:gave-up,at:25ms}", []func(*script) *script{
			func(s *script) *script { return s.try("w3", "c", 15, 25, unknown) }, refused(""),
		}},
		{"an attempt given up before the last grant", "null", []func(*script) *script{
			func(s *script) *script { return s.try("w3", "c", 2, 8, unknown) }, refused(""),
		}},
		{"an attempt given up meanwhile", "null", []func(*script) *script{
			func(s *script) *script { return s.try("w3", "c", 15, 400, unknown) }, refused(""),
		}},
		{"a claim of nobody's", "{granted:{worker:,grant:,at:0,token:7},fate:claimed,at:1600ms}", []func(*script) *script{
			service(12, history.Claimed, 5), service(16, history.Claimed, 7), service(21, history.Dropped, 5), service(201, history.Claimed, 9), refused(""),
		}},
		{"the claim that was granted", "{granted:{worker:w1,grant:a,at:11ms,token:5},fate:claimed,at:1600ms}", []func(*script) *script{
			service(12, history.Claimed, 5), service(201, history.Claimed, 9), refused(""),
		}},
	} {
		s := newScript().with(func(h *history.Header) { h.Grace = 50 * time.Millisecond }).phase(1, history.PhaseReady)
		s.acquireToken("w1", "a", 10, 11, 5).release("a", 20, 21)
		for _, change := range c.s {
			change(s)
		}
		if len(c.s) == 0 {
			refused("")(s)
		}
		f := s.phase(5000, history.PhaseFinal).end().check(t).of(Liveness)
		if len(f.Violations) != 1 || f.Violations[0].LastHold == nil {
			t.Errorf("%s: %s", c.name, factsText(f))
			continue
		}
		last := f.Violations[0].LastHold
		if got := factsText(last.Since); got != c.want || factsText(last.Past) != "{granted:{worker:w1,grant:a,at:11ms,token:5},fate:released,asked:20ms,at:21ms}" {
			t.Errorf("%s: %s, then %s, want %s", c.name, factsText(last.Past), got, c.want)
		}
	}
}
