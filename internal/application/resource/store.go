package resource

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"

	"lockcheck/history"
)

// Limits of the store.
const (
	maxValue = 1 << 20 // bytes
	maxLine  = 1 << 10 // bytes of an appended line
	maxKeys  = 10_000
	maxTotal = 64 << 20 // bytes of all values
)

// access is one request.
type access struct {
	history.Event // as far as it is known before the request is applied: From, Client, Key, F, Token, Base, and ID of an append
	value         []byte
	// absent: the key must not have been written yet.
	absent bool
}

// refusal is why a request was not applied.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// entry is a key with its value.
type entry struct {
	value   []byte
	version int64
	highest uint64 // token
}

// store applies requests one at a time. One mutex makes their order, their numbers and their record the same thing.
type store struct {
	emit func(history.Event) int64

	mu    sync.Mutex
	keys  map[string]*entry
	total int
	seq   int64
}

func newStore(emit func(history.Event) int64) *store {
	return &store{emit: emit, keys: make(map[string]*entry)}
}

// apply carries out a request and returns the value and the version after it. The caller must not change the value. Errors
// are *refusal.
func (s *store) apply(a access, recorded bool) (value []byte, version int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.keys[a.Key]
	if e == nil {
		e = new(entry)
	}
	refused := e.check(a)
	if refused == nil && a.F == history.Write {
		if err := s.write(e, a); err != nil {
			return nil, e.version, err // not recorded as a refused access: only the room was missing
		}
	}
	if recorded {
		s.seq++
		event := a.Event
		event.Type, event.Seq, event.Version = history.OK, s.seq, e.version
		if refused != nil {
			event.Type, event.Error = history.Fail, refused.Error()
		}
		s.emit(event)
	}
	return e.value, e.version, refused
}

// check returns why a request is refused. Tokens count on reads, too. Otherwise the store would accept a write of the old
// holder after the new holder has read.
func (e *entry) check(a access) error {
	switch {
	case a.Token != 0 && a.Token < e.highest:
		return refuse(http.StatusConflict, "token %d is smaller than %d, which was used for %s before", a.Token, e.highest, a.Key)
	case a.absent && e.version != 0:
		return refuse(http.StatusPreconditionFailed, "%s was written before: its version is %d", a.Key, e.version)
	case a.Base != 0 && a.Base != e.version:
		return refuse(http.StatusPreconditionFailed, "the version of %s is %d, not %d", a.Key, e.version, a.Base)
	}
	e.highest = max(e.highest, a.Token)
	return nil
}

func (s *store) write(e *entry, a access) error {
	value := a.value
	if a.ID != "" {
		value = e.value
		if len(value) > 0 && !bytes.HasSuffix(value, []byte("\n")) {
			value = append(value, '\n')
		}
		value = append(append(value, a.ID...), '\n')
	}
	grown := s.total - len(e.value) + len(value)
	_, known := s.keys[a.Key]
	switch {
	case len(value) > maxValue:
		return refuse(http.StatusRequestEntityTooLarge, "a value has at most %d bytes", maxValue)
	case !known && len(s.keys) == maxKeys, grown > maxTotal:
		return refuse(http.StatusInsufficientStorage, "there is room for %d keys and %d MiB", maxKeys, maxTotal>>20)
	}
	s.keys[a.Key], s.total = e, grown
	e.value = value
	e.version++
	return nil
}
