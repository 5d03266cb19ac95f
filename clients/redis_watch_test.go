package clients

import (
	"fmt"
	"slices"
	"testing"
)

func TestReportRemovals(t *testing.T) {
	var got []string
	report := func(o Observation) { got = append(got, fmt.Sprintf("%s %s by %s", o.Command, o.Key, o.From)) }
	from := ""
	for _, line := range []string{
		"+OK",
		`+1700000000.000001 [0 192.0.2.1:4] "set" "k0" "a \"del\" b" "nx"`,
		`+1700000000.000002 [0 192.0.2.2:4] "del" "k0" "lock:k1"`,
		`+1700000000.000003 [0 192.0.2.3:4] "eval" "redis.call('del', KEYS[1])" "1" "k2"`,
		`+1700000000.000004 [0 lua] "DEL" "k2"`,
		`+1700000000.000005 [0 192.0.2.1:4] "get" "del"`,
		`+1700000000.000006 [0 unix:/run/redis.sock] "unlink" "k\"3"`,
		"+1700000000.000007 [0",
	} {
		from = reportRemovals(line, from, report)
	}
	want := []string{"DEL k0 by 192.0.2.2:4", "DEL lock:k1 by 192.0.2.2:4", "DEL k2 by 192.0.2.3:4", `UNLINK k\"3 by unix:/run/redis.sock`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
