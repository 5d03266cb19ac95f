package lockcheck_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers lists the packages from the bottom up. A package imports only from layers below
// its own; the folders within a layer are free among each other.
var layers = []string{
	"spelling", "buildinfo", "yamlfile", "folders", "processes", "history", "stats", "checker", "clients", "clusters", "composefile", "lockfile", "workloads", "application", "appfile", "remedies", "nemesis", "present", "reports", "catalog",
	"workerprogram", "cleanup", "runs", "suites", "swarm", "web", "cmd", "tools", "workers", "examples",
}

// workers is a layer of programs, each with nothing but a worker, and a library that lockcheck does
// not have.
const workers = "workers"

// examples is a layer of clients as users would write them.
const examples = "examples"

// pure lists what the checker must not have: it sees a history and nothing else.
var pure = []string{"os", "os/exec", "net", "io/fs", "path/filepath", "syscall", "math/rand", "math/rand/v2"}

// docker is what only dockerPackage may import.
const (
	module        = "lockcheck"
	docker        = "github.com/docker/"
	dockerPackage = module + "/clusters/engine"
)

// templates are what calls methods by name: if that can be reached, the linker keeps every exported method of every
// library. mayTemplate are the packages of others that import them for something else that lockcheck calls.
var (
	templates   = []string{"text/template", "html/template"}
	mayTemplate = []string{"html/template", "github.com/spf13/cobra", "maragu.dev/gomponents"}
)

// goPackage is what go list tells of a package; Imports without those of tests, Doc the
// first sentence of its comment.
type goPackage struct {
	ImportPath string
	Imports    []string
	Doc        string
}

// layerOf returns the place of a package of ours among the layers, -1 for others.
func layerOf(path string) int {
	inside, is := strings.CutPrefix(path, module+"/")
	if !is {
		return -1
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(inside, "internal/"), "/")
	return slices.Index(layers, name)
}

// misplaced says what is wrong with the imports of a package.
func misplaced(p goPackage) []string {
	layer := layerOf(p.ImportPath)
	if layer < 0 {
		return []string{p.ImportPath + " is in no layer"}
	}
	var wrong []string
	for _, imported := range p.Imports {
		ours := strings.HasPrefix(imported, module+"/")
		switch at := layerOf(imported); {
		case ours && at < 0, at > layer:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which is not below it", p.ImportPath, imported))
		// A user's own would see no more.
		case ours && layers[layer] == examples && layers[at] != "clients" && layers[at] != examples:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, and is to be a client and nothing else", p.ImportPath, imported))
		case ours && layers[layer] == workers && imported != module+"/internal/workerprogram":
			wrong = append(wrong, fmt.Sprintf("%s imports %s, and is to be a worker and nothing else", p.ImportPath, imported))
		// Its simulation makes histories by chance, for tests.
		case layers[layer] == "checker" && p.ImportPath != module+"/checker/simulation" && slices.Contains(pure, imported):
			wrong = append(wrong, fmt.Sprintf("%s imports %s, and is not pure", p.ImportPath, imported))
		case strings.HasPrefix(imported, docker) && p.ImportPath != dockerPackage:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which only %s may", p.ImportPath, imported, dockerPackage))
		case slices.Contains(templates, imported):
			wrong = append(wrong, fmt.Sprintf("%s imports %s, for which lockcheck is larger by a third", p.ImportPath, imported))
		}
	}
	return wrong
}

// packagesOf lists packages as seen from a folder.
func packagesOf(t *testing.T, folder string, which ...string) (packages []goPackage) {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,Doc"}, which...)...)
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

func TestArchitecture(t *testing.T) {
	met := make(map[int]bool)
	modules, err := filepath.Glob(workers + "/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(modules, "go.mod") {
		for _, p := range packagesOf(t, filepath.Dir(folder), "-tags=kubernetes", "./...") {
			if p.ImportPath == module {
				continue // it has nothing but this test
			}
			met[layerOf(p.ImportPath)] = true
			for _, wrong := range misplaced(p) {
				t.Error(wrong)
			}
			if p.Doc == "" {
				t.Errorf("%s does not say what it is about", p.ImportPath)
			}
		}
	}
	if len(met) != len(layers) {
		t.Errorf("packages of %d layers, want all %d", len(met), len(layers))
	}
}

// TestTemplates: what make build links has no package that executes templates.
func TestTemplates(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	tags := regexp.MustCompile(`(?m)^TAGS := (\S+)$`).FindSubmatch(makefile)
	if tags == nil || !strings.Contains(string(makefile), "\nBUILD := go build -buildvcs=auto -tags $(TAGS) ") {
		t.Fatal("the Makefile does not say by which tags lockcheck is built")
	}
	found := 0
	for _, p := range packagesOf(t, ".", "-tags="+string(tags[1]), "-deps", "./cmd/lockcheck") {
		if !slices.ContainsFunc(p.Imports, func(imported string) bool { return slices.Contains(templates, imported) }) {
			continue
		}
		if found++; !slices.Contains(mayTemplate, p.ImportPath) {
			t.Errorf("%s imports templates", p.ImportPath)
		}
	}
	if found == 0 {
		t.Error("nothing imports templates, so nothing was looked at")
	}
}

// TestArchitectureControl: imports that must not be are found, and not the
// like of them that may.
func TestArchitectureControl(t *testing.T) {
	for _, c := range []struct {
		from, imported string
		good           bool
	}{
		{"lockcheck/reports", "lockcheck/checker", true},
		{"lockcheck/checker", "lockcheck/reports", false},
		{"lockcheck/history", "lockcheck/checker", false},
		{"lockcheck/checker", "lockcheck/internal/stats", true},
		{"lockcheck/history", "lockcheck/internal/stats", false},
		{"lockcheck/nemesis", "lockcheck/internal/yamlfile", true},
		{"lockcheck/internal/yamlfile", "lockcheck/nemesis", false},
		{"lockcheck/internal/suites/matrix", "lockcheck/internal/runs", true},
		{"lockcheck/internal/runs", "lockcheck/internal/suites", false},
		{"lockcheck/internal/runs", "lockcheck/internal/cleanup", true},
		{"lockcheck/internal/cleanup", "lockcheck/internal/runs", false},
		{"lockcheck/tools/mutants", "lockcheck/internal/runs", true},
		{"lockcheck/cmd/lockcheck", "lockcheck/tools/mutants", false},
		{"lockcheck/cmd/lockcheck", "lockcheck/internal/runs", true},
		{"lockcheck/internal/runs", "lockcheck/cmd/lockcheck", false},
		{"lockcheck/clusters/agent", "lockcheck/clusters", true}, // one layer; Go forbids circles
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
		{"lockcheck/reports", "html/template", false},
		{"lockcheck/clusters/images", "text/template", false},
		{"lockcheck/internal/runs", "lockcheck/cellar", false},
		{"lockcheck/cellar", "fmt", false},
		{"lockcheck/workers/x", "lockcheck/internal/workerprogram", true},
		{"lockcheck/workers/x", "lockcheck/clusters", false},
		{"lockcheck/cmd/lockcheck", "lockcheck/workers/x", false},
		{"lockcheck/examples/x", "lockcheck/clients/serve", true},
		{"lockcheck/examples/x", "lockcheck/examples/x/y", true},
		{"lockcheck/examples/x", "lockcheck/history", false},
	} {
		wrong := misplaced(goPackage{ImportPath: c.from, Imports: []string{c.imported}})
		if (len(wrong) == 0) != c.good {
			t.Errorf("%s imports %s: %q", c.from, c.imported, wrong)
		}
	}
}
