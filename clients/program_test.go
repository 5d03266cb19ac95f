package clients

import (
	"testing"
	"time"

	"lockcheck/clients/protocol"
)

// TestProgramUntil: a session ends only when it is lost, whatever its client states as the end. If the end were
// believed, a release after it would be excused.
func TestProgramUntil(t *testing.T) {
	const said, sent = 5_000, 1_000
	for _, c := range []struct {
		name    string
		session bool
		until   int64
		ttl     time.Duration
		want    int64
	}{
		{"the client says", false, said, time.Second, said},
		{"the client does not say", false, 0, time.Second, sent + time.Second.Nanoseconds()},
		{"no lease", false, 0, 0, 0},
		{"no lease, and the client says", false, said, 0, said},
		{"session", true, 0, time.Second, 0},
		{"session, and the client says", true, said, time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &program{Definition: Definition{Session: c.session}}
			answer := protocol.Answer{Line: protocol.Line{OK: &protocol.Done{Until: c.until}}, Sent: sent}
			if got := p.until(answer, c.ttl); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
