// Package buildinfo says what the running binary was made from, as far as Go recorded that.
package buildinfo

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// Build says what a binary was made from.
type Build struct {
	version  string // of the module; "" if Go recorded none
	commit   string // "" if unknown
	time     string // of the commit, RFC 3339; "" with an unknown commit
	modified bool   // the checkout had uncommitted changes
	platform string // the version of Go, the operating system and the architecture
}

// pseudoVersion is the version of an untagged module. It ends with the time and the abbreviated hash of
// the commit.
var pseudoVersion = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(\+.*)?$`)

// buildOf reads what Go recorded: the commit of a checkout, or the version of a downloaded module.
func buildOf(info *debug.BuildInfo) Build {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b := Build{
		version: info.Main.Version, commit: settings["vcs.revision"], time: settings["vcs.time"], modified: settings["vcs.modified"] == "true",
		platform: strings.TrimSpace(fmt.Sprintf("%s %s/%s", info.GoVersion, settings["GOOS"], settings["GOARCH"])),
	}
	if b.version == "(devel)" {
		b.version = ""
	}
	if match := pseudoVersion.FindStringSubmatch(b.version); match != nil && b.commit == "" {
		if at, err := time.Parse("20060102150405", match[1]); err == nil {
			b.commit, b.time = match[2], at.Format(time.RFC3339)
		}
	}
	return b
}

// String is what --version prints after the name of the program.
func (b Build) String() string {
	commit := "unknown: Go records none for a git worktree, for an archive, or with -buildvcs=false"
	switch {
	case b.commit != "":
		commit = b.commit
		if b.time != "" {
			commit += " of " + b.time
		}
		if b.modified {
			commit += ", modified"
		}
	case b.version != "":
		commit = "of this version"
	}
	return fmt.Sprintf("%s\ncommit  %s\nbuilt   with %s", cmp.Or(b.version, "unversioned"), commit, b.platform)
}

// Short is what a run records.
func (b Build) Short() string {
	short := b.commit[:min(12, len(b.commit))]
	if b.modified {
		short += "-modified"
	}
	return cmp.Or(short, b.version, "unknown")
}

// This describes the running binary.
func This() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	return buildOf(info)
}
