package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/history"
	"lockcheck/nemesis"
	"lockcheck/present"
	"lockcheck/reports"
)

// Names of the files of a run.
const (
	HistoryFile  = "history.jsonl"
	TestFile     = "test.json" // the header of the history alone
	scheduleFile = "schedule.yaml"
	ResultsFile  = "results.json" // a reports.Document
	junitFile    = "junit.xml"
	ReportFile   = "report.html"
	// PorcupineFile is there if porcupine found something or gave up.
	PorcupineFile = "porcupine.html"
	logFolder     = "logs"
	latestLink    = "latest"
)

// Files in the folder of a comparison: its page for people, and the same data for programs.
const (
	ComparisonFile     = "comparison.html"
	ComparisonDataFile = "comparison.json"
)

// Files in the folder of a run that was repeated with remedies, for all of these runs.
const (
	RemediesFile     = "remedies.html"
	RemediesDataFile = "remedies.json"
)

// Folders of a store for runs that search for or try something.
const (
	RemediesFolder = "remedies"
	SweepFolder    = "sweep"
	ProfileFolder  = "profile"
	HuntFolder     = "hunt"
)

// newRunFolder makes the folder of a run and points the latest links at it.
func newRunFolder(store, name string) (string, error) {
	folder, err := NewFolder(filepath.Join(store, name))
	if folder == "" {
		return "", err
	}
	return folder, errors.Join(err, relink(filepath.Join(store, latestLink), filepath.Join(name, filepath.Base(folder))))
}

// Unusable makes a usage error of an error about a folder that cannot be used. A full disk is not the user's
// mistake.
func Unusable(err error) error {
	var path *fs.PathError
	if !errors.As(err, &path) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO) {
		return err
	}
	return Usagef("the folder cannot be used: %w", err)
}

// NewFolder makes a folder named after the present time in parent, and points parent's latest link at it.
func NewFolder(parent string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", Unusable(err)
	}
	stamp, err := mkdirStamped(parent, time.Now())
	if err != nil {
		return "", Unusable(err)
	}
	return filepath.Join(parent, stamp), relink(filepath.Join(parent, latestLink), stamp)
}

// mkdirStamped makes a folder that is named after a time. It takes the first free name, because runs in
// parallel may begin at the same moment.
func mkdirStamped(parent string, now time.Time) (string, error) {
	for {
		stamp := now.UTC().Format("20060102T150405.000Z")
		if err := os.Mkdir(filepath.Join(parent, stamp), 0o755); !errors.Is(err, fs.ErrExist) {
			return stamp, err
		}
		now = now.Add(time.Millisecond)
	}
}

// relink replaces a symbolic link atomically, so that the link always exists.
func relink(link, target string) error {
	temporary := fmt.Sprintf("%s.%x", link, rand.Uint64())
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, link)
}

// ReadResults reads the results of a run in its folder, also if another version of lockcheck wrote them,
// unless this version cannot understand them.
func ReadResults(folder string) (reports.Document, error) {
	path := filepath.Join(folder, ResultsFile)
	file, err := os.Open(path)
	if err != nil {
		return reports.Document{}, err
	}
	defer file.Close()
	d, err := reports.ReadDocument(file)
	if err != nil {
		return d, fmt.Errorf("results in %s: %w", path, err)
	}
	return d, nil
}

