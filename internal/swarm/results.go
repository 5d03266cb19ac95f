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

// results are what tasks ask for and bring, over HTTP.
type results struct {
	job   Job
	token string
	// news wakes who waits for any; it never blocks who brings it.
	news chan struct{}
	busy sync.WaitGroup // requests

	mu       sync.Mutex
	came     map[int]string // folders by part
	failures map[int]string
	lines    []string // that nobody has read yet
}

func newResults(job Job, token string) *results {
	return &results{job: job, token: token, news: make(chan struct{}, 1), came: make(map[int]string), failures: make(map[int]string)}
}

// What the manager is asked for, and given: each path ends with the number of the part.
const (
	inputPath  = "/input/"  // an archive of the files of the job; its arguments are in a header
	alivePath  = "/alive/"  // whether the manager still wants the part
	resultPath = "/result/" // an archive of its folder
	failedPath = "/failed/" // why there is no result
	// argumentHeader has the arguments of lockcheck, one each.
	argumentHeader = "Lockcheck-Argument"
)

// Bounds of what is read of a task, in bytes.
const (
	longestFailure = 4096
	largestResult  = 8 << 30
)

// server serves tasks, which are on other machines, as strangers are. Who says nothing for so long is
// hung up on. A result may take as long as its network does.
func (r *results) server(silence time.Duration) *http.Server {
	return &http.Server{Handler: r.handler(), ReadHeaderTimeout: silence, IdleTimeout: silence, MaxHeaderBytes: 16 << 10}
}

// handler serves tasks. What a stranger sends is not even read.
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
			// The server would wait for the rest of what the stranger sends.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // without one it waits longer
			w.Header().Set("Connection", "close")
			http.Error(w, "unknown", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, request)
	})
}

// part is that of a request; 0, and an answer that says so, if there is none such.
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
	case r.has(part): // its answer was lost
		http.Error(w, "this part is there already", http.StatusGone)
		return
	}
	for _, argument := range r.job.Arguments {
		w.Header().Add(argumentHeader, argument)
	}
	_ = pack(w, r.job.Files) // the task sees that it is cut off
}

func (r *results) result(w http.ResponseWriter, request *http.Request) {
	part := r.part(w, request)
	if part == 0 || r.has(part) { // the first one counts
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
	text, _ := io.ReadAll(io.LimitReader(request.Body, longestFailure)) // as far as it came
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[part] = string(text)
	r.say("part %d failed: %s", part, text)
}

// say puts down a line for who waits.
func (r *results) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// said returns the lines since it was last called.
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

// folders are those of the parts that came back, by their numbers.
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

// lastFailure says why a part failed: that with the highest number.
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
