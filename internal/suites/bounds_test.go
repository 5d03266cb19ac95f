package suites

import (
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/checker"
)

// TestBounds checks each bound with a figure within it and a figure out of it.
func TestBounds(t *testing.T) {
	pool := func(lost int64, acquires ...time.Duration) checker.Pool {
		p := checker.Pool{Runs: 1, Acknowledged: 10, Lost: lost}
		for _, d := range acquires {
			p.Measures.Acquire.Add(d)
		}
		return p
	}
	for _, c := range []struct {
		text string
		pool checker.Pool
		want string
	}{
		{`{}`, pool(0), ""},
		{`{lost: "<= 0"}`, pool(0), ""},
		{`{lost: "<= 0"}`, pool(1), "lost 1, not 0 at most"},
		{`{lost: ">= 1"}`, pool(1), ""},
		{`{lost: ">= 1"}`, pool(0), "lost 0, not 1 at least"},
		{`{lost: 2-3}`, pool(3), ""},
		{`{lost: 2-3}`, pool(4), "lost 4, not 2 to 3"},
		{`{acquire_p50: 1ms-2ms}`, pool(0, time.Millisecond), ""},
		{`{acquire_p50: 1ms-2ms}`, pool(0, 3*time.Millisecond), "acquire_p50 3ms, not 1ms to 2ms"},
		{`{acquire_p50: 1ms-2ms}`, pool(0), "no data for acquire_p50, not 1ms to 2ms"},
		{`{lost: "<= 0", acquire_p50: 1ms-2ms}`, pool(1, time.Millisecond), "lost 1, not 0 at most"},
	} {
		var b Bounds
		if err := yaml.Unmarshal([]byte(c.text), &b); err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := b.Missed(c.pool); got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
		if got := b.Unknown(c.pool); (got != "") != strings.HasPrefix(c.want, "no data") {
			t.Errorf("%s: unknown %q", c.text, got)
		}
	}
	for text, want := range map[string]string{
		`[lost]`:                   "line 1: write figures",
		`{found: "<= 1"}`:          `there is no figure "found"`,
		`{lost: 1}`:                "write 1-3",
		`{lost: "<= few"}`:         "write a number",
		`{lost: 3-2}`:              "3 is more than 2",
		`{lost: 1-2, lost: 1-3}`:   "line 1",
		`{acquire_p50: 1-2}`:       "write a length of time",
		`{availability: ">= 1.5"}`: "makes no sense",
	} {
		var b Bounds
		if err := yaml.Unmarshal([]byte(text), &b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", text, err, want)
		}
	}
}
