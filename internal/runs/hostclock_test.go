package runs

import (
	"testing"
	"time"
)

func TestHostClock(t *testing.T) {
	const hour = int64(time.Hour)
	begin := hostClock{wall: 1000 * hour, monotonic: 5 * hour}
	for _, c := range []struct {
		name string
		end  hostClock
		ok   bool
	}{
		{"both went on", hostClock{1001 * hour, 6 * hour}, true},
		{"slewed", hostClock{1001*hour + int64(40*time.Millisecond), 6 * hour}, true},
		{"stepped forward", hostClock{1001*hour + int64(time.Second), 6 * hour}, false},
		{"stepped back", hostClock{1001*hour - int64(time.Second), 6 * hour}, false},
	} {
		if err := c.end.check(begin); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := readHostClock().check(readHostClock()); err != nil {
		t.Errorf("between two readings: %v", err)
	}
}
