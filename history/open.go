package history

// Open has the operations that were invoked and are not completed yet, and of each what a
// reader keeps of its invocation. Names are those of the processes in a table of the reader.
type Open[T any] map[operation]T

type operation struct {
	process Name
	op      int64
}

// Invoke takes an invocation.
func (o Open[T]) Invoke(process Name, op int64, kept T) { o[operation{process, op}] = kept }

// Complete returns what was kept of an operation that is completed; false if it was never
// invoked, or completed before.
func (o Open[T]) Complete(process Name, op int64) (kept T, invoked bool) {
	id := operation{process, op}
	kept, invoked = o[id]
	delete(o, id)
	return kept, invoked
}
