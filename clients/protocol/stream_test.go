package protocol

import (
	"testing"
	"time"
)

// TestPlausible: times that cannot be the end of a validity are rejected, and others accepted.
func TestPlausible(t *testing.T) {
	const sent, received = int64(5_000_000_000_000), int64(5_000_000_500_000)
	pending := &call{sent: sent, request: Request{TTLMS: 2000}}
	lease, day := 2*time.Second.Nanoseconds(), 24*time.Hour.Nanoseconds()
	for name, c := range map[string]struct {
		until int64
		good  bool
	}{
		"the lease from the request":   {sent + lease, true},
		"the lease from the answer":    {received + lease, true},
		"over when it arrives":         {sent + 1, true},
		"ten leases":                   {received + 10*lease, true},
		"over before it was asked for": {sent - 1, false},
		"in ms":                        {(sent + lease) / 1_000_000, false},
		"a length of time":             {lease, false},
		"more than a day":              {received + lease + day + 1, false},
		"wall clock":                   {time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), false},
		"negative":                     {-1, false},
	} {
		if got := pending.plausible(c.until, received); got != c.good {
			t.Errorf("%s: %t", name, got)
		}
	}
}
