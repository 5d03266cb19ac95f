package history

// Open has the operations that are invoked but not yet completed, with the caller's data for each. Process
// names belong to the caller's table.
type Open[T any] map[operation]T

type operation struct {
	process Name
	op      int64
}

// Invoke records an invocation.
func (o Open[T]) Invoke(process Name, op int64, kept T) { o[operation{process, op}] = kept }

// Complete returns the data of an operation that is completed; false if it was never invoked, or was
// completed before.
func (o Open[T]) Complete(process Name, op int64) (kept T, invoked bool) {
	id := operation{process, op}
	kept, invoked = o[id]
	delete(o, id)
	return kept, invoked
}
