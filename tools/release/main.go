// Command release makes the published files from the programs in dist/linux-ARCH, which are lockcheck and the
// programs of its workers. For each architecture it makes an archive, a list of modules (CycloneDX) and a
// container image. It also writes the checksums of all files.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
)

// prefix begins the names of the folders. An architecture, as Go names it, follows.
const prefix = "linux-"

const sumsFile = "SHA256SUMS"

func main() {
	folder := flag.String("folder", "dist", "`folder` with the programs, in a folder for each architecture")
	flag.Parse()
	if err := release(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(folder string) error {
	built, err := filepath.Glob(filepath.Join(folder, prefix+"*"))
	if err != nil {
		return err
	}
	if len(built) == 0 {
		return fmt.Errorf("%s: no folder %s…", folder, prefix)
	}
	for _, programs := range built {
		if err := publish(programs); err != nil {
			return fmt.Errorf("%s: %w", programs, err)
		}
		if err := os.RemoveAll(programs); err != nil {
			return err
		}
	}
	return writeSums(folder)
}

// program is one of the programs that are released together.
type program struct {
	name    string // name of its file
	content []byte
	build   *debug.BuildInfo
}

// publish writes the published files next to a folder of programs.
func publish(folder string) error {
	programs, err := readPrograms(folder)
	if err != nil {
		return err
	}
	arch := strings.TrimPrefix(filepath.Base(folder), prefix)
	path := filepath.Join(filepath.Dir(folder), "lockcheck-"+filepath.Base(folder))
	return errors.Join(writeArchive(path+".tar.gz", programs), writeModules(path+".cdx.json", programs), writeImage(path+".image.tar", programs, arch))
}

// readPrograms reads the static binaries in a folder. lockcheck sorts first.
func readPrograms(folder string) ([]program, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var programs []program
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if err := images.CheckBinary(path); err != nil {
			return nil, err
		}
		p := program{name: entry.Name()}
		if p.content, err = os.ReadFile(path); err != nil {
			return nil, err
		}
		if p.build, err = buildinfo.Read(bytes.NewReader(p.content)); err != nil {
			return nil, err
		}
		programs = append(programs, p)
	}
	if len(programs) == 0 || programs[0].name != images.Self {
		return nil, fmt.Errorf("it has no %s", images.Self)
	}
	return programs, nil
}

// writeArchive writes the programs so that they unpack into one folder. It has no timestamps, so that the
// same programs give the same archive.
func writeArchive(path string, programs []program) error {
	archive, err := engine.Archive(filesOf(programs)...)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	zipped := gzip.NewWriter(&compressed)
	_, err = archive.WriteTo(zipped)
	if err := errors.Join(err, zipped.Close()); err != nil {
		return err
	}
	return os.WriteFile(path, compressed.Bytes(), 0o644)
}

func filesOf(programs []program) []engine.File {
	var files []engine.File
	for _, p := range programs {
		files = append(files, engine.File{Name: p.name, Mode: 0o755, Content: p.content})
	}
	return files
}

// writeSums writes the checksums of all files in the format of sha256sum --check.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		if entry.Name() == sumsFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, sumsFile), []byte(sums.String()), 0o644)
}
