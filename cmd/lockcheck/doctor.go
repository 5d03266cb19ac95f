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
)

// doctorTimeout bounds the questions to the engine.
const doctorTimeout = 15 * time.Second

// check is one thing that a doctor looks at.
type check struct {
	what string
	// look returns what there is, or why that is not enough.
	look func(context.Context) (string, error)
}

func doctorCommand(s *system) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "tell what works on this machine and what is missing",
		Long: `Look at what lockcheck needs: a Docker engine that answers, a static binary,
images of servers. The exit code is 0 if all of that is there or can be made, 3
if not. What containers may do and the kernel can, only a run tells.`,
		Args: usageArgs(cobra.NoArgs),
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
	var items []item
	for _, c := range s.checks() {
		found, err := c.look(ctx)
		status := "ok"
		if err != nil {
			status, found = "missing", err.Error()
			missing++
		}
		items = append(items, item{fmt.Sprintf("%-7s  %s", status, c.what), []string{found}})
	}
	if err := s.printItems(items); err != nil {
		return err
	}
	if missing > 0 {
		return &exitError{code: exitBroken, err: errors.New("something is missing; the embedded lock may work all the same")}
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

// lookAtImages tells whether images are there or how they can be made.
func lookAtImages(ctx context.Context, docker *engine.Engine) (string, error) {
	missing, err := images.Missing(ctx, docker)
	if err != nil {
		return "", err
	}
	if len(missing) == 0 {
		return fmt.Sprintf("all %d there", len(images.Names())), nil
	}
	there := fmt.Sprintf("%d of %d there; others are made on first use", len(images.Names())-len(missing), len(images.Names()))
	if _, err := exec.LookPath("go"); err != nil && slices.ContainsFunc(missing, images.NeedsGo) {
		return "", fmt.Errorf("%s, but some need the go command, which is not installed", there)
	}
	_, debootstrap := exec.LookPath("debootstrap")
	_, apt := exec.LookPath("apt-get")
	if os.Geteuid() == 0 && (debootstrap == nil || apt == nil) {
		return there + ", from a registry or with debootstrap", nil
	}
	return there + " if a registry can be reached", nil
}
