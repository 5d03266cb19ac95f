package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// Image is an image that the engine has.
type Image struct {
	Ref    string
	ID     string // digest of its content
	Labels map[string]string
	// Entrypoint and Command are what the image runs by default.
	Entrypoint, Command []string
	User                string // that the image's programs run as; "" for root
	// Created is set only by ImagesWith and ImagesNamed.
	Created time.Time
}

// CommandWith returns the program and arguments of a container of the image. An entrypoint or a command
// replaces the image's own, as in a Compose file.
func (i Image) CommandWith(entrypoint, command []string) []string {
	if entrypoint != nil {
		return slices.Concat(entrypoint, command) // the image's command belongs to the image's entry point
	}
	if len(command) == 0 {
		command = i.Command
	}
	return slices.Concat(i.Entrypoint, command)
}

// Image looks an image up; ok is false if the engine does not have it.
func (e *Engine) Image(ctx context.Context, ref string) (found Image, ok bool, err error) {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	info, err := e.api.ImageInspect(ctx, ref)
	switch {
	case errdefs.IsNotFound(err):
		return Image{}, false, nil
	case err != nil:
		return Image{}, false, err
	}
	found = Image{Ref: ref, ID: info.ID}
	if info.Config != nil {
		found.Labels = info.Config.Labels
		found.Entrypoint, found.Command = info.Config.Entrypoint, info.Config.Cmd
		found.User = info.Config.User
	}
	return found, true, nil
}

// Pull fetches an image from its registry.
func (e *Engine) Pull(ctx context.Context, ref string) error {
	ctx, watchdog := watched(ctx, e.limits.output)
	defer watchdog.end()
	stream, err := e.api.ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return err
	}
	defer stream.Close()
	return followProgress(watchdog.watching(stream), func(string) {})
}

// Digest asks the registry for the manifest digest to which a name resolves now.
func (e *Engine) Digest(ctx context.Context, ref string) (string, error) {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	found, err := e.api.DistributionInspect(ctx, ref, "")
	return found.Descriptor.Digest.String(), err
}

// Save writes images as an archive for Load. Shared layers are written once.
func (e *Engine) Save(ctx context.Context, refs []string, to io.Writer) error {
	ctx, watchdog := watched(ctx, e.limits.output)
	defer watchdog.end()
	archive, err := e.api.ImageSave(ctx, refs)
	if err != nil {
		return err
	}
	defer archive.Close()
	_, err = io.Copy(to, watchdog.watching(archive))
	return err
}

// Load reads what Save wrote. Images that exist already are no error.
func (e *Engine) Load(ctx context.Context, from io.Reader) error {
	ctx, watchdog := watched(ctx, e.limits.output)
	defer watchdog.end()
	answer, err := e.api.ImageLoad(ctx, watchdog.watching(from), client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return followProgress(watchdog.watching(answer.Body), func(string) {})
}

// Import makes an image from a tar archive of its root file system. The changes are Dockerfile instructions.
func (e *Engine) Import(ctx context.Context, ref string, archive io.Reader, changes ...string) error {
	ctx, watchdog := watched(ctx, e.limits.output)
	defer watchdog.end()
	source := image.ImportSource{Source: watchdog.watching(archive), SourceName: "-"}
	stream, err := e.api.ImageImport(ctx, source, ref, image.ImportOptions{Changes: changes})
	if err != nil {
		return err
	}
	defer stream.Close()
	return followProgress(watchdog.watching(stream), func(string) {})
}

// Build makes an image from a Dockerfile that needs no other files.
func (e *Engine) Build(ctx context.Context, ref, dockerfile string, progress func(line string)) error {
	buildContext, err := Archive(File{Name: "Dockerfile", Mode: 0o644, Content: []byte(dockerfile)})
	if err != nil {
		return err
	}
	return e.BuildFrom(ctx, ref, buildContext, progress)
}

// BuildFrom makes an image from a tar archive with a Dockerfile and the files that it needs.
func (e *Engine) BuildFrom(ctx context.Context, ref string, buildContext io.Reader, progress func(line string)) error {
	ctx, watchdog := watched(ctx, e.limits.output)
	defer watchdog.end()
	// Without ForceRemove a failed step would leave its container behind.
	answer, err := e.api.ImageBuild(ctx, buildContext, build.ImageBuildOptions{
		Tags: []string{ref}, Remove: true, ForceRemove: true, Version: build.BuilderV1,
	})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return followProgress(watchdog.watching(answer.Body), progress)
}

// Tag gives an image another name. An image that had the name loses it.
func (e *Engine) Tag(ctx context.Context, id, ref string) error {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	return e.api.ImageTag(ctx, id, ref)
}

// ImagesWith lists the images with a label. The Ref of an image without a name, or that lost its name to
// another image, is its ID.
func (e *Engine) ImagesWith(ctx context.Context, label string) ([]Image, error) {
	return e.images(ctx, filters.Arg("label", label))
}

// ImagesNamed lists the images whose names match a pattern such as "lockcheck/*", once per matching name.
func (e *Engine) ImagesNamed(ctx context.Context, form string) ([]Image, error) {
	return e.images(ctx, filters.Arg("reference", form))
}

func (e *Engine) images(ctx context.Context, filter filters.KeyValuePair) ([]Image, error) {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	list, err := e.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filter)})
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, i := range list {
		refs := i.RepoTags
		// Older engines say <none>:<none>.
		if len(refs) == 0 || strings.HasPrefix(refs[0], "<none>") {
			refs = []string{i.ID}
		}
		for _, ref := range refs {
			images = append(images, Image{Ref: ref, ID: i.ID, Labels: i.Labels, Created: time.Unix(i.Created, 0)})
		}
	}
	return images, nil
}

// RemoveImage removes an image. An image that a container uses is left alone.
func (e *Engine) RemoveImage(ctx context.Context, ref string) (removed bool, err error) {
	ctx, cancel := e.answerContext(ctx)
	defer cancel()
	_, err = e.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	if errdefs.IsConflict(err) || errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// progressTail is how many lines of output are reported with a failure.
const progressTail = 12

// followProgress reads the engine's progress messages to their end. If they report an error, it returns that
// error with the last lines of output before it.
func followProgress(stream io.Reader, progress func(line string)) error {
	var tail []string
	// The engine colours a step's standard error red.
	plain := strings.NewReplacer("\x1b[91m", "", "\x1b[0m", "")
	for messages := json.NewDecoder(stream); ; {
		var message struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		err := messages.Decode(&message)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case message.Error != "":
			return fmt.Errorf("%s\n%s", message.Error, strings.Join(tail, "\n"))
		}
		for line := range strings.Lines(plain.Replace(message.Stream)) {
			if line = strings.TrimSpace(line); line != "" {
				progress(line)
				tail = append(tail, line)[max(0, len(tail)+1-progressTail):]
			}
		}
	}
}
