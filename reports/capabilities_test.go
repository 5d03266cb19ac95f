package reports

import "testing"

// TestVersionsOfLocks: the same lock on servers of another origin says so.
func TestVersionsOfLocks(t *testing.T) {
	m := Matrix{Cells: []Cell{
		{Lock: "redis"}, // not run yet
		{Lock: "redis", Versions: map[string]string{"redis": "7.0.15"}, Source: "built from Debian packages"},
		{Lock: "redis@official", Versions: map[string]string{"redis": "7.4.2"}, Source: "official image x/redis:7.4.2 (sha256:0b33)"},
		{Lock: "memory", Versions: map[string]string{"lockcheck": "v1.0.0"}},
	}}
	for lock, want := range map[string]string{
		"redis":          "redis 7.0.15; servers built from Debian packages",
		"redis@official": "redis 7.4.2; servers official image x/redis:7.4.2 (sha256:0b33)",
		"memory":         "lockcheck 1.0.0",
		"etcd":           "",
	} {
		if got := m.versions(lock); got != want {
			t.Errorf("%s: %q, want %q", lock, got, want)
		}
	}
}
