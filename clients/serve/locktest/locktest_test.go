package locktest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/internal/lockfile"
)

// TestWrite: the files that Run writes describe a lock, and the test binary is in the image's folder if its
// servers need that.
func TestWrite(t *testing.T) {
	for about, inImage := range map[string]bool{"servers: memory\nlease: 1s": false, "lease: 2s\nservers: redis\nrenew: true\n": true} {
		path, err := write(t.TempDir(), about)
		if err != nil {
			t.Fatal(err)
		}
		lock, err := lockfile.Find(path)
		if err != nil {
			t.Fatalf("%s: %v", about, err)
		}
		if _, err := os.Stat(filepath.Join(lock.Image.Build, "client")); inImage == (err != nil) {
			t.Errorf("%s: the test binary in the folder of the image: %v", about, err)
		}
		if got := len(lock.Definition.Program.Env); got != 1 {
			t.Errorf("%s: %d variables, want the one that makes the binary a client", about, got)
		}
	}
}

// recorder records the failure of a test without failing the test that inspects it.
type recorder struct {
	testing.TB
	failed   bool
	said     string
	cleanups []func()
}

func (r *recorder) Helper()              {}
func (r *recorder) Failed() bool         { return r.failed }
func (r *recorder) Cleanup(f func())     { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(arguments ...any) { r.said += fmt.Sprint(arguments...) }
func (r *recorder) Errorf(format string, arguments ...any) {
	r.failed = true
	r.said += fmt.Sprintf(format, arguments...)
}

// TestRun: a run that passes logs its verdict and leaves nothing behind. For a run that fails, the page is kept
// and the whole output is logged.
func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		output, exit, said string
		kept               bool
	}{
		"passes": {"VALID  no property was violated in 9 holds", "0", "VALID  no property was violated in 9 holds", false},
		"fails":  {"VIOLATION  two at once", "1", "lockcheck: exit status 1\nVIOLATION  two at once\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			program := filepath.Join(t.TempDir(), "lockcheck")
			script := "#!/bin/sh\n# test --lock FILE --store FOLDER\n: > \"$5/report.html\"\necho '" + c.output + "'\nexit " + c.exit + "\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv(Program, program)
			r := &recorder{TB: t}
			run(r, "servers: none")
			for _, f := range r.cleanups {
				f()
			}
			if r.failed != c.kept || r.said != c.said {
				t.Errorf("failed: %v, said %q, want %q", r.failed, r.said, c.said)
			}
			pages, err := filepath.Glob(filepath.Join(temporary, "locktest-*", "report.html"))
			if err != nil || (len(pages) == 1) != c.kept {
				t.Errorf("pages %q, %v; kept: want %v", pages, err, c.kept)
			}
			if folders, _ := filepath.Glob(filepath.Join(temporary, "locktest-*")); len(folders) != len(pages) {
				t.Errorf("folders %q without a page", folders)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	for output, want := range map[string]string{
		"":                   "",
		"judged: liveness\n": "",
		"VALID  fine\n":      "VALID  fine",
		"   0.0 s  starting\nVALID  no property was\n       violated\n\njudged: liveness\n": "VALID  no property was\n       violated",
		"VALID  one\n\nx\nVALID  two\n": "VALID  one\nVALID  two",
	} {
		if got := verdicts(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
	if strings.Contains(verdicts("  liveness  VIOLATION  stuck\n"), "stuck") {
		t.Error("the verdict of a property is taken for that of the run")
	}
}
