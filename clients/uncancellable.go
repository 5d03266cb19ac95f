//go:build !embedded

package clients

import "context"

// callUntil makes a request of a library that takes no context, or does not heed it. A request that is
// still under way when ctx ends may have its effect at any time, unless its session is given up.
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

// doUntil is callUntil for a request that returns nothing but an error.
func doUntil(ctx context.Context, request func() error) error {
	_, err := callUntil(ctx, func() (struct{}, error) { return struct{}{}, request() })
	return err
}
