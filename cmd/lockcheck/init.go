package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
)

func initCommand(s *system) *cobra.Command {
	var service string
	app := &cobra.Command{
		Use:     "app COMPOSE-FILE",
		Short:   "write " + appfile.DraftName + " next to a Compose file",
		Args:    usageArgs(cobra.ExactArgs(1)),
		Example: "  lockcheck init app compose.yaml --service biller",
		RunE:    func(_ *cobra.Command, args []string) error { return s.initApp(args[0], service) },
	}
	flagsOf(app).text(&service, "service", "")
	return group("init", "write a first app file for your application", app)
}

// initApp writes a draft of an app file. It does not overwrite files.
func (s *system) initApp(compose, service string) error {
	var text bytes.Buffer
	if err := appfile.Draft(&text, compose, service); err != nil {
		return &runs.UsageError{Err: fmt.Errorf("%s: %w", compose, err)}
	}
	path := filepath.Join(filepath.Dir(compose), appfile.DraftName)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return runs.Usagef("%s is there already; remove it first", path)
	}
	if err != nil {
		return err
	}
	_, err = text.WriteTo(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "wrote %s; replace what is marked TODO, then: lockcheck test --app %s\n", path, path)
	return nil
}
