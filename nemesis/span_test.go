package nemesis

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestParseSpan(t *testing.T) {
	for _, c := range []struct {
		text string
		want Span
		back string // written form; "" for text itself
	}{
		{"3s", Span{Plus: 3 * time.Second}, ""},
		{"1m30s", Span{Plus: 90 * time.Second}, ""},
		{"+3s", Span{Plus: 3 * time.Second}, "3s"},
		{"-3s", Span{Plus: -3 * time.Second}, ""},
		{"0s", Span{}, ""},
		{"0", Span{}, "0s"},
		{"lease", Span{Leases: 1}, ""},
		{"-lease", Span{Leases: -1}, ""},
		{"lease+1s", Span{1, time.Second}, ""},
		{"lease-500ms", Span{1, -500 * time.Millisecond}, ""},
		{"lease+0s", Span{Leases: 1}, "lease"},
		{"2*lease-500ms", Span{2, -500 * time.Millisecond}, ""},
		{"0.5*lease", Span{Leases: 0.5}, ""},
		{"-1.5*lease+2s", Span{-1.5, 2 * time.Second}, ""},
		{"0*lease+2s", Span{Plus: 2 * time.Second}, "2s"},
		// strconv would write these factors with an exponent, which a span does not allow.
		{"1000000*lease", Span{Leases: 1e6}, ""},
		{"0.00001*lease", Span{Leases: 1e-5}, ""},
	} {
		got, err := ParseSpan(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q is %+v, %v, want %+v", c.text, got, err, c.want)
		}
		if c.back == "" {
			c.back = c.text
		}
		if got.String() != c.back {
			t.Errorf("%q is written as %q, want %q", c.text, got, c.back)
		}
	}
}

func TestParseSpanMalformed(t *testing.T) {
	for _, text := range []string{
		"", " ", "3", "three seconds", "3s ", " 3s", "3x", "--3s", "lease1s", "lease + 1s", "lease+", "lease+lease",
		"leases", "2lease", "2*", "*lease", "1.2.3*lease", ".*lease", "1e3*lease", "1s+lease", "+lease", "lease\n",
	} {
		if span, err := ParseSpan(text); err == nil {
			t.Errorf("%q is read as %s", text, span)
		}
	}
}

func TestSpanOf(t *testing.T) {
	for _, c := range []struct {
		text        string
		lease, want time.Duration
	}{
		{"3s", 2 * time.Second, 3 * time.Second},
		{"lease", 2 * time.Second, 2 * time.Second},
		{"2*lease-500ms", 2 * time.Second, 3500 * time.Millisecond},
		{"-lease-1s", 2 * time.Second, -3 * time.Second},
		// A lock without a lease counts as having one of a second.
		{"lease+1s", 0, 2 * time.Second},
		{"3s", 0, 3 * time.Second},
	} {
		span, err := ParseSpan(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := span.Of(c.lease); got != c.want {
			t.Errorf("%s of a lease of %s is %s, want %s", c.text, c.lease, got, c.want)
		}
	}
}

// TestSpanRoundTrip: every span is read back as it was written.
func TestSpanRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for range 10_000 {
		span := Span{Plus: time.Duration(rng.Int64() >> rng.IntN(63))}
		if rng.IntN(2) == 0 {
			span.Plus = -span.Plus
		}
		switch rng.IntN(3) {
		case 0:
			span.Leases = float64(rng.IntN(7) - 3)
		case 1:
			span.Leases = rng.NormFloat64() * float64(int64(1)<<rng.IntN(60))
		}
		if got, err := ParseSpan(span.String()); err != nil || got != span {
			t.Fatalf("%+v is written as %q, which is %+v, %v", span, span, got, err)
		}
	}
}
