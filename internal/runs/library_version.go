package runs

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
)

// workerBinary is the binary of the workers if it is not that of lockcheck: a build
// next to it, with another version of the library of the lock; "" otherwise.
func (t *test) workerBinary() string {
	if t.info.LibraryVersion == "" {
		return ""
	}
	return t.Binary + "-" + t.info.LibraryVersion
}

// checkLibraryVersion tells, before anything is started, that there is no such build.
func (t *test) checkLibraryVersion() error {
	if t.workerBinary() == "" {
		return nil
	}
	if _, err := os.Stat(t.workerBinary()); err != nil {
		return fmt.Errorf("lock %s needs another build of the worker (make library-versions): %w", t.Lock, err)
	}
	return nil
}

// moduleVersions returns the versions of the modules of the lock, as they are
// linked into what the workers run.
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
