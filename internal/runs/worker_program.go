package runs

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"

	"lockcheck/clients"
)

// workerBinary is the program of the workers, and of a resource that asks their service, if the lock's
// library is not in lockcheck itself. It lies next to lockcheck and contains the library. It is "" if
// lockcheck has the library.
func (t *test) workerBinary() string {
	if t.info.Program == "" {
		return ""
	}
	return t.Binary + "-" + t.info.Program
}

// linked returns a *UsageError if this build of lockcheck has no locks on servers.
func (t *test) linked() error {
	if clients.EmbeddedOnly && t.spec.OnDocker() {
		return &UsageError{Err: fmt.Errorf("lock %s: %w", t.Lock, clients.ErrEmbeddedOnly)}
	}
	return nil
}

// ensureWorkerProgram builds the program of the workers if it is missing or older than lockcheck, where
// lockcheck lies in its source code, as after make build. A release includes the program.
func (t *test) ensureWorkerProgram(ctx context.Context, progress Progress) error {
	path := t.workerBinary()
	if path == "" {
		return nil
	}
	source := filepath.Join(filepath.Dir(t.Binary), "workers", t.info.Program)
	if _, err := os.Stat(source); err != nil {
		_, err := os.Stat(path)
		if err != nil {
			err = fmt.Errorf("lock %s needs the program %s next to lockcheck: take it from the same release, or run lockcheck from its source code, which has it built: %w",
				t.Lock, filepath.Base(path), err)
		}
		return err
	}
	if newer(path, t.Binary) {
		return nil
	}
	progress.Step("building %s, the program of the workers (once, up to three minutes)", filepath.Base(path))
	built := fmt.Sprintf("%s.%d", path, os.Getpid()) // a unique name: another run may start the old program, or build too
	defer os.Remove(built)
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", t.info.Program, "-ldflags=-s -w", "-o", built, ".")
	command.Dir, command.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("lock %s: go build in %s: %w\n%s", t.Lock, source, err, output)
	}
	return os.Rename(built, path)
}

// newer says whether a file exists and is no older than another file.
func newer(path, than string) bool {
	file, err := os.Stat(path)
	other, otherErr := os.Stat(than)
	return err == nil && otherErr == nil && !file.ModTime().Before(other.ModTime())
}

// moduleVersions returns the versions of the lock's modules, as linked into the program of the workers.
func (t *test) moduleVersions() map[string]string {
	versions := make(map[string]string)
	info, err := t.workerBuild()
	if err != nil {
		return versions // a binary without build information
	}
	paths := append(slices.Clone(t.info.Modules), t.info.Library)
	for _, module := range info.Deps {
		if !slices.Contains(paths, module.Path) {
			continue
		}
		versions[module.Path] = module.Version
		if module.Replace != nil {
			versions[module.Path] = module.Replace.Version
		}
	}
	return versions
}

func (t *test) workerBuild() (*debug.BuildInfo, error) {
	if path := t.workerBinary(); path != "" {
		return buildinfo.ReadFile(path)
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return nil, fmt.Errorf("lockcheck has no build information")
	}
	return info, nil
}
