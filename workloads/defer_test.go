package workloads

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lockcheck/clusters/clustertest"
	"lockcheck/history"
)

// TestDefer: an ordered write arrives, waits, and takes effect when it is delivered. A write of another worker,
// a read, and the worker's next write do not wait.
func TestDefer(t *testing.T) {
	r := runResource(t, ResourceConfig{Guard: "none"})
	delayer := WriteDelayer{Resource: r.input}
	if err := delayer.Defer("late", "w1"); err != nil {
		t.Fatal(err)
	}
	write := func(client string, op int64) <-chan error {
		done := make(chan error, 1)
		go func() {
			var answer Answer
			done <- r.client.Call(context.Background(), "access", Access{
				Write: true, Key: "k0", Client: client, Op: op, Grant: client, Element: op, Value: []byte("[]"),
			}, &answer)
		}()
		return done
	}
	// The order travels separately, so writes that arrive before it are not held back.
	op, first := int64(1), write("w1", 1)
	clustertest.Eventually(t, patience, func() error {
		if strings.Contains(r.out.String(), string(history.Deferred)) {
			return nil
		}
		select {
		case <-first:
			op++
			first = write("w1", op)
		default:
		}
		return errors.New("nothing is held back")
	})
	if err := <-write("w2", op+1); err != nil {
		t.Fatal(err)
	}
	if err := <-write("w1", op+2); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-first:
		t.Fatalf("the write was not held back: %v", err)
	default:
	}
	if err := delayer.Deliver("late"); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	var order []int64
	for _, e := range r.finish() {
		switch e.F {
		case history.Deferred:
			if e.Note != "late" || e.Client != "w1" || e.Op != op || e.Type != history.Info {
				t.Errorf("deferred: %+v", e)
			}
		case history.Write:
			order = append(order, e.Op)
		}
	}
	if last := len(order) - 1; last < 2 || order[last] != op {
		t.Errorf("the writes took effect in the order %v, want %d last", order, op)
	}
}

// TestDeferNobody: as a control, no write waits without an order. The end of the input delivers writes that are
// held back.
func TestDeferNobody(t *testing.T) {
	d := newDeferrals()
	if order := d.match("w1"); order != nil {
		t.Errorf("a write meets %q without an order", order.id)
	}
	d.order("late", "w1")
	order := d.match("w1")
	if order == nil {
		t.Fatal("a write does not meet its order")
	}
	if d.match("w1") != nil {
		t.Error("two writes meet one order")
	}
	d.deliverAll()
	select {
	case <-order.delivered:
	default:
		t.Error("the end of the input lets nothing in")
	}
}
