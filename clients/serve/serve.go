// Package serve makes a lock library in Go a client of lockcheck. Implement Lock, and call Run in main. Run
// speaks the client protocol on standard input and output (docs/protocol.md).
package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"lockcheck/clients/protocol"
	"lockcheck/history"
)

// Lock is the lock under test in one process. Its methods are called concurrently.
type Lock interface {
	// Acquire makes one attempt. A lock that queues waits until ctx is done. The error is ErrBusy if another
	// client holds the lock, or comes from NoEffect if the attempt certainly left nothing behind. Any other
	// error means that the outcome is unknown.
	Acquire(ctx context.Context, a Attempt) (Grant, error)
	// Release releases the lock. The error is ErrNotHeld if, according to the service, the lock was no longer
	// held, or is one like those of Acquire.
	Release(ctx context.Context, g Grant) error
}

// Renewer is a Lock whose holder extends the lease by calls (renew: true in the lock file).
type Renewer interface {
	// Renew extends the lease to TTL from now. It returns the grant with its new Until, and with the Held and
	// Token for later calls.
	Renew(ctx context.Context, g Grant) (Grant, error)
}

// Attempt is a request for a lock.
type Attempt struct {
	Key string        // name of the lock
	ID  string        // unique in a run; store it as the holder if the service can
	TTL time.Duration // the lease to request; 0 for a lock without leases
	// Shared requests the lock in shared mode, as a reader (shared: true in the lock file).
	Shared bool
}

// Grant is the result of a successful attempt.
type Grant struct {
	Attempt // filled in by Run
	// Held is any value that Release and Renew need.
	Held any
	// Token is the fencing token; 0 for none.
	Token uint64
	// Until is when the client stops vouching for the lock. With the zero value lockcheck computes it: a lease
	// ends TTL after the request.
	Until time.Time
	// Lost is closed when the client learns by itself that the lock is lost; nil if it never does.
	Lost <-chan struct{}
}

// Setup is what lockcheck tells a client at the start.
type Setup struct {
	Worker  string // "w1"…
	Servers []Server
	Folder  string // shared by all workers
	TTL     time.Duration
	Timeout time.Duration // the longest time that one call to the service should take
}

// Server is a server that the client should use.
type Server protocol.Server

// Address returns host:port, or the path of an embedded server's socket.
func (s Server) Address() string {
	if s.Socket != "" {
		return s.Socket
	}
	return net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
}

// Open opens the lock. name is the library's name with its version, and is shown in reports.
type Open func(Setup) (lock Lock, name string, err error)

// Outcomes that are not failures.
var (
	ErrBusy    = errors.New("busy")
	ErrNotHeld = errors.New("not held")
)

// noEffectError is the type of NoEffect's errors.
type noEffectError struct{ error }

func (e noEffectError) Unwrap() error { return e.error }

// NoEffect marks the error of a call that certainly left nothing behind. When in doubt, do not mark the error.
func NoEffect(err error) error { return noEffectError{err} }

// Run serves the lock until standard input ends. Its error says why it stopped earlier.
func Run(open Open) error { return run(open, os.Stdin, os.Stdout) }

// request has the fields of all operations.
type request struct {
	ID        int64       `json:"id"`
	Op        protocol.Op `json:"op"`
	Worker    string      `json:"worker"`
	Servers   []Server    `json:"servers"`
	Folder    string      `json:"folder"`
	TimeoutMS int64       `json:"timeout_ms"`
	Key       string      `json:"key"`
	Attempt   string      `json:"attempt"`
	TTLMS     int64       `json:"ttl_ms"`
	WaitMS    int64       `json:"wait_ms"`
	Shared    bool        `json:"shared"`
	MS        int64       `json:"ms"`
	Of        int64       `json:"of"`
}

// fields has the fields of an answer.
type fields map[string]any

// server is a running client.
type server struct {
	open    Open
	lock    Lock
	timeout time.Duration

	mu      sync.Mutex
	output  *json.Encoder
	failed  error                        // the first error of the output
	held    map[string]*hold             // by attempt
	cancels map[int64]context.CancelFunc // of acquires in progress, by ID
}

// hold is a grant that was not released.
type hold struct {
	grant    Grant
	released chan struct{}
}

func run(open Open, input io.Reader, output io.Writer) error {
	s := &server{open: open, output: json.NewEncoder(output), held: make(map[string]*hold), cancels: make(map[int64]context.CancelFunc)}
	lines := bufio.NewReader(input)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s.err()
		} else if err != nil {
			return err
		}
		var q request
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("request %q: %w", line, err)
		}
		s.serve(q)
	}
}

