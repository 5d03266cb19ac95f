package runs

import (
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/clients"
	"lockcheck/clusters/clustertest"
)

// TestLibraryVersions: a lock that needs another build of the worker says so where there
// is none, and records the version that this build has. Compared with the same lock
// in the version of lockcheck itself.
func TestLibraryVersions(t *testing.T) {
	clustertest.StartsServers(t)
	binary := clustertest.WithLibraryVersions(t)
	for _, info := range clients.Table() {
		if info.LibraryVersion == "" {
			continue
		}
		t.Run(info.Name, func(t *testing.T) {
			missing := &test{Options: Options{Lock: info.Name, Machine: Machine{Binary: filepath.Join(t.TempDir(), "lockcheck")}}, info: info}
			if err := missing.checkLibraryVersion(); err == nil || !strings.Contains(err.Error(), "make library-versions") {
				t.Errorf("without the build: %v", err)
			}
			there := &test{Options: Options{Lock: info.Name, Machine: Machine{Binary: binary}}, info: info}
			if err := there.checkLibraryVersion(); err != nil {
				t.Errorf("with the build: %v", err)
			}
			version := there.moduleVersions()[info.Library]
			if version == "" || !strings.HasSuffix(info.Name, strings.TrimPrefix(version, "v")) {
				t.Errorf("it is %s %s", info.Library, version)
			}
			there.info.LibraryVersion = ""
			if err := there.checkLibraryVersion(); err != nil {
				t.Errorf("lockcheck itself: %v", err)
			}
			// A test binary has no versions of modules: nothing, or not this one.
			if there.moduleVersions()[info.Library] == version {
				t.Errorf("lockcheck itself has %s too", version)
			}
		})
	}
}
