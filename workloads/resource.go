package workloads

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"lockcheck/clients/unixrpc"
	"lockcheck/history"
)

// ResourceConfig says how the resource behaves.
type ResourceConfig struct {
	Socket string `json:"socket"` // Unix socket on which it answers
	Guard  Guard  `json:"guard"`
	// Rotate is the number of updates after which it names a new key to the workers:
	// short histories of many keys are checked faster than a long one of one key.
	Rotate int `json:"rotate"`
	// Patience is how much longer it names a key at most while somebody is still at work on it who was
	// named it before that: who was stopped with the lock is to meet others when its lease ends, and
	// when it wakes up.
	Patience time.Duration `json:"patience,omitempty"`
	// CountReads rotates by reads instead, for a workload that never writes.
	CountReads bool `json:"count_reads"`
	// Prefix begins the names of its keys, which others have used the servers for before.
	Prefix string `json:"prefix,omitempty"`
	// Service is whom the guard Ask asks, or who keeps the data for the guard Database;
	// nil for the other guards.
	Service *ServiceConfig `json:"service,omitempty"`
}

// Access is a read or write as a worker asks for it.
type Access struct {
	Write   bool            `json:"write,omitempty"`
	Key     string          `json:"key"`
	Client  string          `json:"client"`
	Op      int64           `json:"op"`
	Grant   string          `json:"grant"`
	Token   uint64          `json:"token,omitempty"`
	Base    int64           `json:"base,omitempty"`
	Element int64           `json:"element,omitempty"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// Answer of the resource to an Access.
type Answer struct {
	Refused string          `json:"refused,omitempty"` // name of the guard that refused it
	Version int64           `json:"version"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// KeyRequest asks for a key to work on, by who is done with the one before.
type KeyRequest struct {
	Client string `json:"client"`
}

// KeyAnswer names the key to work on.
type KeyAnswer struct {
	Key string `json:"key"`
}

// keyState is what the resource knows of one key.
type keyState struct {
	value   json.RawMessage
	version int64
	highest uint64         // token
	reader  string         // the grant that read it last
	done    map[int64]bool // the elements that were written
}

// resource is the store that the lock protects. One mutex makes the order of
// accesses, their numbers and their record the same thing.
type resource struct {
	config ResourceConfig
	record *Emitter
	// service is nil where the guard asks nobody, and database where the resource itself
	// keeps the data.
	service  *lockService
	database *database

	deferrals *deferrals
	// complained: what the client of the service did wrong is recorded.
	complained sync.Once

	// turn is held from before the question to the lock service until the access is
	// done: with another access in between, the answer would be older than that one.
	turn sync.Mutex

	mu      sync.Mutex
	keys    map[string]*keyState
	order   []string // of first use
	seq     int64
	current int             // ordinal of the key that workers are told
	counted int             // accesses that count towards its rotation
	due     time.Time       // since when another key is to follow; zero if it is not
	working map[string]bool // the clients that were named the key before that, and not done since
}

// RunResource serves the resource until the input ends, then reports the final
// state of every key. A client of the user's own, which it asks, begins when the input says
// CommandOpen: its servers are ready then.
func RunResource(ctx context.Context, config ResourceConfig, input io.Reader, output io.Writer) error {
	r := &resource{
		config: config, record: NewEmitter(history.Resource, output),
		deferrals: newDeferrals(), keys: make(map[string]*keyState), working: make(map[string]bool),
	}
	orders := bufio.NewReader(input)
	if config.Service.ofUser() {
		if _, err := orders.ReadString('\n'); err != nil {
			return nil // the run has ended before
		}
	}
	obeyed, stop := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(stop)
		obeyed <- r.deferrals.obey(orders)
	}()
	switch err := r.connect(stop); {
	case err != nil && config.Service.ofUser():
		return clientFailed(r.record, err, stop)
	case err != nil:
		return fmt.Errorf("resource: %w", err)
	}
	defer r.service.Close()
	defer r.database.Close()
	return r.run(ctx, obeyed)
}

// connect opens what the guard needs.
func (r *resource) connect(stop <-chan struct{}) (err error) {
	if r.service, err = openService(r.config, stop); err != nil {
		return err
	}
	if r.service != nil && r.config.Service.ofUser() {
		introduce(r.record, *r.config.Service.Definition, r.service.lock)
	}
	if r.database, err = openDatabase(r.config, stop); err != nil {
		return errors.Join(err, r.service.Close())
	}
	return nil
}

