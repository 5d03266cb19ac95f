package swarm

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// results serves tasks over HTTP: it hands out inputs and collects results.
type results struct {
	job   Job
	token string
	// news wakes the manager after a change. Sending to it never blocks.
	news chan struct{}
	busy sync.WaitGroup // requests in progress

	mu       sync.Mutex
	came     map[int]string // folder by part
	failures map[int]string
	lines    []string // not yet read by said
}

func newResults(job Job, token string) *results {
	return &results{job: job, token: token, news: make(chan struct{}, 1), came: make(map[int]string), failures: make(map[int]string)}
}

// Paths of requests; each ends with the number of the part.
const (
	inputPath  = "/input/"  // returns an archive of the job's files; the arguments are in a header
	alivePath  = "/alive/"  // asks whether the manager still exists
	resultPath = "/result/" // sends an archive of the part's folder
	failedPath = "/failed/" // sends why there is no result
	// argumentHeader has one argument of lockcheck per value.
	argumentHeader = "Lockcheck-Argument"
)

// Limits of what is read from a task, in bytes.
const (
	longestFailure = 4096
	largestResult  = 8 << 30
)

// server serves tasks, and may be reached by strangers on other machines. A silent connection is closed after
// the given time. A result may take as long as the network needs.
func (r *results) server(silence time.Duration) *http.Server {
	return &http.Server{Handler: r.handler(), ReadHeaderTimeout: silence, IdleTimeout: silence, MaxHeaderBytes: 16 << 10}
}

// handler serves tasks. The body of a request without the token is not read.
func (r *results) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+inputPath+"{part}", r.input)
	mux.HandleFunc("GET "+alivePath+"{part}", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST "+resultPath+"{part}", r.result)
	mux.HandleFunc("POST "+failedPath+"{part}", r.failure)
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.busy.Add(1)
		defer r.busy.Done()
		if subtle.ConstantTimeCompare([]byte(request.Header.Get("Authorization")), []byte(r.token)) != 1 {
			// The server would otherwise wait for the rest of the stranger's body.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // if the deadline cannot be set it just waits longer
			w.Header().Set("Connection", "close")
			http.Error(w, "unknown", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, request)
	})
}

// part returns the part of a request. If there is no such part it answers with an error and returns 0.
func (r *results) part(w http.ResponseWriter, request *http.Request) int {
	n, err := strconv.Atoi(request.PathValue("part"))
	if err != nil || n < 1 || n > r.job.Parts {
		http.Error(w, fmt.Sprintf("there is no part %q", request.PathValue("part")), http.StatusBadRequest)
		return 0
	}
	return n
}

func (r *results) input(w http.ResponseWriter, request *http.Request) {
	part := r.part(w, request)
	switch {
	case part == 0:
		return
	case r.has(part): // the answer to its result was lost
		http.Error(w, "this part is there already", http.StatusGone)
		return
	}
	for _, argument := range r.job.Arguments {
		w.Header().Add(argumentHeader, argument)
	}
	_ = pack(w, r.job.Files) // on an error the task notices the incomplete archive
}

func (r *results) result(w http.ResponseWriter, request *http.Request) {
	part := r.part(w, request)
	if part == 0 || r.has(part) { // the first result counts
		return
	}
	folder, err := os.MkdirTemp(r.job.Folder, fmt.Sprintf("part-%d-", part))
	if err == nil {
		err = unpack(http.MaxBytesReader(w, request.Body, largestResult), folder)
	}
	if err != nil {
		_ = os.RemoveAll(folder)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if !r.take(part, folder) {
		_ = os.RemoveAll(folder)
	}
}

func (r *results) take(part int, folder string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.came[part] != "" {
		return false
	}
	r.came[part] = folder
	r.say("part %d came back: %d of %d", part, len(r.came), r.job.Parts)
	return true
}

func (r *results) failure(w http.ResponseWriter, request *http.Request) {
	part := r.part(w, request)
	if part == 0 {
		return
	}
	text, _ := io.ReadAll(io.LimitReader(request.Body, longestFailure)) // as much as arrived
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[part] = string(text)
	r.say("part %d failed: %s", part, text)
}

// say adds a line for the manager and wakes it.
func (r *results) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// said returns the lines added since the last call.
func (r *results) said() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

func (r *results) has(part int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.came[part] != ""
}

// folders are the result folders, in the order of parts.
func (r *results) folders() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range r.job.Parts {
		if folder := r.came[n+1]; folder != "" {
			all = append(all, folder)
		}
	}
	return all
}

func (r *results) failed(part int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures[part] == "" {
		r.failures[part] = why
	}
}

func (r *results) anyFailed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// lastFailure returns the reason of the failed part with the highest number.
func (r *results) lastFailure() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []int
	for part := range r.failures {
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return "they were interrupted"
	}
	return r.failures[slices.Max(parts)]
}
