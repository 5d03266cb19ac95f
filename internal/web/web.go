// Package web shows a store of runs as web pages: a list with filters, two runs side
// by side, the files of a run, the whole of it as an archive. The pages are made
// here, work without script, and change nothing. Whoever may have written the store
// must not be able to do more with it than be read: nothing is opened that lies outside
// of the store, not even through a link, and the two pages of a run that bring their own
// script get an origin of their own, from which no other page can be read and nothing
// loaded. What such a script has in its own page it can still tell others, for nothing
// keeps it from leading the browser to an address of its choice. Only pages asked for by
// the name of this machine are answered, so that no web site can read them by giving
// itself its address; programs on this machine can, whoever runs them.
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

// Store is a folder of runs. It may be used by several goroutines.
type Store struct {
	root *os.Root
	// patience is how long the list waits for runs to be read: with thousands that were never
	// read before, it shows some of them at once, and the others when it is asked for again.
	patience time.Duration

	mu sync.Mutex
	// known and compares are what was read of the runs and the comparisons at the last
	// look, by folder.
	known    map[string]known
	compares map[string]knownComparison
}

// Open opens a store, a folder with runs in folders of their own.
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

// Close ends the use of the folder.
func (s *Store) Close() error { return s.root.Close() }

// Handler answers for all pages of the store. An http.Server must serve it, for that
// tells it on what port.
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

// runFiles are the files that tell the folder of a run from others: at least one of
// them is there from its beginning.
func runFiles() []string {
	return []string{runs.HistoryFile, runs.ResultsFile, runs.TestFile}
}
