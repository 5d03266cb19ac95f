package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// voter is a Redlock server that answers only when wait servers have been asked.
type voter struct {
	redlockServer
	asked *atomic.Int64 // shared by all servers
	wait  int64
	order *atomic.Value // string: numbers of the servers in the order of their answers
	n     int
}

func (v *voter) set(ctx context.Context, _ Attempt) error {
	for v.asked.Add(1); v.asked.Load() < v.wait; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	if v.wait == 0 {
		v.order.Store(fmt.Sprint(v.order.Load(), v.n))
	}
	return nil
}

func (v *voter) release(context.Context, Grant) error { return ErrNotHeld }

// TestSequential: all servers are asked at once, or with the option one after the other.
func TestSequential(t *testing.T) {
	for _, c := range []struct {
		sequential bool
		wait       int64 // number of requests before the first answer
		want       Outcome
		order      string
	}{
		{false, 5, Done, ""},
		{true, 5, Unknown, ""}, // the first server would wait for a request to the second
		{true, 0, Done, "01234"},
	} {
		var asked atomic.Int64
		var order atomic.Value
		order.Store("")
		lock := &redlock{sequential: c.sequential}
		for n := range 5 {
			lock.servers = append(lock.servers, &voter{asked: &asked, wait: c.wait, order: &order, n: n})
		}
		_, err := lock.Acquire(t.Context(), Attempt{Key: "k0", ID: "w1-1", TTL: time.Minute})
		got := strings.ReplaceAll(fmt.Sprint(order.Load()), " ", "")
		if OutcomeOf(err) != c.want && !(c.want == Unknown && err != nil) || got != c.order {
			t.Errorf("%+v: %v, order %q", c, err, got)
		}
	}
}

// released is a Redlock server with a fixed answer to a release.
type released struct {
	redlockServer
	answer error
}

func (r released) release(context.Context, Grant) error { return r.answer }

// TestReleaseInParts: if a release freed some servers, or may have, its outcome is unknown even if most of them
// no longer had the lock. Another client may have been granted the lock in between.
func TestReleaseInParts(t *testing.T) {
	lost := errors.New("no answer")
	for _, c := range []struct {
		answers []error
		want    Outcome
	}{
		{[]error{nil, nil, nil}, Done},
		{[]error{nil, nil, ErrNotHeld}, Done},
		{[]error{ErrNotHeld, ErrNotHeld, ErrNotHeld}, NotHeld},
		{[]error{nil, ErrNotHeld, ErrNotHeld}, Unknown},
		{[]error{lost, ErrNotHeld, ErrNotHeld}, Unknown},
	} {
		lock := &redlock{}
		for _, answer := range c.answers {
			lock.servers = append(lock.servers, released{answer: answer})
		}
		if err := lock.Release(t.Context(), Grant{Key: "k0", ID: "w1-1"}); OutcomeOf(err) != c.want {
			t.Errorf("%v: %v, want %v", c.answers, err, c.want)
		}
	}
}
