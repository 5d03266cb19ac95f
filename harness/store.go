package harness

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/nemesis"
	"lockcheck/reports"
)

// Names of the files of a run.
const (
	HistoryFile  = "history.jsonl"
	testFile     = "test.json"
	scheduleFile = "schedule.yaml"
	resultsFile  = "results.json"
	junitFile    = "junit.xml"
	reportFile   = "report.html"
	porcupine    = "porcupine.html"
	logFolder    = "logs"
	latestLink   = "latest"
)

// newRunFolder makes the folder of a run and points the latest links at it.
func newRunFolder(store, name string, now time.Time) (string, error) {
	parent := filepath.Join(store, name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	stamp := now.UTC().Format("20060102T150405.000Z")
	folder := filepath.Join(parent, stamp)
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	return folder, errors.Join(
		relink(filepath.Join(parent, latestLink), stamp),
		relink(filepath.Join(store, latestLink), filepath.Join(name, stamp)),
	)
}

// relink replaces a symbolic link in one step, so that there always is one.
func relink(link, target string) error {
	temporary := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, link)
}

// writeFile writes a file of a run through a function that writes to a stream.
func writeFile(folder, name string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(folder, name), content.Bytes(), 0o644)
}

func writeSchedule(folder string, s nemesis.Schedule) error {
	return writeFile(folder, scheduleFile, s.Write)
}

// Judgement is a history and what was found in it.
type Judgement struct {
	Folder  string // of the run; "" if only its history was named
	History *history.History
	Results checker.Results
}

// Judge reads the history of a run, from its folder or its file, and judges it.
// A malformed history is an error that names the line.
func Judge(path string) (Judgement, error) {
	folder, file := "", path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		folder, file = path, filepath.Join(path, HistoryFile)
	}
	if folder != "" && !exists(file) {
		return Judgement{}, fmt.Errorf("%s is no run; name the folder of one, as in %s", folder, filepath.Join(folder, latestLink))
	}
	h, err := history.ReadFile(file)
	if err != nil {
		return Judgement{}, err
	}
	if err := history.Validate(h); err != nil {
		return Judgement{}, fmt.Errorf("%s: %w", file, err)
	}
	return Judgement{Folder: folder, History: h, Results: checker.Check(h, checker.Options{})}, nil
}

// WriteReports writes all reports of a judged run into its folder, if it has
// one.
func (j Judgement) WriteReports() error {
	if j.Folder == "" {
		return nil
	}
	h, r := j.History, j.Results
	errs := []error{
		writeFile(j.Folder, resultsFile, func(w io.Writer) error { return reports.JSON(w, h.Header, r) }),
		writeFile(j.Folder, junitFile, func(w io.Writer) error { return reports.JUnit(w, h.Header, r) }),
		writeFile(j.Folder, reportFile, func(w io.Writer) error { return reports.HTML(w, h, r) }),
	}
	if worthAPicture(r) {
		errs = append(errs, writeFile(j.Folder, porcupine, func(w io.Writer) error {
			return checker.Visualize(h, w, checker.DefaultPorcupineLimit)
		}))
	}
	return errors.Join(errs...)
}

// worthAPicture says whether porcupine found something or gave up.
func worthAPicture(r checker.Results) bool {
	for _, f := range r.Findings {
		if f.Property == checker.Linearizability {
			return f.Verdict == checker.Violation || f.Verdict == checker.Undecided
		}
	}
	return false
}

// exists reports whether a path is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
