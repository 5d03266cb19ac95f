package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
)

func TestMain(m *testing.M) { os.Exit(clustertest.Main(m)) }

// TestCheckBinary: an image that holds only the binary must be able to run it.
func TestCheckBinary(t *testing.T) {
	folder := t.TempDir()
	script := filepath.Join(folder, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(folder, "empty")
	if err := os.WriteFile(empty, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, path, want string }{
		{"our own", clustertest.Binary(t), ""},
		{"dynamic", dynamicBinary(t), "CGO_ENABLED=0"},
		{"a script", script, "not a Linux binary"},
		{"empty", empty, "not a Linux binary"},
		{"missing", filepath.Join(folder, "missing"), "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckBinary(c.path)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func dynamicBinary(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks("/bin/ls")
	if err != nil {
		t.Fatalf("no dynamic binary to refuse: %v", err)
	}
	return path
}

// TestRecipes: each recipe is based on the image of all servers, or is a Go program. Each names its clock
// driver if it has one.
func TestRecipes(t *testing.T) {
	want := map[string]string{ // from recipe to parent and clock driver
		"consul-1.20.1": "go", "etcd-3.4.3": "go", "etcd-3.5.15": "go", "etcd-3.5.16": "go", "etcd-3.6.16": "go",
		"kube-apiserver-1.37.2": "go", "nats-2.15.2": "go", "versitygw-1.8.0": "go", "versitygw-1.7.0": "go", "versitygw-1.0.14": "go", "galera": "servers libfaketime", "memcached": "servers",
		"redis": "servers libfaketime", "mariadb": "servers libfaketime",
		"redis-8": "servers", "valkey": "servers", "postgres": "servers", "zookeeper": "servers",
	}
	if names := Names(); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("recipes %v", names)
	}
	for name, want := range want {
		t.Run(name, func(t *testing.T) {
			r, isGo, err := goRecipeNamed(name)
			if NeedsGo(name) != isGo {
				t.Errorf("needs Go: %v", !isGo)
			}
			if err != nil || isGo {
				checkGoRecipe(t, r, err)
				return
			}
			if got := checkDockerfile(t, name); got != want {
				t.Errorf("on %s, want %s", got, want)
			}
		})
	}
}

// checkDockerfile returns the parent and the clock driver of a recipe.
func checkDockerfile(t *testing.T, name string) string {
	t.Helper()
	if !onServers(name) {
		t.Error("not said to stand on the image of all servers")
	}
	text, err := recipes.ReadFile(recipesFolder + "/" + name + dockerfileSuffix)
	if err != nil {
		t.Fatal(err)
	}
	dockerfile, parent := filledIn(t, name, string(text))
	if strings.Contains(dockerfile, "apt-get") {
		t.Error("it installs something, which is to be done once for all recipes")
	}
	if strings.Contains(dockerfile, " "+ClockLabel+"="+Libfaketime+"\n") {
		parent += " " + Libfaketime
	}
	return parent
}

// filledIn returns a Dockerfile with its parent filled in, and checks that it has exactly one.
func filledIn(t *testing.T, name, text string) (dockerfile, parent string) {
	t.Helper()
	dockerfile = strings.NewReplacer("{{.Servers}}", "sha256:servers", "{{.Trixie}}", "sha256:trixie").Replace(text)
	_, rest, found := strings.Cut(dockerfile, "\nFROM sha256:")
	if !found || strings.Contains(rest, "\nFROM ") {
		t.Errorf("not on one parent:\n%s", dockerfile)
	}
	// Both labels in one line, because each line makes a layer, which takes some engines seconds.
	if strings.Count(dockerfile, "\nLABEL ") != 1 || !strings.Contains(dockerfile, "\nLABEL "+RecipeLabel+"="+name) {
		t.Errorf("it does not have its labels:\n%s", dockerfile)
	}
	parent, _, _ = strings.Cut(rest, "\n")
	return dockerfile, parent
}

// TestServers: the parent image of the recipes is based on Debian trixie, has libfaketime, and is no recipe
// itself.
func TestServers(t *testing.T) {
	dockerfile, parent := filledIn(t, serversName, serversDockerfile)
	if parent != trixie.name || !strings.Contains(dockerfile, " libfaketime ") {
		t.Errorf("on %s:\n%s", parent, dockerfile)
	}
	if slices.Contains(Names(), serversName) || onServers(serversName) {
		t.Error("it can be named as a recipe")
	}
}

// TestParentsLast: no image is removed before the images that are based on it.
func TestParentsLast(t *testing.T) {
	image := func(recipe string) engine.Image {
		return engine.Image{Ref: recipe, Labels: map[string]string{RecipeLabel: recipe}}
	}
	list := []engine.Image{image("redis"), image(serversName), image("galera"), image(serversName), image("valkey")}
	var got []string
	for _, image := range parentsLast(list) {
		got = append(got, image.Ref)
	}
	if want := []string{"redis", "galera", "valkey", serversName, serversName}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// checkGoRecipe: a Go recipe needs no other files to build, and records the checksums of its modules.
func checkGoRecipe(t *testing.T, r goRecipe, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	mod, sum := string(r.files["go.mod"]), string(r.files["go.sum"])
	switch {
	case mod == "":
		t.Error("no go.mod")
	case regexp.MustCompile(`=> \S+\n`).MatchString(mod):
		t.Error("a module is replaced by a folder")
	case (r.target() == "tool") != strings.Contains(mod, "\ntool "):
		t.Error("neither a main.go nor a tool to build, or both")
	}
	for _, module := range regexp.MustCompile(`(?m)^(?:\trequire )?\s*(\S+\.\S+/\S+) (v\S+)( // indirect)?$`).FindAllStringSubmatch(mod, -1) {
		excluded := r.program() == "consul" && strings.HasPrefix(module[2], "v1.1.") && strings.HasSuffix(module[1], "go-msgpack")
		version := module[2]
		if replaced := regexp.MustCompile(regexp.QuoteMeta(module[1]) + ` => \S+ (v\S+)\n`).FindStringSubmatch(mod); replaced != nil {
			version = replaced[1]
		}
		if line := module[1] + " " + version + "/go.mod h1:"; !excluded && !strings.Contains(sum, line) {
			t.Errorf("no sum of %s %s", module[1], version)
		}
	}
	if version := strings.TrimPrefix(r.name, r.program()+"-"); !strings.Contains(mod, version) && version != "3.4.3" {
		t.Errorf("%s does not have its version in go.mod", r.name)
	}
}

// TestWithoutGo: the error says what to do.
func TestWithoutGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Maker{}.buildGo(t.Context(), goRecipe{name: "etcd-1"}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "install Go") || !strings.Contains(err.Error(), "--image etcd=") {
		t.Errorf("got %v", err)
	}
}

// TestTemporaryFolder: a folder that could not be registered is not left behind.
func TestTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var registered string
	refused := errors.New("refused")
	maker := Maker{RegisterFolder: func(path string) error { registered = path; return refused }}
	if folder, err := maker.temporaryFolder(); !errors.Is(err, refused) || folder != "" {
		t.Errorf("got %q, %v", folder, err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 || registered == "" {
		t.Errorf("registered %q, left %v, %v", registered, left, err)
	}
}

// TestOurs: images that others have built on lockcheck's carry its labels, too, and are not ours.
func TestOurs(t *testing.T) {
	for _, c := range []struct {
		image engine.Image
		want  bool
	}{
		{engine.Image{Ref: "lockcheck/redis:1234", ID: "sha256:12"}, true},
		{engine.Image{Ref: "sha256:12", ID: "sha256:12"}, true},
		{engine.Image{Ref: "somebody/redis:1234", ID: "sha256:12"}, false},
		{engine.Image{Ref: "lockcheckers:latest", ID: "sha256:12"}, false},
	} {
		if got := ours(c.image); got != c.want {
			t.Errorf("%+v: %v", c.image, got)
		}
	}
}

// TestGoRecipe builds a program that needs no module, and one that does not compile.
func TestGoRecipe(t *testing.T) {
	maker := Maker{Engine: clustertest.Engine(t), Progress: t.Logf}
	program := func(body string) goRecipe {
		return goRecipe{name: "hello-1", files: map[string][]byte{
			"go.mod": []byte("module hello\n\ngo 1.26.0\n"), "go.sum": nil,
			"main.go": []byte("package main\n\nfunc main() { " + body + " }\n"),
		}}
	}
	image, err := maker.ensureGo(t.Context(), program(`println("hello")`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = maker.Engine.RemoveImage(context.WithoutCancel(t.Context()), image.Ref) })
	if image.Labels[RecipeLabel] != "hello-1" {
		t.Errorf("labels %v", image.Labels)
	}
	run, err := maker.Engine.Start(t.Context(), engine.Spec{
		Name: "lockcheck-test-hello", Image: image.Ref, Network: "none", Attach: true,
		Labels: map[string]string{engine.RunLabel: "images-test-hello"},
	})
	t.Cleanup(func() { _, _ = maker.Engine.RemoveRun(context.WithoutCancel(t.Context()), "images-test-hello") })
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, run.Output) }()
	if said, err := io.ReadAll(run.Errors); err != nil || string(said) != "hello\n" {
		t.Errorf("it said %q, %v", said, err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	if _, err := maker.ensureGo(t.Context(), program("undefined()")); err == nil || !strings.Contains(err.Error(), "undefined: undefined") || !strings.Contains(err.Error(), "hello-1") {
		t.Errorf("what does not compile gives %v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestArchive(t *testing.T) {
	archive, err := Root(engine.File{Name: Self, Mode: 0o755, Content: []byte("binary")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%o %s %s", header.Mode, header.Name, content))
	}
	want := []string{"755 bin/ ", "1777 tmp/ ", "755 bin/lockcheck binary"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEnsure: an image is made once, on the base that its recipe names.
func TestEnsure(t *testing.T) {
	docker := clustertest.Engine(t)
	maker := Maker{Engine: docker, Progress: t.Logf}
	first, err := maker.Ensure(t.Context(), "redis")
	if err != nil {
		t.Fatal(err)
	}
	if first.Labels[RecipeLabel] != "redis" || first.Labels[ClockLabel] != Libfaketime {
		t.Errorf("labels %v", first.Labels)
	}
	maker.Progress = func(format string, args ...any) { t.Errorf("again: "+format, args...) }
	if second, err := maker.Ensure(t.Context(), "redis"); err != nil || second.ID != first.ID || second.Ref != first.Ref {
		t.Errorf("then %+v, %v: want %+v", second, err, first)
	}
	parent, err := maker.servers(t.Context())
	if err != nil || parent.Labels[RecipeLabel] != serversName {
		t.Fatalf("the parent %+v, %v", parent, err)
	}
	if got, err := maker.onParent(t.Context(), "FROM {{.Servers}}\n"); err != nil || got != "FROM "+parent.ID+"\n" {
		t.Errorf("on its parent: %q, %v", got, err)
	}
	for _, bad := range []string{"FROM {{.Potato}}\n", "FROM {{"} {
		if got, err := maker.onParent(t.Context(), bad); err == nil {
			t.Errorf("%q is filled in as %q", bad, got)
		}
	}
	if _, err := maker.Ensure(t.Context(), "no such recipe"); err == nil || !strings.Contains(err.Error(), "no such recipe; there are consul-") {
		t.Errorf("got %v", err)
	}
	all, err := maker.EnsureAll(t.Context(), []string{"redis", "redis"})
	if err != nil || len(all) != 2 || all[0].ID != first.ID || all[1].ID != first.ID {
		t.Errorf("several: %+v, %v", all, err)
	}
	if _, err := maker.EnsureAll(t.Context(), []string{"redis", "no such recipe"}); err == nil || !strings.Contains(err.Error(), "no such recipe") {
		t.Errorf("several, one of them unknown: %v", err)
	}
	missing, err := Missing(t.Context(), docker)
	if err != nil || slices.Contains(missing, "redis") {
		t.Errorf("missing %v, %v", missing, err)
	}
	if again, err := maker.Foreign(t.Context(), first.Ref); err != nil || again.ID != first.ID {
		t.Errorf("by its name: %+v, %v", again, err)
	}
}

func TestEnsureSelf(t *testing.T) {
	docker := clustertest.Engine(t)
	maker := Maker{Engine: docker, Progress: t.Logf}
	first, err := maker.EnsureSelf(t.Context(), clustertest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := maker.EnsureSelf(t.Context(), clustertest.Binary(t))
	if err != nil || second.ID != first.ID || first.Labels[RecipeLabel] != Self {
		t.Errorf("first %+v, then %+v, %v", first, second, err)
	}
	if _, err := maker.EnsureSelf(t.Context(), dynamicBinary(t)); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0") {
		t.Errorf("a dynamic binary: %v", err)
	}
	// A run that is about to start with the former binary still needs its image.
	other := filepath.Join(t.TempDir(), "lockcheck")
	content, err := os.ReadFile(clustertest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, append(content, "another build"...), 0o755); err != nil {
		t.Fatal(err)
	}
	newer, err := maker.EnsureSelf(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = docker.RemoveImage(context.WithoutCancel(t.Context()), newer.Ref) })
	if newer.ID == first.ID {
		t.Error("another binary, the same image")
	}
	if _, still, err := docker.Image(t.Context(), first.Ref); err != nil || !still {
		t.Errorf("the former image is there: %v, %v", still, err)
	}
}

// TestAlone: a caller can give up waiting for the lock, and gets it when it is free.
func TestAlone(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	told := 0
	maker := Maker{Progress: func(string, ...any) { told++ }}
	nothing := func() error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	if err := maker.alone(t.Context(), "x", func() error {
		if err := maker.alone(ctx, "y", nothing); err != nil || told != 0 {
			t.Errorf("another name: %v, told %d times", err, told)
		}
		maker.Progress = func(string, ...any) { told++; cancel() }
		if err := maker.alone(ctx, "x", nothing); !errors.Is(err, context.Canceled) || told != 1 {
			t.Errorf("the same name: %v, told %d times", err, told)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := maker.alone(t.Context(), "x", nothing); err != nil || told != 1 {
		t.Errorf("free again: %v, told %d times", err, told)
	}
}

// TestRemoveWaits: no image is removed while one is made, which may be based on it, and none is made while
// images are removed. Several may be made at once.
func TestRemoveWaits(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	maker := Maker{Progress: func(string, ...any) { cancel() }}
	if err := maker.alone(t.Context(), "x", func() error {
		_, err := maker.Remove(ctx)
		return err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("removed while one is made: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	nothing := func() error { return nil }
	if err := maker.locked(t.Context(), allImages, syscall.LOCK_EX, "", func() error { return maker.alone(ctx, "x", nothing) }); !errors.Is(err, context.Canceled) {
		t.Errorf("made while they are removed: %v", err)
	}
	if err := maker.alone(t.Context(), "x", func() error { return maker.alone(t.Context(), "y", nothing) }); err != nil {
		t.Errorf("two at once: %v", err)
	}
}

// TestOwnMounts: a killed command leaves no mount in its folder. The control without its own mount namespace
// does.
func TestOwnMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, own := range []bool{true, false} {
		folder := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		// The line comes after the mount.
		command := exec.CommandContext(ctx, "sh", "-c", `mount -t tmpfs none "$0" && echo mounted && sleep 600`, folder)
		if own {
			ownMounts(command)
		}
		mounted := false
		maker := Maker{Status: func(string, ...any) { mounted = true; cancel() }}
		if err := maker.runGroup(command); err == nil || !mounted {
			t.Errorf("own %v: mounted %v, %v: want it mounted, and killed", own, mounted, err)
		}
		cancel()
		if left := syscall.Unmount(folder, 0) == nil; left == own {
			t.Errorf("own %v: a mount is left: %v", own, left)
		}
	}
}
