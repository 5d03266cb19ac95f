package images

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"lockcheck/clusters/engine"
)

//go:embed official
var officialFiles embed.FS

// Official is the version of servers that run from the upstream image.
const Official = "official"

// Environment variables.
const (
	// TableVariable names a file that replaces the table of official images.
	TableVariable = "LOCKCHECK_OFFICIAL"
	// RegistryVariable names a registry that replaces those in the table, such as "127.0.0.1:5000" or
	// "mirror.example.com/hub".
	RegistryVariable = "LOCKCHECK_REGISTRY"
)

// OfficialImage is the upstream image of a server.
type OfficialImage struct {
	Recipe string
	// Name has a registry and a tag, as in "docker.io/library/redis:7.4.2".
	Name string
	// Digest of the manifest, as in "sha256:…"; "" if unknown.
	Digest string
}

// Variables are the environment variables that determine how images are made or pulled, except TableVariable,
// which names a file.
func Variables() []string { return []string{RegistryVariable, mirrorVariable} }

// String is the image's line in the table.
func (o OfficialImage) String() string { return o.Recipe + " " + o.Pinned() }

// Pinned is the name with the digest.
func (o OfficialImage) Pinned() string {
	if o.Digest == "" {
		return o.Name
	}
	return o.Name + "@" + o.Digest
}

// mirrored is the name at the registry to use.
func (o OfficialImage) mirrored() string {
	registry, path, _ := strings.Cut(o.Name, "/")
	if mirror := os.Getenv(RegistryVariable); mirror != "" {
		registry = strings.TrimSuffix(mirror, "/")
	}
	return registry + "/" + path
}

// repository is the mirrored name without its tag.
func (o OfficialImage) repository() string {
	name := o.mirrored()
	if colon := strings.LastIndexByte(name, ':'); colon > strings.LastIndexByte(name, '/') {
		name = name[:colon]
	}
	return name
}

// UnpinnedError says that the digest of an official image is unknown.
type UnpinnedError struct{ Image OfficialImage }

func (e *UnpinnedError) Error() string {
	return fmt.Sprintf("no digest of %s is known: write the table with lockcheck images --official --pin %s > FILE, and set %s=FILE",
		e.Image.Name, e.Image.Recipe, TableVariable)
}

// OfficialImages is the table of official images: the file of TableVariable, or lockcheck's own table.
func OfficialImages() ([]OfficialImage, error) {
	path := os.Getenv(TableVariable)
	if path == "" {
		text, err := officialFiles.ReadFile("official/digests.txt")
		if err != nil {
			return nil, err
		}
		return readTable("the table of official images", text)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", TableVariable, err)
	}
	return readTable(path, text)
}

// digestForm is the form of the digests that registries use.
var digestForm = regexp.MustCompile("^sha256:[0-9a-f]{64}$")

// readTable reads lines of a recipe and its image. It skips empty lines and lines that begin with #.
func readTable(path string, text []byte) ([]OfficialImage, error) {
	var all []OfficialImage
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 || !hasRegistry(fields[1]) {
			return nil, fmt.Errorf("%s, line %d: want a recipe and an image with its registry, as in redis-official docker.io/library/redis:7.4.2@sha256:…", path, number)
		}
		name, digest, pinned := strings.Cut(fields[1], "@")
		if pinned && !digestForm.MatchString(digest) {
			return nil, fmt.Errorf("%s, line %d: %q is no digest: want sha256: and 64 digits", path, number, digest)
		}
		all = append(all, OfficialImage{Recipe: fields[0], Name: name, Digest: digest})
	}
	return all, nil
}

// hasRegistry says whether an image name begins with a registry. Without one, some tools would look for the
// image at Docker Hub, and others nowhere.
func hasRegistry(name string) bool {
	host, _, found := strings.Cut(name, "/")
	return found && (strings.ContainsAny(host, ".:") || host == "localhost")
}

// OfficialNamed returns the official image of a recipe. Its error is an *UnpinnedError if the digest is
// unknown.
func OfficialNamed(recipe string) (OfficialImage, error) {
	all, err := OfficialImages()
	if err != nil {
		return OfficialImage{}, err
	}
	i := slices.IndexFunc(all, func(o OfficialImage) bool { return o.Recipe == recipe })
	switch {
	case i < 0:
		return OfficialImage{}, fmt.Errorf("the table of official images has no %s", recipe)
	case all[i].Digest == "":
		return all[i], &UnpinnedError{Image: all[i]}
	}
	return all[i], nil
}

// IsOfficial says whether a recipe is for an official image.
func IsOfficial(recipe string) bool { return strings.HasSuffix(recipe, "-"+Official) }

// ensureOfficial returns the image that a server runs from. It is the official image, pulled by its digest if
// missing, plus what lets a server start from it at once. If nothing is to be added the official image only
// gets a name of ours, because a layer would take seconds.
func (m Maker) ensureOfficial(ctx context.Context, recipe string) (engine.Image, error) {
	official, err := OfficialNamed(recipe)
	if err != nil {
		return engine.Image{}, err
	}
	text, noRecipe := officialFiles.ReadFile("official/" + recipe + dockerfileSuffix)
	content := slices.Concat(text, []byte(official.Pinned()))
	return m.once(ctx, recipe, content, func(ref string) error {
		base, err := m.pullOfficial(ctx, official)
		if err != nil {
			return err
		}
		if noRecipe != nil {
			return m.Engine.Tag(ctx, base.ID, ref)
		}
		dockerfile := strings.Replace(string(text), "{{.}}", base.ID, 1) + fmt.Sprintf("LABEL %s=%s\n", RecipeLabel, recipe)
		m.Progress("preparing the image %s (once)", recipe)
		return m.Engine.Build(ctx, ref, dockerfile, m.status)
	})
}

// pullOfficial returns the image of a digest and pulls it if it is missing. The total time is unlimited; the
// engine must only show progress.
func (m Maker) pullOfficial(ctx context.Context, official OfficialImage) (engine.Image, error) {
	ref := official.repository() + "@" + official.Digest
	return m.pulled(ctx, ref, func() error {
		m.Progress("pulling %s (once)", ref)
		if err := m.Engine.Pull(ctx, ref); err != nil {
			return fmt.Errorf("%w; where no registry can be reached, servers are built from packages (any other --version, or none)", err)
		}
		return nil
	})
}

// removeOfficial removes official images by lockcheck's names for them and by their digests in the table, unless
// other images are based on them. They do not have our label.
func (m Maker) removeOfficial(ctx context.Context) (removed int, err error) {
	named, err := m.Engine.ImagesNamed(ctx, namespace+"*-"+Official)
	all, tableErr := OfficialImages()
	err = errors.Join(err, tableErr)
	for _, image := range named {
		gone, removeErr := m.Engine.RemoveImage(ctx, image.Ref)
		if gone {
			removed++
		}
		err = errors.Join(err, removeErr)
	}
	for _, official := range all {
		if official.Digest != "" {
			_, removeErr := m.Engine.RemoveImage(ctx, official.repository()+"@"+official.Digest)
			err = errors.Join(err, removeErr)
		}
	}
	return removed, err
}

// Pin asks the registries for the current digests of the tags of official images.
func (m Maker) Pin(ctx context.Context, list []OfficialImage) ([]OfficialImage, error) {
	var pinned []OfficialImage
	var failed error
	for _, official := range list {
		official.Name = official.mirrored()
		digest, err := m.Engine.Digest(ctx, official.Name)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", official.Recipe, err))
			continue
		}
		official.Digest = digest
		pinned = append(pinned, official)
	}
	return pinned, failed
}
