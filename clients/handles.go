package clients

import (
	"errors"
	"sync"
)

// errNoHandle is the outcome of taking back an attempt whose answer was lost:
// the library gives no way to do it, and the lock may stay until its lease ends.
var errNoHandle = errors.New("the library has no handle of this attempt")

// handles keeps what a library returned for each attempt until it is released:
// libraries tie release and renewal to an object of theirs.
type handles[T any] struct {
	mu   sync.Mutex
	byID map[string]T
}

func (h *handles[T]) put(id string, handle T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = make(map[string]T)
	}
	h.byID[id] = handle
}

func (h *handles[T]) get(id string) (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	handle, ok := h.byID[id]
	return handle, ok
}

// take returns the handle and forgets it.
func (h *handles[T]) take(id string) (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	handle, ok := h.byID[id]
	delete(h.byID, id)
	return handle, ok
}

// release gives back by a call what a handle is for. Unless that is done, or there was nothing to
// give back, the handle stays: one who was not answered may ask again. Without a handle it is
// errNoHandle.
func (h *handles[T]) release(id string, call func(T) error) error {
	handle, known := h.take(id)
	if !known {
		return errNoHandle
	}
	err := call(handle)
	if err != nil && !errors.Is(err, ErrNotHeld) {
		h.put(id, handle)
	}
	return err
}

// takeAll returns all handles and forgets them.
func (h *handles[T]) takeAll() []T {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []T
	for _, handle := range h.byID {
		all = append(all, handle)
	}
	h.byID = nil
	return all
}
