package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/clusters/engine"
	"lockcheck/internal/folders"
)

// embeddedSuffix hides the files of a Go recipe from the go tool, which would take them for a package of this
// module or for another module.
const embeddedSuffix = ".txt"

// linkerFlags is the file of a recipe with additional linker flags.
const linkerFlags = "ldflags"

// goRecipe is a program of a Go module. It consists of go.mod, go.sum and, if the module has no main package to
// name as a tool, main.go.
type goRecipe struct {
	name  string
	files map[string][]byte // by name, as the go tool expects it
}

// goRecipeNamed returns the Go recipe of a name; false if there is none.
func goRecipeNamed(name string) (goRecipe, bool, error) {
	folder := recipesFolder + "/" + name
	entries, err := recipes.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return goRecipe{}, false, nil
	}
	if err != nil {
		return goRecipe{}, false, err
	}
	r := goRecipe{name: name, files: make(map[string][]byte)}
	for _, entry := range entries {
		content, err := recipes.ReadFile(folder + "/" + entry.Name())
		if err != nil {
			return goRecipe{}, false, err
		}
		r.files[strings.TrimSuffix(entry.Name(), embeddedSuffix)] = content
	}
	return r, true, nil
}

// program is the name of the program: etcd for etcd-3.6.16.
func (r goRecipe) program() string {
	return r.name[:max(0, strings.LastIndexByte(r.name, '-'))]
}

// content is everything that an image of the recipe depends on.
func (r goRecipe) content() []byte {
	var all []byte
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		all = append(append(all, name...), r.files[name]...)
	}
	return all
}

// target is the argument of go build: the package, or "tool".
func (r goRecipe) target() string {
	if _, own := r.files["main.go"]; own {
		return "."
	}
	return "tool"
}

// ensureGo returns the image of a Go recipe and builds it if it is missing.
func (m Maker) ensureGo(ctx context.Context, r goRecipe) (engine.Image, error) {
	return m.once(ctx, r.name, r.content(), func(ref string) (err error) {
		m.Progress("building the image %s from Go modules (once)", ref)
		folder, err := m.temporaryFolder()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		binary, err := m.buildGo(ctx, r, folder)
		if err != nil {
			return err
		}
		return m.importBinary(ctx, ref, r, binary)
	})
}

// buildGo builds the program in the folder and returns its path. The user's go command downloads the modules,
// which must match the recorded checksums.
func (m Maker) buildGo(ctx context.Context, r goRecipe, folder string) (string, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("needs the go command to build %s; install Go, or name an image that is ready: --image %s=…", r.name, r.program())
	}
	for name, content := range r.files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return "", err
		}
	}
	binary := filepath.Join(folder, r.program()+".out")
	command := exec.CommandContext(ctx, tool, "build", "-v", "-mod=readonly", "-trimpath", "-ldflags=-s -w "+strings.TrimSpace(string(r.files[linkerFlags])), "-o", binary, r.target())
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=linux")
	return binary, m.runGroup(command)
}

// importBinary makes an image that holds only the program.
func (m Maker) importBinary(ctx context.Context, ref string, r goRecipe, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := checkStatic(bytes.NewReader(content)); err != nil {
		return err
	}
	archive, err := Root(engine.File{Name: r.program(), Mode: 0o755, Content: content})
	if err != nil {
		return err
	}
	return m.Engine.Import(ctx, ref, archive,
		fmt.Sprintf("ENTRYPOINT [%q]", Program(r.program())), "ENV PATH=/bin", "LABEL "+RecipeLabel+"="+r.name)
}

// temporaryFolder makes a folder that is removed even if this process is killed.
func (m Maker) temporaryFolder() (string, error) {
	folder, err := folders.Temporary()
	if err != nil || m.RegisterFolder == nil {
		return folder, err
	}
	if err := m.RegisterFolder(folder); err != nil {
		return "", errors.Join(err, os.Remove(folder))
	}
	return folder, nil
}

// Program is the path of a program in an image that is built from Go modules.
func Program(name string) string { return "/bin/" + name }
