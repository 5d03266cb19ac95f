// Package images makes the images that clusters run on. Debian's servers are installed once, in an image that
// their recipes are based on. Servers in Go are compiled. lockcheck's own image is made from its binary. An
// image is named after its content, so it is made once and never goes stale.
package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"lockcheck/clusters/engine"
)

//go:embed recipes
var recipes embed.FS

// A recipe is a Dockerfile, or a folder of a Go program.
const (
	recipesFolder    = "recipes"
	dockerfileSuffix = ".Dockerfile"
)

// Labels of lockcheck's images.
const (
	// RecipeLabel names the recipe of an image.
	RecipeLabel = "lockcheck.recipe"
	// ClockLabel names the clock driver that an image is prepared for.
	ClockLabel = "lockcheck.clock"
	// Libfaketime is the value of ClockLabel for images that preload libfaketime.
	Libfaketime = "libfaketime"
)

// Self names the recipe of lockcheck's own image.
const Self = "lockcheck"

// SelfPath is the path of the binary in lockcheck's image.
const SelfPath = "/bin/" + Self

// Maker makes images on first use.
type Maker struct {
	Engine *engine.Engine
	// Progress reports long steps, and Status what is happening at the moment. Status may be nil.
	Progress func(format string, args ...any)
	Status   func(format string, args ...any)
	// Launch starts the process that makes a base image or builds a Go program, as the leader of its group.
	// RegisterFolder records the folder of such a process. Both may outlive this process if it is killed.
	// Either may be nil.
	Launch         func(*exec.Cmd) error
	RegisterFolder func(path string) error
	// Ensured is called for each image that EnsureAll has ensured, by several goroutines; nil for nothing.
	Ensured func()
}

// Names lists the recipes in alphabetical order.
func Names() []string {
	entries, err := recipes.ReadDir(recipesFolder)
	if err != nil {
		// The folder is part of the binary.
		panic(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), dockerfileSuffix))
	}
	slices.Sort(names)
	return names
}

// Ensure returns the image of a recipe and makes it if it is missing.
func (m Maker) Ensure(ctx context.Context, recipe string) (engine.Image, error) {
	if IsOfficial(recipe) {
		image, err := m.ensureOfficial(ctx, recipe)
		if err != nil {
			err = fmt.Errorf("image %s: %w", recipe, err)
		}
		return image, err
	}
	program, isGo, err := goRecipeNamed(recipe)
	if err != nil {
		return engine.Image{}, fmt.Errorf("image %s: %w", recipe, err)
	}
	if isGo {
		return m.ensureGo(ctx, program)
	}
	text, err := recipes.ReadFile(recipesFolder + "/" + recipe + dockerfileSuffix)
	if err != nil {
		return engine.Image{}, fmt.Errorf("image %s: no such recipe; there are %s", recipe, strings.Join(Names(), ", "))
	}
	return m.ensureDockerfile(ctx, recipe, string(text), "")
}

// ensureDockerfile returns the image of one of lockcheck's Dockerfiles and makes it, and its parent, if
// missing. The origin is added to the progress message.
func (m Maker) ensureDockerfile(ctx context.Context, name, text, origin string) (engine.Image, error) {
	dockerfile, err := m.onParent(ctx, text)
	if err != nil {
		return engine.Image{}, fmt.Errorf("image %s: %w", name, err)
	}
	return m.once(ctx, name, []byte(dockerfile), func(ref string) error {
		m.Progress("building the image %s%s (once)", ref, origin)
		return m.Engine.Build(ctx, ref, dockerfile, m.status)
	})
}

// onParent fills in the ID of the parent image, which is made if missing. With another parent the Dockerfile
// gives another image.
func (m Maker) onParent(ctx context.Context, text string) (string, error) {
	for placeholder, ensure := range map[string]func(context.Context) (engine.Image, error){
		"{{.Trixie}}":  func(ctx context.Context) (engine.Image, error) { return m.base(ctx, trixie) },
		"{{.Servers}}": m.servers,
	} {
		if strings.Contains(text, placeholder) {
			parent, err := ensure(ctx)
			return strings.Replace(text, placeholder, parent.ID, 1), err
		}
	}
	return "", errors.New("its Dockerfile does not start from one of lockcheck's own images")
}

// EnsureSelf returns the image of a lockcheck binary. The binary must be static, because the image holds
// nothing else.
func (m Maker) EnsureSelf(ctx context.Context, binary string) (engine.Image, error) {
	file, err := os.Open(binary)
	if err != nil {
		return engine.Image{}, err
	}
	defer file.Close()
	if err := checkStatic(file); err != nil {
		return engine.Image{}, fmt.Errorf("%s: %w", binary, err)
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return engine.Image{}, err
	}
	return m.named(ctx, Self, digest.Sum(nil), func(ref string) error {
		content, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		if now := sha256.Sum256(content); !bytes.Equal(now[:], digest.Sum(nil)) {
			return fmt.Errorf("%s: another one has been built over it", binary)
		}
		m.removeOldSelves(ctx)
		archive, err := Root(engine.File{Name: Self, Mode: 0o755, Content: content})
		if err != nil {
			return err
		}
		return m.Engine.Import(ctx, ref, archive,
			fmt.Sprintf("ENTRYPOINT [%q]", SelfPath), "LABEL "+RecipeLabel+"="+Self)
	})
}

