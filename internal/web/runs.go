package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"lockcheck/history"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/hunt"
	"lockcheck/internal/suites/profile"
	"lockcheck/internal/suites/sweep"
	"lockcheck/reports"
)

// run is what the store knows of one run.
type run struct {
	Folder string // from the store
	reports.Line
	// Problem is why there is no verdict; "" if there is one.
	Problem string
}

// state identifies one version of a file.
type state struct{ changed, size int64 } // changed in ns since 1970

func stateOf(info fs.FileInfo) state { return state{info.ModTime().UnixNano(), info.Size()} }

// known is a cached run and the state of the file that it was read from.
type known struct {
	state
	run run
}

// inventory is the content of a store, the newest first.
type inventory struct {
	runs        []run
	comparisons []comparison
	pages       []string // other pages, see otherPages
	problems    []string // folders that could not be read, and why
	unread      int      // number of runs that there was no time to read
}

// look lists the content of the store. It reads only what has changed since the last call, the newest runs
// first: at least one run, and as many as fit within the patience.
func (s *Store) look(patience time.Duration) inventory {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.walk()
	folders := found.runs
	all := inventory{comparisons: s.compared(found.comparisons), pages: found.pages, problems: found.problems}
	// The folder of a run is named after its time.
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(path.Base(b), path.Base(a)) })
	seen := make([]known, len(folders))
	first := slices.IndexFunc(folders, func(folder string) bool { _, before := s.known[folder]; return !before })
	enough := time.Now().Add(patience)
	var readers errgroup.Group
	readers.SetLimit(runtime.GOMAXPROCS(0))
	for i, folder := range folders {
		readers.Go(func() error {
			last, before := s.known[folder]
			if !before && i != first && time.Now().After(enough) {
				return nil
			}
			seen[i] = s.refresh(folder, last)
			return nil
		})
	}
	_ = readers.Wait() // readers return no errors: each run reports its own
	s.known = make(map[string]known, len(folders))
	for i, folder := range folders {
		if seen[i].run.Folder == "" {
			all.unread++
			continue
		}
		s.known[folder] = seen[i]
		all.runs = append(all.runs, seen[i].run)
	}
	slices.SortFunc(all.runs, newestFirst)
	return all
}

func newestFirst(a, b run) int {
	return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.Folder, a.Folder))
}

// otherPages are the names of pages about several runs that are no comparisons.
func otherPages() []string {
	return []string{runs.RemediesFile, hunt.HTMLFile, sweep.HTMLFile, profile.MarkdownFile}
}

// found is what walk finds: folders of runs and comparisons, and files.
type found struct{ runs, comparisons, pages, problems []string }

// walk finds runs, comparisons and other pages. It follows no links, because links to the latest runs would
// show them twice.
func (s *Store) walk() (all found) {
	err := fs.WalkDir(s.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			all.problems = append(all.problems, err.Error())
			return fs.SkipDir
		case entry.IsDir():
		case path.Dir(name) == ".": // the store itself is none of them
		case slices.Contains(runFiles(), entry.Name()):
			all.runs = append(all.runs, path.Dir(name))
			return fs.SkipDir
		case entry.Name() == runs.ComparisonFile:
			all.comparisons = append(all.comparisons, path.Dir(name))
		case slices.Contains(otherPages(), entry.Name()):
			all.pages = append(all.pages, name)
		}
		return nil
	})
	if err != nil {
		all.problems = append(all.problems, err.Error())
	}
	return all
}

// refresh reads a run again if its file has changed.
func (s *Store) refresh(folder string, last known) known {
	info, err := s.root.Stat(path.Join(folder, runs.ResultsFile))
	if err != nil {
		return known{run: s.unjudged(folder, err)}
	}
	now := known{stateOf(info), run{Folder: folder}}
	if last.run.Folder != "" && last.state == now.state {
		return last
	}
	document, err := s.document(folder)
	if err != nil {
		now.run = s.unjudged(folder, err)
		return now
	}
	now.run.Line = reports.NewLine(document)
	return now
}

// unjudged is a run without results; its header may be known.
func (s *Store) unjudged(folder string, why error) run {
	r := run{Folder: folder, Problem: "The results cannot be read: " + why.Error()}
	if errors.Is(why, fs.ErrNotExist) {
		r.Problem = "No results yet: it is being made, or was killed."
	}
	var header history.Header
	if err := s.decode(path.Join(folder, runs.TestFile), &header); err == nil {
		r.Line = reports.UnjudgedLine(header)
	}
	if info, err := s.root.Stat(folder); err == nil && r.Started.IsZero() {
		r.Started = info.ModTime()
	}
	return r
}

func (s *Store) document(folder string) (reports.Document, error) {
	text, err := s.text(path.Join(folder, runs.ResultsFile))
	if err != nil {
		return reports.Document{}, err
	}
	return reports.ReadDocument(bytes.NewReader(text))
}

// maxDecoded is the largest size of a file, in bytes, that is read into memory.
const maxDecoded = 64 << 20

func (s *Store) decode(name string, into any) error {
	text, err := s.text(name)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (s *Store) text(name string) ([]byte, error) {
	file, info, err := openFile(s.root, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Size() > maxDecoded {
		return nil, fmt.Errorf("%s is larger than %d MiB", path.Base(name), maxDecoded>>20)
	}
	return io.ReadAll(io.LimitReader(file, maxDecoded))
}

// openFile opens a regular file of a folder and nothing else, because opening a pipe would block until its
// other end is opened.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file: %w", path.Base(name), fs.ErrNotExist)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// home splits the path of a file into the innermost run, comparison or other page that contains it, and the
// rest; false if there is none.
func (s *Store) home(name string) (folder, rest string, ok bool) {
	if !fs.ValidPath(name) {
		return "", "", false
	}
	for folder = name; folder != "."; folder = path.Dir(folder) {
		if s.holdsRun(folder) || slices.ContainsFunc(append(otherPages(), runs.ComparisonFile), func(page string) bool { return s.holds(folder, page) }) {
			return folder, strings.TrimPrefix(name[len(folder):], "/"), true
		}
	}
	return "", "", false
}

func (s *Store) isRun(folder string) bool {
	return fs.ValidPath(folder) && folder != "." && s.holdsRun(folder)
}

func (s *Store) holdsRun(folder string) bool {
	return slices.ContainsFunc(runFiles(), func(name string) bool { return s.holds(folder, name) })
}

func (s *Store) holds(folder, name string) bool {
	_, err := s.root.Lstat(path.Join(folder, name))
	return err == nil
}
