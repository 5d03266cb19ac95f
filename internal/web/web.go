// Package web shows a store of runs as web pages: a list with filters, two runs side by side, the files of a
// run, and the run as an archive. lockcheck makes the pages; they work without scripts and change nothing.
//
// The author of a store is not trusted. Nothing outside the store is opened, not even through a link. The two
// pages of a run that have scripts get an origin of their own, which can read no other page and load nothing.
// Such a script can still send out what its own page contains, because nothing keeps it from navigating the
// browser to another address.
//
// Only requests that name this machine are answered, so that no web site can read the pages by DNS rebinding.
// Programs of any user on this machine can read them.
package web

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"lockcheck/internal/runs"
)

// Store is a folder of runs. It is safe for concurrent use.
type Store struct {
	root *os.Root
	// patience is how long the list waits for runs to be read. With thousands of unread runs it shows some at
	// once, and the others when it is requested again.
	patience time.Duration

	mu sync.Mutex
	// known and compares cache the runs and comparisons of the last call of look, by folder.
	known    map[string]known
	compares map[string]knownComparison
}

// Open opens a store, a folder with runs in subfolders.
func Open(folder string) (*Store, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("the store cannot be opened: %w", err)
	}
	s := &Store{root: root, patience: time.Second}
	if s.holdsRun(".") {
		return nil, errors.Join(fmt.Errorf("%s is a single run; name the folder of stored runs that contains it", folder), root.Close())
	}
	return s, nil
}

// Close closes the folder.
func (s *Store) Close() error { return s.root.Close() }

// Handler serves all pages of the store. It must run in an http.Server, which tells it its port.
func (s *Store) Handler() http.Handler {
	h := &handler{store: s}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.list)
	mux.HandleFunc("GET /compare", h.compare)
	mux.HandleFunc("GET /trend", h.trend)
	mux.HandleFunc("GET /files/{path...}", h.files)
	mux.HandleFunc("GET /download/{path...}", h.download)
	mux.HandleFunc("GET /style.css", style)
	return guarded(mux)
}

// runFiles are the files that identify a run's folder. At least one of them exists from the beginning of a run.
func runFiles() []string {
	return []string{runs.HistoryFile, runs.ResultsFile, runs.TestFile}
}