// serve starts an operation. Hello is finished before the next request is read.
func (s *server) serve(q request) {
	switch q.Op {
	case protocol.Hello:
		s.say(q, s.hello(q))
	case protocol.Cancel:
		s.cancel(q.Of)
	case protocol.Acquire:
		ctx, cancel := context.WithTimeout(context.Background(), max(s.timeout, ms(q.WaitMS)))
		s.mu.Lock()
		s.cancels[q.ID] = cancel
		s.mu.Unlock()
		go func() {
			answer := s.acquire(ctx, q)
			s.cancel(q.ID)
			s.say(q, answer)
		}()
	default:
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
			defer cancel()
			s.say(q, s.call(ctx, q))
		}()
	}
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func (s *server) hello(q request) fields {
	s.timeout = ms(q.TimeoutMS)
	lock, name, err := s.open(Setup{Worker: q.Worker, Servers: q.Servers, Folder: q.Folder, TTL: ms(q.TTLMS), Timeout: s.timeout})
	if err != nil {
		return failure(err)
	}
	s.lock = lock
	return fields{"ok": fields{"protocol": protocol.Version, "client": name, "now": history.Now()}}
}

// cancel cancels an acquire that is still in progress.
func (s *server) cancel(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel, open := s.cancels[id]; open {
		delete(s.cancels, id)
		cancel()
	}
}

func (s *server) acquire(ctx context.Context, q request) fields {
	attempt := Attempt{Key: q.Key, ID: q.Attempt, TTL: ms(q.TTLMS), Shared: q.Shared}
	grant, err := s.lock.Acquire(ctx, attempt)
	if err != nil {
		return failure(err)
	}
	grant.Attempt = attempt
	h := &hold{grant: grant, released: make(chan struct{})}
	s.mu.Lock()
	s.held[attempt.ID] = h
	s.mu.Unlock()
	if grant.Lost != nil {
		go s.notify(h)
	}
	return granted(grant)
}

// granted returns the answer for a grant.
func granted(g Grant) fields {
	ok := fields{}
	if g.Token != 0 {
		ok["token"] = g.Token
	}
	if !g.Until.IsZero() {
		now := history.Now() // read before the other clock: the time between the two reads shortens the validity
		ok["until"] = now + time.Until(g.Until).Nanoseconds()
	}
	return fields{"ok": ok}
}

// notify reports the loss of a lock, unless the lock is released first.
func (s *server) notify(h *hold) {
	select {
	case <-h.grant.Lost:
		s.write(fields{"event": protocol.Lost, "attempt": h.grant.ID})
	case <-h.released:
	}
}

// errNotHere is about an attempt that led to no grant. Whether the service has granted it is unknown.
var errNotHere = errors.New("this client does not have it")

func (s *server) call(ctx context.Context, q request) fields {
	if q.Op == protocol.Work {
		time.Sleep(ms(q.MS))
		return fields{"ok": fields{}}
	}
	s.mu.Lock()
	h := s.held[q.Attempt]
	if q.Op == protocol.Release {
		delete(s.held, q.Attempt)
	}
	var grant Grant
	if h != nil {
		grant = h.grant // a copy, because a concurrent renewal may replace it
	}
	s.mu.Unlock()
	renewer, renews := s.lock.(Renewer)
	switch {
	case q.Op != protocol.Release && (q.Op != protocol.Renew || !renews):
		return failure(NoEffect(fmt.Errorf("%s is not supported", q.Op)))
	case h == nil:
		return failure(errNotHere)
	case q.Op == protocol.Release:
		close(h.released)
		if err := s.lock.Release(ctx, grant); err != nil {
			return failure(err)
		}
		return fields{"ok": fields{}}
	default:
		grant.TTL = ms(q.TTLMS)
		grant, err := renewer.Renew(ctx, grant)
		if err != nil {
			return failure(err)
		}
		s.mu.Lock()
		h.grant.Held, h.grant.Token = grant.Held, grant.Token
		s.mu.Unlock()
		return granted(grant)
	}
}

func failure(err error) fields {
	switch {
	case errors.Is(err, ErrBusy):
		return fields{"busy": fields{}}
	case errors.Is(err, ErrNotHeld):
		return fields{"not_held": fields{}}
	case errors.As(err, new(noEffectError)):
		return fields{"error": fields{"effect": protocol.NoEffect, "text": err.Error()}}
	default:
		return fields{"error": fields{"text": err.Error()}}
	}
}

func (s *server) say(q request, answer fields) {
	answer["id"] = q.ID
	s.write(answer)
}

func (s *server) write(line fields) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = s.output.Encode(line)
	}
}

func (s *server) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
