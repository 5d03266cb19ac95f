package swarm

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/internal/suites"
)

func served(t *testing.T, job Job) (*results, *httptest.Server) {
	t.Helper()
	job.Folder = t.TempDir()
	r := newResults(job, "secret")
	server := httptest.NewServer(r.handler())
	t.Cleanup(server.Close)
	return r, server
}

// workerOf makes a worker for a part that runs a script instead of lockcheck.
func workerOf(t *testing.T, server *httptest.Server, n, of int, script string) worker {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lockcheck")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return worker{
		manager: server.URL, token: "secret", job: "job", shard: suites.Shard{N: n, Of: of}, binary: path,
		client: server.Client(), every: time.Millisecond, patience: 3,
	}
}

// unread fails the test when it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("read what a stranger sent")
	return 0, io.EOF
}

// TestStranger: a request without the token gets nothing, and its body is not read.
func TestStranger(t *testing.T) {
	r := newResults(Job{Parts: 1, Folder: t.TempDir()}, "secret")
	for _, token := range []string{"", "wrong", "secret2"} {
		for _, request := range []*http.Request{
			httptest.NewRequest(http.MethodGet, inputPath+"1", nil), httptest.NewRequest(http.MethodPost, resultPath+"1", unread{t}),
			httptest.NewRequest(http.MethodPost, failedPath+"1", unread{t}),
		} {
			request.Header.Set("Authorization", token)
			answer := httptest.NewRecorder()
			r.handler().ServeHTTP(answer, request)
			if answer.Code != http.StatusForbidden {
				t.Errorf("%s with %q: %d", request.URL, token, answer.Code)
			}
		}
	}
	if r.anyFailed() || len(r.folders()) > 0 {
		t.Error("it counts")
	}
}

