package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/history"
	"lockcheck/internal/catalog"
)

// doctorTimeout bounds the questions to the engine.
const doctorTimeout = 15 * time.Second

// check is one thing that the doctor looks at.
type check struct {
	what string
	// look returns what was found; its error says what is missing.
	look func(context.Context) (string, error)
}

func doctorCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "check what this machine can run",
		Long:  `Check what lockcheck needs: a Docker engine that answers, a static binary, and server images. The exit code is 0 if everything is there or can be made, else 3. Whether the kernel and the containers allow each fault shows only in a run.`,
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.untilInterrupted(cmd.Context(), func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
				defer cancel()
				return s.doctor(ctx)
			})
		},
	}
}

func (s *system) doctor(ctx context.Context) error {
	missing := 0
	var entries []catalog.Entry
	for _, c := range s.checks() {
		found, err := c.look(ctx)
		status := "ok"
		if err != nil {
			status, found = "missing", err.Error()
			missing++
		}
		entries = append(entries, catalog.Entry{Name: fmt.Sprintf("%-7s  %s", status, c.what), Summary: found})
	}
	if err := s.print(entries); err != nil {
		return err
	}
	if missing > 0 {
		return &exitError{code: exitBroken, err: errors.New("something is missing; the embedded lock may still work")}
	}
	return nil
}

func (s *system) checks() []check {
	return []check{
		{"system", func(context.Context) (string, error) {
			return fmt.Sprintf("%s %s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), nil
		}},
		{"monotonic clock", func(context.Context) (string, error) {
			return fmt.Sprintf("%d s since boot", history.Now()/1e9), nil
		}},
		{"Docker engine", withEngine(func(ctx context.Context, e *engine.Engine) (string, error) { return e.Version(ctx) })},
		{"own image", s.lookAtBinary},
		{"images of servers", withEngine(lookAtImages)},
	}
}

func withEngine(look func(context.Context, *engine.Engine) (string, error)) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		docker, err := engine.Connect(ctx)
		if err != nil {
			return "", err
		}
		defer docker.Close()
		return look(ctx, docker)
	}
}

func (s *system) lookAtBinary(context.Context) (string, error) {
	binary, err := s.binary()
	if err != nil {
		return "", err
	}
	if err := images.CheckBinary(binary); err != nil {
		return "", err
	}
	return "this binary is static", nil
}

// lookAtImages says which images exist, or how they can be made.
func lookAtImages(ctx context.Context, docker *engine.Engine) (string, error) {
	missing, err := images.Missing(ctx, docker)
	if err != nil {
		return "", err
	}
	if len(missing) == 0 {
		return fmt.Sprintf("all %d exist", len(images.Names())), nil
	}
	found := fmt.Sprintf("%d of %d exist; others are made on first use", len(images.Names())-len(missing), len(images.Names()))
	if _, err := exec.LookPath("go"); err != nil && slices.ContainsFunc(missing, images.NeedsGo) {
		return "", fmt.Errorf("%s, but some need the go command, which is not installed", found)
	}
	_, debootstrap := exec.LookPath("debootstrap")
	_, apt := exec.LookPath("apt-get")
	if os.Geteuid() == 0 && (debootstrap == nil || apt == nil) {
		return found + ", from a registry or with debootstrap", nil
	}
	return found + " if a registry can be reached", nil
}