// WriteFile writes a file into a folder through a function that writes to a stream. It writes the whole file
// or nothing.
func WriteFile(folder, name string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	path := filepath.Join(folder, name)
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// ReadSchedule reads the schedule of a stored run; it has no steps if there is no file.
func ReadSchedule(folder string) (nemesis.Schedule, error) {
	file, err := os.Open(filepath.Join(folder, scheduleFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nemesis.Schedule{}, nil
	}
	if err != nil {
		return nemesis.Schedule{}, err
	}
	defer file.Close()
	s, err := nemesis.ReadSchedule(file)
	if err != nil {
		return s, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return s, nil
}

func writeSchedule(folder string, s nemesis.Schedule) error {
	return WriteFile(folder, scheduleFile, s.Write)
}

// Judgement is a history and the findings in it.
type Judgement struct {
	Folder string // folder of the run; "" if the user named only its history
	// History has only the events around incidents if it is larger than maxPictured.
	History *history.History
	Results checker.Results
}

// maxPictured is the greatest size, in bytes, of a history that is kept in memory for pictures: about half a
// million operations. Longer histories are judged, too.
const maxPictured = 256 << 20

// Judge reads the history of a run, from its folder or its file, and judges it.
// A malformed history is an error that names the line.
func Judge(path string) (Judgement, error) {
	folder, file, err := historyOf(path)
	if err != nil {
		return Judgement{}, err
	}
	h, results, err := judgeFile(file, folder != "", maxPictured)
	if err != nil {
		return Judgement{}, fmt.Errorf("%s: %w", file, err)
	}
	return Judgement{Folder: folder, History: h, Results: results}, nil
}

// At returns the folders of the runs in a folder, sorted by their names, and so by their times. If the path
// is itself a run or a history, it returns the path.
func At(path string) ([]string, error) {
	_, _, err := historyOf(path)
	if err == nil {
		return []string{path}, nil
	}
	entries, _ := os.ReadDir(path) // if that fails, so did the search for a history
	var runs []string
	for _, entry := range entries {
		if folder := filepath.Join(path, entry.Name()); entry.IsDir() && exists(filepath.Join(folder, HistoryFile)) {
			runs = append(runs, folder) // this leaves out the latest link
		}
	}
	if len(runs) == 0 {
		return nil, err
	}
	return runs, nil
}

// historyOf finds the history of a run, and the run's folder if the path is that folder.
func historyOf(path string) (folder, file string, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return "", path, nil // opening the path will report what is wrong with it
	}
	file = filepath.Join(path, HistoryFile)
	if !exists(file) {
		return "", "", Usagef("%s is no run; name the folder of one, as in %s", path, filepath.Join(path, latestLink))
	}
	return path, file, nil
}

// judgeFile judges a history while it reads it. It keeps the history for pictures. If the history is larger
// than most bytes, it reads it a second time for the events that pictures can show.
func judgeFile(path string, pictures bool, most int64) (*history.History, checker.Results, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = &UsageError{Err: err}
	}
	if err != nil {
		return nil, checker.Results{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, checker.Results{}, err
	}
	large := info.Size() > most
	reader, err := history.NewReader(file)
	if err != nil {
		return nil, checker.Results{}, err
	}
	h := &history.History{Header: reader.Header(), Excerpt: pictures && large}
	names := history.NewNames()
	validator, judge := history.NewValidator(h.Header, names), checker.New(h.Header, names)
	// An application's events are judged all at once. There are far fewer of them than operations of workers.
	whole := h.Header.Application != nil
	h.Excerpt = h.Excerpt && !whole
	if err := reader.Each(func(e *history.Event) error {
		if err := validator.Check(e); err != nil {
			return err
		}
		if !whole {
			judge.Add(e)
		}
		if whole || pictures && !large {
			h.Events = append(h.Events, *e)
		}
		return nil
	}); err != nil {
		return nil, checker.Results{}, err
	}
	h.Truncated = reader.Truncated()
	var results checker.Results
	if whole {
		results = application.Check(h)
	} else {
		results = judge.Results(h.Truncated, checker.Options{NoHolds: !pictures, NearHolds: h.Excerpt})
	}
	present.Render(&results, h.Header)
	if h.Excerpt {
		err = excerpt(file, h, results)
	}
	return h, results, err
}

// RemoveHistory removes the history of a judged run and the logs of its servers. The results stay.
func (j Judgement) RemoveHistory() error {
	return errors.Join(os.RemoveAll(filepath.Join(j.Folder, HistoryFile)), os.RemoveAll(filepath.Join(j.Folder, logFolder)))
}

// WriteReports writes all reports of a judged run into its folder, if it has one.
func (j Judgement) WriteReports() error {
	if j.Folder == "" {
		return nil
	}
	h, r := j.History, j.Results
	errs := []error{
		j.writeResults(),
		WriteFile(j.Folder, junitFile, func(w io.Writer) error { return reports.JUnit(w, h.Header, r) }),
		WriteFile(j.Folder, ReportFile, func(w io.Writer) error { return reports.HTML(w, h, r) }),
	}
	if worthAPicture(r) && len(h.Events) > 0 && !h.Excerpt {
		errs = append(errs, WriteFile(j.Folder, PorcupineFile, func(w io.Writer) error {
			return checker.Visualize(h, w, checker.DefaultPorcupineLimit)
		}))
	} else { // porcupine may have given up when the run was judged before
		if err := os.Remove(filepath.Join(j.Folder, PorcupineFile)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writeResults writes the results, for programs.
func (j Judgement) writeResults() error {
	return WriteFile(j.Folder, ResultsFile, func(w io.Writer) error { return reports.JSON(w, j.History.Header, j.Results) })
}

// worthAPicture says whether porcupine found something or gave up.
func worthAPicture(r checker.Results) bool {
	v := r.Finding(checker.Linearizability).Verdict
	return v == checker.Violation || v == checker.Undecided
}

// exists says whether a path exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
