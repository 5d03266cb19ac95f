package buildinfo

import (
	"runtime/debug"
	"strings"
	"testing"
)

// TestOf has the ways to build lockcheck, with what Go records for each.
func TestOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	checkout := []string{"-trimpath=true", "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "vcs=git", "vcs.revision=" + commit, "vcs.time=2026-11-22T16:22:36Z"}
	for _, c := range []struct {
		name, version string
		settings      []string
		want, short   string
	}{
		{
			"go build in a clean checkout", "v0.0.0-20261122162236-0123456789ab", append(checkout, "vcs.modified=false"),
			"v0.0.0-20261122162236-0123456789ab\ncommit  " + commit + " of 2026-11-22T16:22:36Z\nbuilt   with go1.26.0 linux/amd64", "0123456789ab",
		},
		{
			"with changes", "v0.0.0-20261122162236-0123456789ab+dirty", append(checkout, "vcs.modified=true"),
			"v0.0.0-20261122162236-0123456789ab+dirty\ncommit  " + commit + " of 2026-11-22T16:22:36Z, modified\nbuilt   with go1.26.0 linux/amd64",
			"0123456789ab-modified",
		},
		{
			"of a tag", "v1.2.3", append(checkout, "vcs.modified=false"),
			"v1.2.3\ncommit  " + commit + " of 2026-11-22T16:22:36Z\nbuilt   with go1.26.0 linux/amd64", "0123456789ab",
		},
		{
			"by a Go that gives checkouts no version", "(devel)", append(checkout, "vcs.modified=false"),
			"unversioned\ncommit  " + commit + " of 2026-11-22T16:22:36Z\nbuilt   with go1.26.0 linux/amd64", "0123456789ab",
		},
		{
			"go install MODULE@v1.2.3", "v1.2.3", checkout[:4],
			"v1.2.3\ncommit  of this version\nbuilt   with go1.26.0 linux/amd64", "v1.2.3",
		},
		{
			"go install MODULE@latest without a tag", "v0.0.0-20261122162236-0123456789ab", checkout[:4],
			"v0.0.0-20261122162236-0123456789ab\ncommit  0123456789ab of 2026-11-22T16:22:36Z\nbuilt   with go1.26.0 linux/amd64", "0123456789ab",
		},
		{
			"the same behind a tag", "v1.2.4-0.20261122162236-0123456789ab", checkout[:4],
			"v1.2.4-0.20261122162236-0123456789ab\ncommit  0123456789ab of 2026-11-22T16:22:36Z\nbuilt   with go1.26.0 linux/amd64", "0123456789ab",
		},
		{
			"-buildvcs=false, or no git, or an unpacked archive", "(devel)", checkout[:4],
			"unversioned\ncommit  unknown: Go records none for a git worktree, for an archive, or with -buildvcs=false\nbuilt   with go1.26.0 linux/amd64", "unknown",
		},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Path: "lockcheck", Version: c.version}}
		for _, text := range c.settings {
			key, value, _ := strings.Cut(text, "=")
			info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
		}
		if got := buildOf(info); got.String() != c.want || got.Short() != c.short {
			t.Errorf("%s: %q\n%s\nwant %q\n%s", c.name, got.Short(), got, c.short, c.want)
		}
	}
}
