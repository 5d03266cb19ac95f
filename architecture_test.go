package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms of the house, from the ground up. A room imports only from those below it;
// the folders within a room are free among each other.
var rooms = []string{"spelling", "yamlfile", "history", "stats", "checker", "clients", "clusters", "workloads", "nemesis", "reports", "cleanup", "runs", "suites", "web", "cmd", "tools", "library-versions"}

// libraryVersions is a room of modules of their own, each with nothing but a worker.
const libraryVersions = "library-versions"

// pure lists what the checker must not have: it sees a history and nothing else.
var pure = []string{"os", "os/exec", "net", "io/fs", "path/filepath", "syscall", "math/rand", "math/rand/v2"}

// docker is what only dockerRoom may import.
const (
	module     = "lockcheck"
	docker     = "github.com/docker/"
	dockerRoom = module + "/clusters/engine"
)

// goPackage is what go list tells of a package; Imports without those of tests.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// roomOf returns the floor of a package of ours, -1 for others.
func roomOf(path string) int {
	inside, is := strings.CutPrefix(path, module+"/")
	if !is {
		return -1
	}
	room, _, _ := strings.Cut(strings.TrimPrefix(inside, "internal/"), "/")
	return slices.Index(rooms, room)
}

// misplaced says what is wrong with the imports of a package.
func misplaced(p goPackage) []string {
	floor := roomOf(p.ImportPath)
	if floor < 0 {
		return []string{p.ImportPath + " is in no room of the house"}
	}
	var wrong []string
	for _, imported := range p.Imports {
		ours := strings.HasPrefix(imported, module+"/")
		switch at := roomOf(imported); {
		case ours && at < 0, at > floor:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not below it", p.ImportPath, imported))
		case ours && rooms[floor] == libraryVersions && rooms[roomOf(imported)] != "workloads":
			wrong = append(wrong, fmt.Sprintf("%s imports %s, and is to be a worker and nothing else", p.ImportPath, imported))
		case rooms[floor] == "checker" && slices.Contains(pure, imported):
			wrong = append(wrong, fmt.Sprintf("%s imports %s, and is not pure", p.ImportPath, imported))
		case strings.HasPrefix(imported, docker) && p.ImportPath != dockerRoom:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which only %s may", p.ImportPath, imported, dockerRoom))
		}
	}
	return wrong
}

// packagesOf lists the packages of the module in a folder.
func packagesOf(t *testing.T, folder string) (packages []goPackage) {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	command.Dir = folder
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestRooms(t *testing.T) {
	met := make(map[int]bool)
	modules, err := filepath.Glob(libraryVersions + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(modules, ".") {
		for _, p := range packagesOf(t, folder) {
			if p.ImportPath == module {
				continue // the tests at the root are no package
			}
			met[roomOf(p.ImportPath)] = true
			for _, wrong := range misplaced(p) {
				t.Error(wrong)
			}
		}
	}
	if len(met) != len(rooms) {
		t.Errorf("packages of %d rooms, want all %d", len(met), len(rooms))
	}
}

// TestRoomsControl: imports that must not be are found, and beside each one the
// like of it that may.
func TestRoomsControl(t *testing.T) {
	for _, c := range []struct {
		from, imported string
		good           bool
	}{
		{"lockcheck/reports", "lockcheck/checker", true},
		{"lockcheck/checker", "lockcheck/reports", false},
		{"lockcheck/history", "lockcheck/checker", false},
		{"lockcheck/cmd/lockcheck", "lockcheck/internal/runs", true},
		{"lockcheck/internal/runs", "lockcheck/cmd/lockcheck", false},
		{"lockcheck/clusters/agent", "lockcheck/clusters", true}, // one room; Go forbids circles
		{"lockcheck/clusters/agent", "lockcheck/clients", true},
		{"lockcheck/clusters/agent", "lockcheck/workloads", false},
		{"lockcheck/checker", "time", true},
		{"lockcheck/checker", "os", false},
		{"lockcheck/checker", "net", false},
		{"lockcheck/checker", "os/exec", false},
		{"lockcheck/reports", "os", true},
		{"lockcheck/clusters/engine", "github.com/docker/docker/client", true},
		{"lockcheck/clusters", "github.com/docker/docker/client", false},
		{"lockcheck/checker", "github.com/docker/docker/client", false},
		{"lockcheck/internal/runs", "lockcheck/cellar", false},
		{"lockcheck/cellar", "fmt", false},
		{"lockcheck/library-versions/x", "lockcheck/workloads", true},
		{"lockcheck/library-versions/x", "lockcheck/clusters", false},
		{"lockcheck/cmd/lockcheck", "lockcheck/library-versions/x", false},
	} {
		wrong := misplaced(goPackage{ImportPath: c.from, Imports: []string{c.imported}})
		if (len(wrong) == 0) != c.good {
			t.Errorf("%s imports %s: %q", c.from, c.imported, wrong)
		}
	}
}