// TestPart: a task gets the files and arguments of the job, and its result folder comes back.
func TestPart(t *testing.T) {
	suite := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(suite, []byte("locks: [redis]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, server := served(t, Job{Parts: 3, Arguments: []string{"compare", "--file", "suite.yaml"}, Files: map[string]string{"suite.yaml": suite}})
	w := workerOf(t, server, 2, 3, `mkdir out; cat suite.yaml > out/ledger; echo "$@" >> out/ledger`)
	if err := w.make(t.Context(), filepath.Join(t.TempDir(), "task")); err != nil {
		t.Fatal(err)
	}
	folders := r.folders()
	if len(folders) != 1 || !r.has(2) {
		t.Fatalf("came back: %v", folders)
	}
	got, err := os.ReadFile(filepath.Join(folders[0], "ledger"))
	if want := "locks: [redis]\ncompare --file suite.yaml --shard 2/3 --out out\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	// If the answer to a result was lost, the part is not run again.
	if err := w.make(t.Context(), filepath.Join(t.TempDir(), "task")); !errors.Is(err, errUnwanted) {
		t.Errorf("the same part again: %v", err)
	}
}

// TestTwice: of two results of a part the first counts.
func TestTwice(t *testing.T) {
	r, server := served(t, Job{Parts: 1})
	for _, content := range []string{"first", "second"} {
		path := filepath.Join(t.TempDir(), "ledger")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		var archive bytes.Buffer
		if err := pack(&archive, map[string]string{"ledger": path}); err != nil {
			t.Fatal(err)
		}
		if err := workerOf(t, server, 1, 1, "").send(t.Context(), resultPath, &archive); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(r.folders()[0], "ledger")); err != nil || string(got) != "first" {
		t.Errorf("%q, %v", got, err)
	}
	if all, err := os.ReadDir(r.job.Folder); err != nil || len(all) != 1 {
		t.Errorf("folders %v, %v", all, err)
	}
}

// TestCutOff: an incomplete result is discarded and leaves nothing.
func TestCutOff(t *testing.T) {
	r, server := served(t, Job{Parts: 1})
	var archive bytes.Buffer
	if err := pack(&archive, map[string]string{"a": os.Args[0]}); err != nil {
		t.Fatal(err)
	}
	archive.Truncate(archive.Len() / 2)
	if err := workerOf(t, server, 1, 1, "").send(t.Context(), resultPath, &archive); err == nil {
		t.Error("it is taken")
	}
	if all, err := os.ReadDir(r.job.Folder); err != nil || len(all) != 0 || r.has(1) {
		t.Errorf("folders %v, %v", all, err)
	}
}

// TestPartFails: the manager learns the reason.
func TestPartFails(t *testing.T) {
	r, server := served(t, Job{Parts: 1})
	w := workerOf(t, server, 1, 1, `echo "lockcheck: no image" >&2; exit 3`)
	err := w.make(t.Context(), filepath.Join(t.TempDir(), "task"))
	if err == nil || !strings.Contains(err.Error(), "lockcheck: no image") {
		t.Fatalf("got %v", err)
	}
	if err := w.send(t.Context(), failedPath, strings.NewReader(err.Error())); err != nil {
		t.Fatal(err)
	}
	if said := r.said(); !r.anyFailed() || len(said) != 1 || !strings.Contains(said[0], "no image") {
		t.Errorf("said %v", said)
	}
	w.shard.N = 2
	if err := w.send(t.Context(), resultPath, strings.NewReader("")); err == nil {
		t.Error("a part that there is not is taken")
	}
}

// TestManagerGone: a task ends when its manager is gone.
func TestManagerGone(t *testing.T) {
	_, server := served(t, Job{Parts: 1})
	w := workerOf(t, server, 1, 1, "exec sleep 600")
	server.Close()
	if err := w.run(t.Context(), t.TempDir(), nil); !errors.Is(err, errUnwanted) {
		t.Errorf("got %v", err)
	}
}

// TestGivenUp: a part is given up only if no task works on it, or will.
func TestGivenUp(t *testing.T) {
	long, now := time.Now().Add(-2*giveUp), time.Now()
	for _, c := range []struct {
		name  string
		since time.Time
		tasks []engine.Task
		given bool
	}{
		{"its task lives", long, []engine.Task{{Number: 0, Alive: true}}, false},
		{"its task died now", now, []engine.Task{{Number: 0}}, false},
		{"its task died long ago", long, []engine.Task{{Number: 0}}, true},
		{"its task was made again", long, []engine.Task{{Number: 0}, {Number: 0, Alive: true}}, false},
		{"its turn is to come", long, []engine.Task{{Number: 1, Alive: true}}, false},
		{"no task was ever made", long, nil, true},
		{"its task died, and another lives", long, []engine.Task{{Number: 0}, {Number: 1, Alive: true}}, true},
	} {
		job := Job{Parts: 2, Progress: t.Logf}
		m := &manager{job: job, results: newResults(job, ""), givenUp: make(map[int]bool), told: make(map[int]bool)}
		m.judge(c.tasks, map[int]time.Time{1: c.since, 2: now})
		if m.givenUp[1] != c.given {
			t.Errorf("%s: given up: %v", c.name, m.givenUp[1])
		}
	}
}

// TestUncleaned names the nodes on which cleaning failed.
func TestUncleaned(t *testing.T) {
	m := &manager{name: "job"}
	if err := m.uncleaned([]engine.Task{{Node: "a", Done: true}, {Node: "b"}, {Node: "b", Done: true}}); err != nil {
		t.Error(err)
	}
	err := m.uncleaned([]engine.Task{{Node: "a", Done: true}, {Node: "b"}})
	if err == nil || !strings.Contains(err.Error(), "[b]") || !strings.Contains(err.Error(), "swarm-part --clean job") {
		t.Errorf("got %v", err)
	}
}

// TestWork: outside a task the error says what the command is for.
func TestWork(t *testing.T) {
	err := Work(t.Context(), "", func(string) string { return "" })
	if err == nil || !strings.Contains(err.Error(), "--swarm") {
		t.Errorf("got %v", err)
	}
}

// TestFolderOf: folder names are short enough for sockets.
func TestFolderOf(t *testing.T) {
	folder := folderOf("lockcheck-20261123t2257261a5c00", 128)
	socket := filepath.Join(folder, temporaryFolder, "lockcheck-20261123t2257261a5c00-1234567890", "resource.sock")
	if len(filepath.Join("/tmp", strings.TrimPrefix(socket, os.TempDir()))) > 107 {
		t.Errorf("%s is too long", socket)
	}
}

// TestServerHangsUp: an idle connection is closed, whether of a stranger or of a task. A stranger is answered
// before the whole request has arrived.
func TestServerHangsUp(t *testing.T) {
	r := newResults(Job{Parts: 1}, "token")
	server := r.server(100 * time.Millisecond)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener) //nolint:errcheck // it ends with Close
	t.Cleanup(func() { _ = server.Close() })
	for name, c := range map[string]struct{ request, want string }{
		"nothing said":        {"", ""},
		"half a header":       {"GET /alive/1 HTTP/1.1\r\nHost: x\r\n", ""},
		"a task, then idle":   {"GET /alive/1 HTTP/1.1\r\nHost: x\r\nAuthorization: token\r\n\r\n", "HTTP/1.1 200"},
		"a stranger's result": {"POST /result/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx", "HTTP/1.1 403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(conn, c.request); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(conn) // until its end or the deadline
			if errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(answer), c.want) {
				t.Errorf("answer %q, %v: want %q, and the end of the connection", answer, err, c.want)
			}
		})
	}
}
