package web

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/reports"
)

// shelf is a store that a test fills.
type shelf struct {
	t      *testing.T
	folder string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{t, filepath.Join(t.TempDir(), "store")}
}

// file writes a file of the store.
func (s *shelf) file(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// link makes a symbolic link in the store.
func (s *shelf) link(name, target string) {
	s.t.Helper()
	if err := os.Symlink(target, filepath.Join(s.folder, name)); err != nil {
		s.t.Fatal(err)
	}
}

// run writes all files of a judged run.
func (s *shelf) run(folder string, d reports.Document) {
	s.t.Helper()
	var results bytes.Buffer
	if err := reports.JSON(&results, d.Header, d.Results); err != nil {
		s.t.Fatal(err)
	}
	s.file(folder+"/results.json", results.String())
	s.file(folder+"/test.json", "{}\n")
	s.file(folder+"/history.jsonl", "history of "+folder+"\n")
	s.file(folder+"/report.html", "<p>report of "+folder+"</p>")
	s.file(folder+"/logs/n1.log", "log of "+folder+"\n")
}

// document is the results of a run with some lost updates of a hundred.
func document(lock, started string, lost int64, faults ...string) reports.Document {
	d := reports.Document{
		Header: history.Header{
			Lock: lock, Workload: "set", Guard: "none", Started: started, Faults: faults, Workers: []string{"w1", "w2"}, Version: "test",
			Parameters: map[string]string{"section": "20ms"},
		},
		Results: checker.Results{
			Schema: checker.Schema, Verdict: checker.Valid, Sentence: "no violation: 100 updates of " + lock,
			Operations: checker.Operations{Acquired: 100, Released: 100, Acknowledged: 100},
			Updates:    checker.UpdateSummary{Acknowledged: 100, Lost: lost, LossEvents: lost},
			Findings: []checker.Finding{
				{Property: checker.NoLostUpdate, Verdict: checker.Valid, Required: true, Summary: "none lost"},
				{Property: checker.NoStaleWrite, Verdict: checker.Valid, Required: true, Summary: "none stale"},
			},
		},
	}
	if lost > 0 {
		d.Results.Verdict, d.Results.Sentence = checker.Violation, "updates of "+lock+" are gone"
		d.Results.Findings[0].Verdict, d.Results.Findings[0].Summary = checker.Violation, "some lost"
	}
	return d
}

// site is a served store.
type site struct {
	t   *testing.T
	url string
}

func (s *shelf) serve() *site {
	s.t.Helper()
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		s.t.Fatal(err)
	}
	store, err := Open(s.folder)
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(store.Handler())
	s.t.Cleanup(func() {
		server.Close()
		if err := store.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return &site{s.t, server.URL}
}

// get requests a page and follows no redirect.
func (s *site) get(path string) (*http.Response, string) {
	s.t.Helper()
	return s.do(http.MethodGet, path)
}

func (s *site) do(method, path string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(body)
}

// page requests a page that must exist.
func (s *site) page(path string) string {
	s.t.Helper()
	response, body := s.get(path)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s\n%s", path, response.Status, body)
	}
	return body
}

var (
	boxes  = regexp.MustCompile(`<input type="checkbox" name="run" value="([^"]*)"[^>]*?( checked)?( disabled)?>`)
	counts = regexp.MustCompile(`role="status">([^<]*)<`)
)

// listed returns the folders of the runs in a list and the count above them. A folder has the prefix + if it is
// checked, and - if it cannot be.
func listed(page string) (folders []string, count string) {
	for _, m := range boxes.FindAllStringSubmatch(page, -1) {
		folder := m[1]
		if m[2] != "" {
			folder += "+"
		}
		if m[3] != "" {
			folder += "-"
		}
		folders = append(folders, folder)
	}
	if m := counts.FindStringSubmatch(page); m != nil {
		count = m[1]
	}
	return folders, count
}

// contains fails the test unless a page has all the texts.
func (s *site) contains(page string, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			s.t.Errorf("%q is not in\n%s", text, page)
		}
	}
}
