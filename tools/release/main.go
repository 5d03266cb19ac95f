// Command release makes what is published with the binaries in a folder: of each a list of its
// modules (CycloneDX), its container image; of all their checksums.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/clusters/images"
)

// prefix is what the names of binaries begin with; an architecture as Go names it follows.
const prefix = "lockcheck-linux-"

const sumsFile = "SHA256SUMS"

func main() {
	folder := flag.String("folder", "dist", "`folder` with the binaries")
	flag.Parse()
	if err := release(*folder); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(folder string) error {
	found, err := filepath.Glob(filepath.Join(folder, prefix+"*"))
	if err != nil {
		return err
	}
	binaries := slices.DeleteFunc(found, func(path string) bool { return filepath.Ext(path) != "" })
	if len(binaries) == 0 {
		return fmt.Errorf("%s: no %s…", folder, prefix)
	}
	for _, path := range binaries {
		if err := accompany(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return writeSums(folder)
}

// accompany writes what goes with a binary.
func accompany(path string) error {
	if err := images.CheckBinary(path); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	arch := strings.TrimPrefix(filepath.Base(path), prefix)
	return errors.Join(writeModules(path+".cdx.json", info), writeImage(path+".image.tar", path, arch))
}

// writeSums writes the checksums of all files, as sha256sum --check reads them.
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
