package checker

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lockcheck/history"
	"lockcheck/history/jepsen"
)

var update = flag.Bool("update", false, "accept what the histories of the corpus are judged to be now")

// corpusFolder has one folder for each entry; its README describes them.
var corpusFolder = filepath.Join("testdata", "corpus")

// Files of an entry, and the summary of the corpus.
const (
	recordFile  = "history.jsonl.gz"
	foreignFile = "history.edn.gz"
	optionsFile = "import.json" // options of an import, if they are not the default
	judgedFile  = "results.json"
	tableFile   = "summary.tsv"
)

// judgedEntry is one history of the corpus and its current judgement.
type judgedEntry struct {
	name    string
	header  history.Header
	events  []history.Event
	cutOff  bool
	results Results
}

func (e judgedEntry) file(name string) string { return filepath.Join(corpusFolder, e.name, name) }

// TestCorpus judges recorded histories as "lockcheck analyze" does, and compares all results with the stored
// ones.
func TestCorpus(t *testing.T) {
	entries := judgedCorpus(t)
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			noBug(t, e.results)
			compareFile(t, e.file(judgedFile), factsOf(t, e.results), func(was, is []byte) []string {
				return jsonDifferences("", fromJSON(t, was), fromJSON(t, is))
			})
		})
	}
	t.Run("stale files", func(t *testing.T) {
		for _, path := range staleFiles(t, corpusFolder) {
			if !*update || filepath.Base(path) != judgedFile {
				t.Errorf("%s: there is no history to it; %s", path, howToUpdate)
			} else if err := errors.Join(os.Remove(path), removeIfEmpty(filepath.Dir(path))); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("summary", func(t *testing.T) {
		compareFile(t, filepath.Join(corpusFolder, tableFile), []byte(summaryOf(entries)), differingLines)
	})
}

// staleFiles lists the files in folders of a corpus that have no history.
func staleFiles(t *testing.T, corpus string) (stale []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		histories, err := filepath.Glob(filepath.Join(filepath.Dir(file), "history.*.gz"))
		if err != nil {
			t.Fatal(err)
		}
		if len(histories) == 0 {
			stale = append(stale, file)
		}
	}
	return stale
}

func removeIfEmpty(folder string) error {
	if err := os.Remove(folder); err != nil && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return nil
}

// TestStaleFiles checks that the leftovers of a removed entry are found.
func TestStaleFiles(t *testing.T) {
	corpus := t.TempDir()
	for _, path := range []string{"README.md", tableFile, "kept/" + recordFile, "kept/" + judgedFile, "gone/" + judgedFile, "gone/" + optionsFile} {
		path = filepath.Join(corpus, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(corpus, "gone", optionsFile), filepath.Join(corpus, "gone", judgedFile)}
	if got := staleFiles(t, corpus); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// compareFile compares a file with its expected content, or writes that content with the flag -update.
func compareFile(t *testing.T, file string, is []byte, compare func(was, is []byte) []string) {
	t.Helper()
	was, err := os.ReadFile(file)
	if err != nil && !(*update && errors.Is(err, fs.ErrNotExist)) {
		t.Fatalf("%v; %s", err, howToUpdate)
	}
	switch {
	case bytes.Equal(was, is):
		return
	case *update:
		if err := os.WriteFile(file, is, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	const most = 12
	found := compare(was, is)
	if more := len(found) - most; more > 0 {
		t.Errorf("%s\nand %d more; %s", strings.Join(found[:most], "\n"), more, howToUpdate)
	} else if len(found) > 0 {
		t.Errorf("%s\n%s", strings.Join(found, "\n"), howToUpdate)
	}
}

const howToUpdate = "if it is meant to be so: go test ./checker -run Corpus -update"

// judgedCorpus judges all entries once, in the order of their names.
func judgedCorpus(t *testing.T) []judgedEntry {
	t.Helper()
	entries, err := judgeCorpus()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

var judgeCorpus = sync.OnceValues(func() ([]judgedEntry, error) {
	files, err := filepath.Glob(filepath.Join(corpusFolder, "*", "history.*.gz"))
	if err != nil {
		return nil, err
	}
	var entries []judgedEntry
	for _, file := range files {
		e := judgedEntry{name: filepath.Base(filepath.Dir(file))}
		judge := e.judgeRecord
		if filepath.Base(file) == foreignFile {
			judge = e.judgeForeign
		}
		if err := judge(file); err != nil {
			return nil, errors.Join(errors.New(file), err)
		}
		entries = append(entries, e)
	}
	return entries, nil
})

// stepsOnly removes the only limit of porcupine that depends on the speed of the machine. The remaining
// limits count steps.
var stepsOnly = Options{PorcupineLimit: time.Hour}

func (e *judgedEntry) judgeRecord(path string) error {
	text, err := gunzipped(path)
	if err != nil {
		return err
	}
	reader, err := history.NewReader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	e.header = reader.Header()
	names := history.NewNames()
	validator, judge := history.NewValidator(e.header, names), New(e.header, names)
	if err := reader.Each(func(event *history.Event) error {
		if err := validator.Check(event); err != nil {
			return err
		}
		judge.Add(event)
		e.events = append(e.events, *event)
		return nil
	}); err != nil {
		return err
	}
	e.cutOff = reader.Truncated() != 0
	e.results = judge.Results(reader.Truncated(), stepsOnly)
	return nil
}

func (e *judgedEntry) judgeForeign(path string) error {
	text, err := gunzipped(path)
	if err != nil {
		return err
	}
	o := jepsen.Options{Permits: 1, Reentrant: 1}
	options, err := os.ReadFile(e.file(optionsFile))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(options))
		d.DisallowUnknownFields()
		err = d.Decode(&o)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	h, err := jepsen.Read(bytes.NewReader(text), o)
	if err == nil {
		err = history.Validate(h)
	}
	if err != nil {
		return err
	}
	e.header, e.events, e.results = h.Header, h.Events, Check(h, stepsOnly)
	return nil
}

func gunzipped(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(compressed)
	return text.Bytes(), err
}

// asJSON is the results in the form of results.json of a run.
func asJSON(t *testing.T, r Results) []byte {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// factsOf is the expected judgement of a history of the corpus, as a JSON list with one element per line: the
// results as a whole, then each finding, followed by its violations. Only the first few violations of a
// finding have figures and explanations.
func factsOf(t *testing.T, r Results) []byte {
	t.Helper()
	const explained = 5
	findings := r.Findings
	r.Findings = nil
	all := []any{r}
	for _, f := range findings {
		violations := f.Violations
		f.Violations = nil
		all = append(all, f)
		for i, v := range violations {
			if i >= explained {
				v.Figures, v.Explanation, v.LastHold = IncidentFigures{}, nil, nil
			}
			all = append(all, v)
		}
	}
	var lines []string
	for _, element := range all {
		text, err := json.Marshal(element)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	return []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n")
}

func fromJSON(t *testing.T, text []byte) (value any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}
