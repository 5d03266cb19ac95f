//go:build !embedded

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// consulWire reads the servers' answers to the library for one attempt, and keeps what the library does not
// return. That is the session, the lock index at which the session got the lock, and whether it still held the
// lock at the release. It sends no requests of its own.
type consulWire struct {
	transport http.RoundTripper
	renewing  func(opens bool) (answered func(error))
	ctx       context.Context
	end       context.CancelFunc // cancels all requests
	session   atomic.Value       // its ID; "" before the session is created
	grants    string             // the query parameter of the request that acquires the lock
	asked     atomic.Bool        // the acquiring request was sent
	held      atomic.Bool        // the lock was held until its release
	token     atomic.Uint64      // the first lock index that was read; 0 before
	tokenRead chan struct{}      // closed when token is set
}

func newConsulWire(ctx context.Context, transport http.RoundTripper, grants string, renewing func(bool) func(error)) *consulWire {
	w := &consulWire{transport: transport, grants: grants, renewing: renewing, tokenRead: make(chan struct{})}
	w.session.Store("")
	w.ctx, w.end = context.WithCancel(ctx)
	return w
}

func (w *consulWire) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Has(w.grants) {
		w.asked.Store(true)
	}
	answer, err := w.send(r.WithContext(w.ctx))
	if err != nil || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	switch {
	case r.URL.Path == consulSessionCreate:
		return read(answer, w, func(w *consulWire, made struct{ ID string }) { w.session.Store(made.ID) })
	case query.Has("release"), query.Has("cas"):
		return read(answer, &w.held, (*atomic.Bool).Store)
	// Of all the library's reads, only its watch on a held lock is consistent.
	case query.Has("consistent"):
		return read(answer, w, (*consulWire).noteToken)
	// The library's last request for an attempt.
	case strings.HasPrefix(r.URL.Path, "/v1/session/destroy/"):
		return read(answer, w, func(w *consulWire, _ bool) { w.end() })
	}
	return answer, nil
}

// send sends a request, and reports it if it opens or renews the session.
func (w *consulWire) send(r *http.Request) (*http.Response, error) {
	opens := r.URL.Path == consulSessionCreate
	if !opens && !strings.HasPrefix(r.URL.Path, "/v1/session/renew/") {
		return w.transport.RoundTrip(r)
	}
	answered := w.renewing(opens)
	answer, err := w.transport.RoundTrip(r)
	switch {
	case err != nil:
		answered(err)
	case answer.StatusCode == http.StatusNotFound: // the session is gone
		answered(ErrNotHeld)
	case answer.StatusCode != http.StatusOK:
		answered(errors.New(answer.Status))
	default:
		answered(nil)
	}
	return answer, err
}

const consulSessionCreate = "/v1/session/create"

type consulPair struct {
	Session   string
	LockIndex uint64
}

func (w *consulWire) noteToken(pairs []consulPair) {
	if len(pairs) != 1 || pairs[0].Session != w.session.Load() {
		return
	}
	if w.token.CompareAndSwap(0, pairs[0].LockIndex) {
		close(w.tokenRead)
	}
}

// read passes the decoded body of an answer to note, and leaves the body readable for the library.
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
