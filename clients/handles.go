package clients

import (
	"errors"
	"sync"
)

// errNoHandle is the outcome of withdrawing an attempt whose answer was lost. The library has no call for that,
// so the lock may remain until its lease ends.
var errNoHandle = errors.New("the library has no handle of this attempt")

// handles keeps, for each attempt, the object that a library returned, until the attempt is released. Libraries
// release and renew through such objects.
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

// take removes and returns the handle.
func (h *handles[T]) take(id string) (T, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	handle, ok := h.byID[id]
	delete(h.byID, id)
	return handle, ok
}

// release takes the handle of an attempt and releases it with call. If call fails, except with ErrNotHeld, the
// handle stays, so that the caller can retry. Without a handle the error is errNoHandle.
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

// takeAll removes and returns all handles.
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
