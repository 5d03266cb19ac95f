//go:build !embedded

package clients

import "context"

// callUntil calls a library function that takes no context, or ignores it, and returns when ctx ends. The
// request may still take effect at any later time, unless its session is closed.
func callUntil[T any](ctx context.Context, request func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := request()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// doUntil is callUntil for a request that returns only an error.
func doUntil(ctx context.Context, request func() error) error {
	_, err := callUntil(ctx, func() (struct{}, error) { return struct{}{}, request() })
	return err
}