// run serves until the end of the input or of the server, whichever is first.
func (r *resource) run(ctx context.Context, obeyed <-chan error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- r.serve(ctx) }()
	var err error
	select {
	case err = <-served:
	case err = <-obeyed:
	}
	if err != nil {
		return fmt.Errorf("resource: %w", err)
	}
	if err := r.service.complaint(); err != nil {
		r.complain(err)
	}
	if r.database != nil {
		return r.database.report(ctx, r.record, r.named())
	}
	return r.reportFinal()
}

func (r *resource) serve(ctx context.Context) error {
	if r.database != nil {
		if err := r.database.prepare(ctx); err != nil {
			return err
		}
	}
	return unixrpc.Serve(ctx, r.config.Socket, map[string]http.HandlerFunc{
		"key":    unixrpc.Method(r.currentKey),
		"access": unixrpc.Method(func(a Access) Answer { return r.access(ctx, a) }),
	})
}

// complain records, once, what the client of a user's own did wrong.
func (r *resource) complain(err error) {
	r.complained.Do(func() {
		r.emit(history.Event{Type: history.Info, F: history.Client, Error: err.Error()})
	})
}

// currentKey answers who is about to make an attempt. Where the resource does not see the
// accesses it counts attempts in their place.
func (r *resource) currentKey(q KeyRequest) KeyAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.working, q.Client)
	r.rotate()
	if r.due.IsZero() {
		r.working[q.Client] = true
	}
	key := keyName(r.config.Prefix, r.current)
	if r.database != nil {
		r.state(key) // which its database has, and which is reported by its name
		r.count()
	}
	return KeyAnswer{Key: key}
}

func keyName(prefix string, n int) string { return fmt.Sprintf("%sk%d", prefix, n) }

func (r *resource) access(ctx context.Context, a Access) Answer {
	r.arrive(a)
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	r.turn.Lock()
	defer r.turn.Unlock()
	holds, unanswered := r.service.holds(ctx, a)
	if err := r.service.failed(); unanswered != nil && err != nil {
		r.complain(err) // which ends the run
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.state(a.Key)
	r.seq++
	event := history.Event{
		Type: history.OK, F: history.Read, Key: a.Key, Client: a.Client, Op: a.Op,
		Grant: a.Grant, Token: a.Token, Seq: r.seq, Base: a.Base, Element: a.Element,
	}
	if a.Write {
		event.F = history.Write
	}
	answer := Answer{}
	switch {
	case !holds || !r.config.Guard.admit(state, a):
		answer.Refused = string(r.config.Guard)
		event.Type, event.Error = history.Fail, answer.Refused
		if unanswered != nil {
			event.Note = unanswered.Error()
		}
	case a.Write:
		state.value = a.Value
		state.version++
		state.done[a.Element] = true
	default:
		answer.Value = state.value
	}
	answer.Version, event.Version = state.version, state.version
	counts := event.Type == history.OK && a.Write != r.config.CountReads
	if counts && a.Key == keyName(r.config.Prefix, r.current) {
		r.count()
	}
	r.record.Emit(event)
	return answer
}

// state finds or makes the state of a key.
func (r *resource) state(key string) *keyState {
	state, known := r.keys[key]
	if !known {
		state = &keyState{done: make(map[int64]bool)}
		r.keys[key] = state
		r.order = append(r.order, key)
	}
	return state
}

// named lists the keys that there are, in the order of their first use.
func (r *resource) named() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// count takes note of an access to the current key.
func (r *resource) count() {
	r.counted++
	if r.counted == r.config.Rotate {
		r.due = time.Now()
	}
	r.rotate()
}

// longestKey is how many times its share a key may have: an opinion on it takes memory with the square
// of its length.
const longestKey = 20

// rotate moves on to the next key when the current one has had its share, and nobody works on it any
// more who was named it before that, or for too long. To wait for those, too, who were named it since
// would be to wait for ever.
func (r *resource) rotate() {
	patient := time.Since(r.due) < r.config.Patience && r.counted < longestKey*r.config.Rotate
	if r.due.IsZero() || len(r.working) > 0 && patient {
		return
	}
	r.current++
	r.counted, r.due = 0, time.Time{}
	clear(r.working)
}

func (r *resource) reportFinal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.order {
		state := r.keys[key]
		r.record.Emit(history.Event{
			Type: history.OK, F: history.Final, Key: key, Version: state.version, Value: state.value,
		})
	}
	return r.record.Err()
}
