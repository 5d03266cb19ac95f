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

// voter is a server of Redlock that answers when all that are to be asked at once were.
type voter struct {
	redlockServer
	asked *atomic.Int64 // of all servers
	wait  int64
	order *atomic.Value // string: numbers in the order of their answers
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

// TestSequential: all servers are asked at once, unless the option says that they are asked
// one after the other.
func TestSequential(t *testing.T) {
	for _, c := range []struct {
		sequential bool
		wait       int64 // for so many questions before the first answer
		want       Outcome
		order      string
	}{
		{false, 5, Done, ""},
		{true, 5, Unknown, ""}, // the first would wait for the second
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

// released is a server of Redlock with its answer to a release.
type released struct {
	redlockServer
	answer error
}

func (r released) release(context.Context, Grant) error { return r.answer }

// TestReleaseInParts: a release that freed some servers, or may have, has no known outcome even if
// most of them no longer had the lock: somebody else may have been granted it in between.
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
