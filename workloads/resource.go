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

// ResourceConfig is the configuration of the resource.
type ResourceConfig struct {
	Socket string `json:"socket"` // Unix socket on which it answers
	Guard  Guard  `json:"guard"`
	// Rotate is the number of updates after which the resource gives workers a new key. Short histories of many
	// keys are checked faster than one long history of a single key.
	Rotate int `json:"rotate"`
	// Patience is how much longer, at most, the resource keeps a key for workers that got it before Rotate was
	// reached. A worker that is stopped as the holder should have rivals on the same key when its lease ends
	// and when it continues.
	Patience time.Duration `json:"patience,omitempty"`
	// CountReads makes Rotate count reads instead, for a workload that never writes.
	CountReads bool `json:"count_reads"`
	// Prefix begins the names of its keys. Earlier runs on the same servers used other prefixes.
	Prefix string `json:"prefix,omitempty"`
	// Service is the lock service that the guard Ask asks, or whose database stores the data for the guard
	// Database; nil for other guards.
	Service *ServiceConfig `json:"service,omitempty"`
}

// Access is a read or write that a worker requests.
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

// Answer is the resource's answer to an Access.
type Answer struct {
	Refused string          `json:"refused,omitempty"` // name of the guard that refused the access; "" if it was accepted
	Version int64           `json:"version"`
	Value   json.RawMessage `json:"value,omitempty"`
}

// KeyRequest requests a key to work on. The client has finished with its previous key.
type KeyRequest struct {
	Client string `json:"client"`
}

// KeyAnswer has the key to work on.
type KeyAnswer struct {
	Key string `json:"key"`
}

// keyState is the state of one key at the resource.
type keyState struct {
	value   json.RawMessage
	version int64
	highest uint64         // highest token so far
	reader  string         // the grant that read last
	done    map[int64]bool // the elements that were written
}

// resource is the store that the lock protects. One mutex makes the order of accesses, the order of their
// numbers and the order of their events the same.
type resource struct {
	config ResourceConfig
	record *Emitter
	// service is nil if the guard asks no service; database is nil if the resource itself stores the data.
	service  *lockService
	database *database

	deferrals *deferrals
	// complained: the client's mistake is recorded.
	complained sync.Once

	// turn is held from before the question to the lock service until the access has been performed. If another
	// access came in between, the service's answer would be older than that access.
	turn sync.Mutex

	mu              sync.Mutex
	keys            map[string]*keyState
	order           []string // keys in the order of their first use
	seq             int64
	current         int             // number of the key that workers are given
	countedAccesses int             // accesses to it that count towards Rotate
	rotationDue     time.Time       // since when rotation is due; zero if it is not
	unfinished      map[string]bool // clients that got the current key before rotation was due and have not finished
}

// RunResource serves the resource until the input ends, and then reports the final state of every key. If it
// asks a user's own client, it starts that client when the input says CommandOpen, because the servers are
// ready then.
func RunResource(ctx context.Context, config ResourceConfig, input io.Reader, output io.Writer) error {
	r := &resource{
		config: config, record: NewEmitter(history.Resource, output),
		deferrals: newDeferrals(), keys: make(map[string]*keyState), unfinished: make(map[string]bool),
	}
	orders := bufio.NewReader(input)
	if config.Service.ofUser() {
		if _, err := orders.ReadString('\n'); err != nil {
			return nil // the run has ended already
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

// connect opens the service or database that the guard needs.
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

// run serves until the input ends or the server fails.
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

// complain records, only once, what the user's own client did wrong.
func (r *resource) complain(err error) {
	r.complained.Do(func() {
		r.emit(history.Event{Type: history.Info, F: history.Client, Error: err.Error()})
	})
}

// currentKey answers a worker that is about to make an attempt. If the resource does not see the accesses, it
// counts attempts instead.
func (r *resource) currentKey(q KeyRequest) KeyAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unfinished, q.Client)
	r.rotate()
	if r.rotationDue.IsZero() {
		r.unfinished[q.Client] = true
	}
	key := keyName(r.config.Prefix, r.current)
	if r.database != nil {
		r.state(key) // so that the key's data in the database are reported
		r.count()
	}
	return KeyAnswer{Key: key}
}

func keyName(prefix string, n int) string { return fmt.Sprintf("%sk%d", prefix, n) }

func (r *resource) access(ctx context.Context, a Access) Answer {
	r.holdBackIfOrdered(a)
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	r.turn.Lock()
	defer r.turn.Unlock()
	holds, unanswered := r.service.holds(ctx, a)
	if err := r.service.failed(); unanswered != nil && err != nil {
		r.complain(err) // this ends the run
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

// state returns the state of a key, and creates it if necessary.
func (r *resource) state(key string) *keyState {
	state, known := r.keys[key]
	if !known {
		state = &keyState{done: make(map[int64]bool)}
		r.keys[key] = state
		r.order = append(r.order, key)
	}
	return state
}

// named lists the keys in the order of their first use.
func (r *resource) named() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// count counts an access to the current key.
func (r *resource) count() {
	r.countedAccesses++
	if r.countedAccesses == r.config.Rotate {
		r.rotationDue = time.Now()
	}
	r.rotate()
}

// longestKey is by which factor a key may exceed Rotate: the memory for checking a key grows with the square of
// the length of its history.
const longestKey = 20

// rotate moves on to the next key when the current one has had its share of accesses. It first waits, up to a
// limit, for the clients that got the key before that. Waiting also for those that got the key later would
// never end.
func (r *resource) rotate() {
	patient := time.Since(r.rotationDue) < r.config.Patience && r.countedAccesses < longestKey*r.config.Rotate
	if r.rotationDue.IsZero() || len(r.unfinished) > 0 && patient {
		return
	}
	r.current++
	r.countedAccesses, r.rotationDue = 0, time.Time{}
	clear(r.unfinished)
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
