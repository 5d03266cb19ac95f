//go:build !embedded

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// consulWire reads along what the servers answer to the library about one attempt, and
// the library tells nobody: which session it made, the index at which that got the lock,
// and whether it still had it when it was released. It makes no request of its own.
type consulWire struct {
	transport http.RoundTripper
	ctx       context.Context
	end       context.CancelFunc // of all requests
	session   atomic.Value       // its name
	grants    string             // the parameter of the request that the lock is granted by
	asked     atomic.Bool        // for the lock
	held      atomic.Bool        // when it was released
	token     atomic.Uint64      // the first that is read; 0 before
	first     chan struct{}      // closed then
}

func newConsulWire(ctx context.Context, transport http.RoundTripper, grants string) *consulWire {
	w := &consulWire{transport: transport, grants: grants, first: make(chan struct{})}
	w.session.Store("")
	w.ctx, w.end = context.WithCancel(ctx)
	return w
}

func (w *consulWire) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Has(w.grants) {
		w.asked.Store(true)
	}
	answer, err := w.transport.RoundTrip(r.WithContext(w.ctx))
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	switch {
	case r.URL.Path == "/v1/session/create":
		return read(answer, w, func(w *consulWire, made struct{ ID string }) { w.session.Store(made.ID) })
	case query.Has("release"), query.Has("cas"):
		return read(answer, &w.held, (*atomic.Bool).Store)
	// Of all that the library reads only its watch on a lock that it has is consistent.
	case query.Has("consistent"):
		return read(answer, w, (*consulWire).observe)
	// The library's last request for an attempt.
	case strings.HasPrefix(r.URL.Path, "/v1/session/destroy/"):
		return read(answer, w, func(w *consulWire, _ bool) { w.end() })
	}
	return answer, nil
}

type consulPair struct {
	Session   string
	LockIndex uint64
}

func (w *consulWire) observe(pairs []consulPair) {
	if len(pairs) != 1 || pairs[0].Session != w.session.Load() {
		return
	}
	if w.token.CompareAndSwap(0, pairs[0].LockIndex) {
		close(w.first)
	}
}

// read takes note of the body of an answer, and leaves it to the reader after it.
func read[To, T any](answer *http.Response, to To, note func(To, T)) (*http.Response, error) {
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	var value T
	if json.Unmarshal(body, &value) == nil {
		note(to, value)
	}
	return answer, nil
}
