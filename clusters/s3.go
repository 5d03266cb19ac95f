package clusters

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

const (
	s3Port   = 7070
	s3Health = "/health"
	s3Module = "github.com/versity/versitygw"
)

// s3Spec is one object store that speaks S3: versitygw on a folder, which is not Amazon's service. 1.7.0 checks the
// condition of a write before it stores the object, and a second write can slip in between. 1.0.14 ignores conditions.
func s3Spec() Spec {
	return Spec{
		Name: "s3", Nodes: 1, Image: "versitygw", Versions: []string{"1.8.0", "1.7.0", "1.0.14"},
		Server: func(int) Server {
			return Server{Program: "versitygw", Port: s3Port, Probes: s3Probes{}, Command: s3Command, Environment: s3Environment}
		},
	}
}

func s3Command(p Place) []string {
	return []string{
		"versitygw", "--port", ":" + strconv.Itoa(s3Port), "--region", clients.S3Region,
		"--access", clients.S3AccessKey, "--secret", clients.S3SecretKey, "--health", s3Health, "posix", p.Folder,
	}
}

// s3Environment lets connections last, as those of Amazon's service do. 1.0.14 has no such setting, and ignores it.
func s3Environment(Place) []string { return []string{"VGW_KEEP_ALIVE=true"} }

// s3Probes asks an object store without credentials.
type s3Probes struct{}

var _ agent.Probes = s3Probes{}

func (s3Probes) Ready(ctx context.Context, address string) error {
	_, err := s3Asks(address).ask(ctx, nil)
	return err
}

func (s3Probes) Clock(ctx context.Context, address string) (time.Time, error) {
	return s3Asks(address).date(ctx)
}

func s3Asks(address string) question { return question{url: "http://" + address + s3Health} }

// Version reads the version from the program that runs, because the server does not report it.
func (s3Probes) Version(context.Context, string) (string, error) { return runningModule(s3Module) }

// runningModule returns the version of a Go module whose program runs in this namespace.
func runningModule(module string) (string, error) {
	programs, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return "", err
	}
	for _, program := range programs {
		// ReadFile fails for a program that is not written in Go, or has ended.
		if info, err := buildinfo.ReadFile(program); err == nil && info.Main.Path == module {
			return strings.TrimPrefix(info.Main.Version, "v"), nil
		}
	}
	return "", fmt.Errorf("no program of %s runs", module)
}