// once makes an image unless one with the same content exists.
func (m Maker) once(ctx context.Context, name string, content []byte, make func(ref string) error) (engine.Image, error) {
	digest := sha256.Sum256(content)
	return m.named(ctx, name, digest[:], make)
}

// named makes an image unless one with the same digest of its content exists.
func (m Maker) named(ctx context.Context, name string, digest []byte, make func(ref string) error) (engine.Image, error) {
	ref := fmt.Sprintf("%s%s:%.6x", namespace, name, digest)
	found, err := m.made(ctx, name,
		func() (engine.Image, bool, error) { return m.Engine.Image(ctx, ref) },
		func() error {
			defer m.status("")
			return make(ref)
		},
	)
	if err != nil {
		return engine.Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	return found, nil
}

// selfKept is how long the image of a former binary is kept.
const selfKept = time.Hour

// removeOldSelves removes the images of former binaries, of which each build of lockcheck leaves one. Images in
// use stay, and so do young ones, with which another run may be about to start. An image that cannot be removed
// only wastes space.
func (m Maker) removeOldSelves(ctx context.Context) {
	old, err := m.Engine.ImagesWith(ctx, RecipeLabel+"="+Self)
	if err != nil {
		return
	}
	for _, image := range old {
		if time.Since(image.Created) > selfKept {
			_, _ = m.Engine.RemoveImage(ctx, image.Ref)
		}
	}
}

// Remove removes all images made from recipes, and then the images that they are based on. The engine would
// only take the name from an image that others are based on.
func (m Maker) Remove(ctx context.Context) (removed int, err error) {
	err = m.locked(ctx, allImages, syscall.LOCK_EX, "runs that are making images", func() error {
		removed, err = m.remove(ctx)
		return err
	})
	return removed, err
}

func (m Maker) remove(ctx context.Context) (int, error) {
	removed := 0
	for _, label := range []string{RecipeLabel, baseLabel} {
		list, err := m.Engine.ImagesWith(ctx, label)
		if err != nil {
			return removed, err
		}
		for _, image := range parentsLast(list) {
			if !ours(image) {
				continue
			}
			gone, err := m.Engine.RemoveImage(ctx, image.Ref)
			if err != nil {
				return removed, err
			}
			if gone {
				removed++
			}
		}
	}
	official, err := m.removeOfficial(ctx)
	return removed + official, err
}

// parentsLast moves the images that others are based on to the end.
func parentsLast(list []engine.Image) []engine.Image {
	parents := func(image engine.Image) bool { return image.Labels[RecipeLabel] == serversName }
	return slices.Concat(slices.DeleteFunc(slices.Clone(list), parents),
		slices.DeleteFunc(list, func(image engine.Image) bool { return !parents(image) }))
}

// namespace is the prefix of the names of lockcheck's images.
const namespace = "lockcheck/"

// ours distinguishes lockcheck's images from images that others have built on them, which have the same labels.
// An image without a name is used by nothing.
func ours(image engine.Image) bool {
	return image.Ref == image.ID || strings.HasPrefix(image.Ref, namespace)
}

var errDynamic = errors.New("not a static binary; build it with CGO_ENABLED=0")

// checkStatic returns an error if a binary needs an interpreter.
func checkStatic(binary io.ReaderAt) error {
	file, err := elf.NewFile(binary)
	if err != nil {
		return fmt.Errorf("not a Linux binary: %w", err)
	}
	for _, program := range file.Progs {
		if program.Type == elf.PT_INTERP {
			return errDynamic
		}
	}
	return nil
}

// Root is the root file system of an image that holds only programs.
func Root(programs ...engine.File) (*bytes.Buffer, error) {
	// Servers of other images may run as any user, so everybody can write to /tmp.
	root := []engine.File{{Name: "bin/", Mode: 0o755}, {Name: "tmp/", Mode: 0o1777}}
	for _, p := range programs {
		p.Name = "bin/" + p.Name
		root = append(root, p)
	}
	return engine.Archive(root...)
}

// status reports what is happening at the moment.
func (m Maker) status(line string) {
	if m.Status != nil {
		m.Status("%s", line)
	}
}

// Foreign returns an image that the user named, and pulls it if it is missing.
func (m Maker) Foreign(ctx context.Context, ref string) (engine.Image, error) {
	found, err := m.pulled(ctx, ref, func() error { return m.pull(ctx, ref) })
	if err != nil {
		return engine.Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	return found, nil
}

// pulled returns an image, and calls pull if it is missing.
func (m Maker) pulled(ctx context.Context, ref string, pull func() error) (engine.Image, error) {
	found, ok, err := m.Engine.Image(ctx, ref)
	if err != nil || ok {
		return found, err
	}
	if err := pull(); err != nil {
		return engine.Image{}, err
	}
	if found, ok, err = m.Engine.Image(ctx, ref); err == nil && !ok {
		err = errors.New("pulled, but not there")
	}
	return found, err
}

// CheckBinary returns why a lockcheck binary cannot be put into an image of its own.
func CheckBinary(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	err = checkStatic(file)
	if errors.Is(err, errDynamic) {
		return fmt.Errorf("%w go build ./cmd/lockcheck", err)
	}
	return err
}
