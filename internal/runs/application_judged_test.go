package runs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockcheck/checker"
)

// TestJudgeApplication: the history of an application is judged by its own properties, from its folder with all reports and
// from its file.
func TestJudgeApplication(t *testing.T) {
	folder := t.TempDir()
	lines := `{"format":"lockcheck-history","schema":2,"lock":"billing","workload":"application","application":{"replicas":["b1","b2"],"invariants":[{"name":"billed","kind":"once","question":"?"}],"says":{"did":["did (?P<id>.+)"]}}}
{"index":0,"time":1000,"process":"harness","type":"info","f":"phase","note":"ready"}
{"index":1,"time":1010,"process":"b1","type":"info","f":"started","from":1005}
{"index":2,"time":1020,"process":"b2","type":"info","f":"started","from":1005}
{"index":3,"time":1030,"process":"b1","type":"info","f":"did","id":"job-1","from":1025}
{"index":4,"time":1040,"process":"harness","type":"info","f":"phase","note":"final"}
{"index":5,"time":1060,"process":"invariants","type":"ok","f":"asked","key":"billed","from":1050,"answer":{"count":0}}
{"index":6,"time":1070,"process":"harness","type":"info","f":"phase","note":"end"}
`
	path := filepath.Join(folder, HistoryFile)
	for _, c := range []struct {
		lines string
		want  checker.Verdict
		says  string
	}{
		{lines, checker.Valid, "1 answer to 1 invariant held"},
		{strings.Replace(lines, `"type":"ok","f":"asked","key":"billed","from":1050,"answer":{"count":0}`, `"type":"fail","f":"asked","key":"billed","from":1050,"answer":{"rows":["job-1"],"count":1}`, 1), checker.Violation, "Invariant billed did not hold"},
	} {
		if err := os.WriteFile(path, []byte(c.lines), 0o644); err != nil {
			t.Fatal(err)
		}
		judgement, err := Judge(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := judgement.WriteReports(); err != nil {
			t.Error(err)
		}
		// One that is too large for pictures of locks is kept all the same.
		h, large, err := judgeFile(path, true, 1)
		if err != nil || h.Excerpt || large.Verdict != c.want {
			t.Errorf("%v: %+v", err, large)
		}
		if r := judgement.Results; r.Verdict != c.want || !strings.Contains(r.Sentence, c.says) || r.Application == nil || len(judgement.History.Events) != 7 {
			t.Errorf("%s: %s", r.Verdict, r.Sentence)
		}
		page, err := os.ReadFile(filepath.Join(folder, ReportFile))
		if err != nil || !strings.Contains(string(page), c.says) {
			t.Errorf("%v: %s", err, page)
		}
		if d, err := ReadResults(folder); err != nil || d.Results.Application == nil || len(d.Header.Application.Replicas) != 2 {
			t.Errorf("%v: %+v", err, d)
		}
	}
	if _, err := Judge(path); err != nil {
		t.Error(err)
	}
}
