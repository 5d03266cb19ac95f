package reports

import (
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

func TestRepeatedWaits(t *testing.T) {
	ask := func(worker string, from, to int64) wait { return wait{worker, "k", from, to, history.Fail, 1} }
	unknown := ask("w1", 12, 20)
	unknown.outcome = history.Info
	other := ask("w1", 12, 20)
	other.key = "k2"
	for name, c := range map[string]struct{ waits, want []wait }{
		"none":             {nil, nil},
		"apart":            {[]wait{ask("w1", 0, 10), ask("w1", 15, 20)}, []wait{ask("w1", 0, 10), ask("w1", 15, 20)}},
		"again":            {[]wait{ask("w1", 0, 10), ask("w1", 14, 20)}, []wait{{"w1", "k", 0, 20, history.Fail, 2}}},
		"others between":   {[]wait{ask("w1", 0, 10), ask("w2", 1, 11), ask("w1", 12, 20)}, []wait{{"w1", "k", 0, 20, history.Fail, 2}, ask("w2", 1, 11)}},
		"another outcome":  {[]wait{ask("w1", 0, 10), unknown}, []wait{ask("w1", 0, 10), unknown}},
		"of another key":   {[]wait{ask("w1", 0, 10), other}, []wait{ask("w1", 0, 10), other}},
		"of other workers": {[]wait{ask("w1", 0, 10), ask("w2", 12, 20)}, []wait{ask("w1", 0, 10), ask("w2", 12, 20)}},
	} {
		if got := joinRepeated(c.waits, 5); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestTimesOfASituation(t *testing.T) {
	for _, c := range []struct {
		length int64
		want   string
	}{{ms, "0.001234 s"}, {100 * ms, "0.001 s"}, {s, "0.001 s"}} {
		if got := (situation{from: epoch, to: epoch + c.length}).at(epoch+1_234_000, epoch); got != c.want {
			t.Errorf("in a situation of %d ns: %s, want %s", c.length, got, c.want)
		}
	}
}

func TestHTMLNamesExpiredGrants(t *testing.T) {
	const named = ">expired grant<"
	h, r := realistic("none")
	overlap := r.Findings[0].Violations[0]
	if strings.Contains(pageOf(t, run{"alive", h, r}), named) {
		t.Error("a grant is called dead that was not")
	}
	r.Findings = append(r.Findings, checker.Finding{Property: checker.NoExpiredGrant, Verdict: checker.Violation,
		Violations: []checker.Incident{{Key: overlap.Key, From: overlap.From, Grants: overlap.Grants[1:]}}, Total: 1})
	if !strings.Contains(pageOf(t, run{"dead", h, r}), named) {
		t.Error("a expired grant is not named")
	}
}

func TestStepsNameThoseWhoStillHoldTheLock(t *testing.T) {
	want := []string{"w1 is granted the lock.", "while w1 still holds it.", "while w1 and w2 still hold it.", "while w1, w2 and w3 still hold it."}
	rec := &record{}
	for i, w := range []string{"w1", "w2", "w3", "w4"} {
		h := checker.Hold{Worker: w, Grant: w, Start: int64(i), End: 10, Deadline: 10}
		rec.holds = append(rec.holds, h)
		told := &teller{record: rec}
		told.tellGrant(h)
		if text := told.shown[0].Text; !strings.HasSuffix(text, want[i]) {
			t.Errorf("%s: %q, want %q at its end", w, text, want[i])
		}
	}
}
