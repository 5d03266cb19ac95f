package repros

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
)

// ByName finds a reproduction that is built in. The error of an unknown name is a
// *runs.UsageError.
func ByName(name string) (Reproduction, error) {
	all, err := All()
	if err != nil {
		return Reproduction{}, err
	}
	return find(all, name)
}

func find(all []Reproduction, name string) (Reproduction, error) {
	var known []string
	for _, r := range all {
		if r.Name == name {
			return r, nil
		}
		known = append(known, r.Name)
	}
	return Reproduction{}, &runs.UsageError{Err: &spelling.UnknownError{What: "reproduction", Name: name, Known: known}}
}

// Find finds a reproduction by its name, or by the path of its file. One that is made for
// many locks is found by its name without that of a lock, and lock, a name or a lock file,
// says for which; for any other reproduction lock is "". Errors about what was asked for are
// *runs.UsageError.
func Find(name, lock string) (Reproduction, error) {
	if lockfile.IsPath(name) {
		r, err := FromFile(name)
		if err != nil || lock == "" && len(r.Each) == 0 {
			return r, err
		}
		return r.with(lock)
	}
	built, err := builtIn()
	if err != nil {
		return Reproduction{}, err
	}
	i := slices.IndexFunc(built, func(r Reproduction) bool { return r.Name == name && len(r.Each) > 0 })
	if i >= 0 {
		return built[i].with(lock)
	}
	r, err := ByName(name)
	if err == nil && lock != "" {
		return r.with(lock)
	}
	return r, err
}

func (r Reproduction) with(lock string) (Reproduction, error) {
	if r.Setup.App != "" {
		return r, runs.Usagef("--lock: %s is for the application of %s alone", r.Name, r.Setup.App)
	}
	if len(r.Each) == 0 || r.Setup.Lock != "" {
		return r, runs.Usagef("--lock: %s is for the lock %s alone", r.Name, r.Setup.Lock)
	}
	if lock == "" {
		return r, runs.Usagef("--lock: %s is for many locks, %s; say for which", r.Name, r.Each)
	}
	found, err := lockfile.Find(lock)
	if err != nil {
		return r, &runs.UsageError{Err: err, About: "lock"}
	}
	if !r.Each.means(found.Info) {
		return r, runs.Usagef("--lock %s: %s is for %s", lock, r.Name, r.Each)
	}
	r = r.of(lock, found.Info)
	if r.Setup.TTL == 0 && found.Path != "" && found.Info.TTL < leastLease {
		r.Setup.TTL = leastLease
	}
	return r, nil
}

// leastLease is what reproductions for many locks ask a lock of the user's own for at least:
// their sections and the pauses of their controls must fit into the lease, on a busy machine,
// too. Most of lockcheck's own locks have it.
const leastLease = 2 * time.Second

// FromFile reads a reproduction of the user's own. Lock files and app files are looked for from
// the folder of the file. All errors are *runs.UsageError.
func FromFile(path string) (Reproduction, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Reproduction{}, &runs.UsageError{Err: err}
	}
	r, err := readReproduction(bytes.NewReader(text))
	if err == nil {
		err = r.checkOwn()
	}
	if err != nil {
		return r, &runs.UsageError{Err: fmt.Errorf("%s: %w", path, err)}
	}
	r.Path = path
	r.locate(filepath.Dir(path))
	return r, nil
}

// checkOwn is about what only a reproduction that is not built in can get wrong.
func (r Reproduction) checkOwn() error {
	if r.Name == "" {
		return errNoName
	}
	built, err := builtIn()
	if err != nil {
		return err
	}
	all, err := All()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(slices.Concat(built, all), func(built Reproduction) bool { return built.Name == r.Name }) {
		return fmt.Errorf("name: %q is the name of one of lockcheck's own reproductions", r.Name)
	}
	return nil
}

var errNoName = errors.New("it has no name")

// locate makes paths of lock files and app files relative to a folder.
func (r *Reproduction) locate(folder string) {
	r.Setup.Lock, r.Setup.App = located(folder, r.Setup.Lock), locatedApp(folder, r.Setup.App)
	if r.Control != nil {
		locateIn(folder, &r.Control.Setup)
	}
	if r.Fast != nil {
		locateIn(folder, &r.Fast.Setup)
	}
}

// locateIn does so in a part of a file that is read later.
func locateIn(folder string, setup *yaml.Node) {
	for i := 0; i+1 < len(setup.Content); i += 2 {
		switch value := &setup.Content[i+1].Value; setup.Content[i].Value {
		case "lock":
			*value = located(folder, *value)
		case "app":
			*value = locatedApp(folder, *value)
		}
	}
}

func located(folder, lock string) string {
	if !lockfile.IsPath(lock) || filepath.IsAbs(lock) {
		return lock
	}
	return filepath.Join(folder, lock)
}

func locatedApp(folder, app string) string {
	if app == "" || filepath.IsAbs(app) {
		return app
	}
	return filepath.Join(folder, app)
}

// In lists the reproductions in files and in folders, those below included. Of a folder it
// reads the YAML files that say what they expect. All errors are *runs.UsageError.
func In(paths []string) ([]Reproduction, error) {
	var all []Reproduction
	for _, path := range paths {
		found, err := in(path)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, runs.Usagef("%s: there is no reproduction in it", path)
		}
		for _, r := range found {
			if slices.ContainsFunc(all, func(other Reproduction) bool { return other.Name == r.Name }) {
				return nil, runs.Usagef("%s: there is another reproduction called %s", r.Path, r.Name)
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func in(path string) ([]Reproduction, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		r, err := FromFile(path)
		return r.forEach(), err
	}
	var all []Reproduction
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return err
		}
		if is, err := expects(path); err != nil || !is {
			return err
		}
		r, err := FromFile(path)
		all = append(all, r.forEach()...)
		return err
	})
	var usage *runs.UsageError
	if err != nil && !errors.As(err, &usage) {
		err = &runs.UsageError{Err: err}
	}
	return all, err
}

// expects says whether a file has the key that every reproduction has, and neither a lock
// file nor a suite.
func expects(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if file.IsZero() || file.Content[0].Kind != yaml.MappingNode {
		return false, nil // empty, or a list
	}
	keys := file.Content[0].Content
	for i := 0; i < len(keys); i += 2 {
		if keys[i].Value == "expect" {
			return true, nil
		}
	}
	return false, nil
}
