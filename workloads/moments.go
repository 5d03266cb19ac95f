package workloads

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// Commands to a worker, one per line: to stop at its next call of a kind, for a fault with an ID, and to
// continue, or to cancel the order.
const (
	commandCatch = "catch"  // ID FUNCTION PLACE
	commandLetGo = "let-go" // ID
)

// Places at which a call is caught.
const (
	placeUnsent   = "unsent"    // before it is sent: the fault then hits the request or its answer
	placeInFlight = "in-flight" // after it was sent, before its answer is read
)

// Catcher makes workers stop at their calls to the lock service.
type Catcher struct{ Workers map[string]io.Writer }

// Catch makes a worker stop at its next call, for the fault with the ID, a single word.
//
// In flight, the worker stops its process and that of its client, after a random fraction of the usual duration
// of such calls. If the call is over by then, the worker tries the next one. Whoever receives the event Caught
// must continue the worker. If inFlight is false, the call waits, before anything is sent, until LetGo.
func (c Catcher) Catch(worker, id string, call history.Function, inFlight bool) error {
	place := placeUnsent
	if inFlight {
		place = placeInFlight
	}
	return c.send(worker, commandCatch, id, string(call), place)
}

// LetGo ends the order of Catch and lets a waiting call continue.
func (c Catcher) LetGo(worker, id string) error { return c.send(worker, commandLetGo, id) }

func (c Catcher) send(worker string, words ...string) error {
	input, known := c.Workers[worker]
	if !known {
		return fmt.Errorf("there is no worker %s", worker)
	}
	_, err := io.WriteString(input, strings.Join(words, " ")+"\n")
	return err
}

// catches has the orders to stop at calls, and the durations of recent calls.
type catches struct {
	mu     sync.Mutex
	orders []*catch
	took   map[history.Function][]time.Duration // durations of the last calls
	rng    *rand.Rand
}

type catch struct {
	id       string
	call     history.Function
	inFlight bool
	taken    bool // by a call
	letGo    chan struct{}
}

func newCatches(seed uint64) *catches {
	return &catches{took: make(map[history.Function][]time.Duration), rng: rand.New(rand.NewPCG(seed, 1))}
}

// obey executes a command, and reports whether it was a command to catch calls.
func (c *catches) obey(command string) bool {
	switch words := strings.Fields(command); {
	case len(words) == 4 && words[0] == commandCatch:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.orders = append(c.orders, &catch{
			id: words[1], call: history.Function(words[2]), inFlight: words[3] == placeInFlight, letGo: make(chan struct{}),
		})
	case len(words) == 2 && words[0] == commandLetGo:
		c.letGo(words[1])
	default:
		return false
	}
	return true
}

func (c *catches) letGo(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = slices.DeleteFunc(c.orders, func(order *catch) bool {
		if order.id == id {
			close(order.letGo)
		}
		return order.id == id
	})
}

// match returns the order for a call, nil if there is none, and the time after which to stop in flight.
func (c *catches) match(call history.Function) (order *catch, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.orders, func(order *catch) bool { return order.call == call && !order.taken })
	if i < 0 {
		return nil, 0
	}
	return c.orders[i], time.Duration(c.rng.Float64() * float64(median(c.took[call])))
}

// take reports whether the order is still in force, and uses it up. It returns false if the order was withdrawn or used
// up by another call. An order that is not in flight remains until LetGo.
func (c *catches) take(order *catch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.orders, order)
	if i < 0 || order.taken {
		return false
	}
	if order.taken = true; order.inFlight {
		c.orders = slices.Delete(c.orders, i, i+1)
	}
	return true
}

const (
	// lastCalls is how many calls determine the usual duration.
	lastCalls = 15
	// firstCall is the assumed duration before the first call.
	firstCall = 500 * time.Microsecond
)

func (c *catches) note(call history.Function, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := append(c.took[call], took)
	c.took[call] = last[max(0, len(last)-lastCalls):]
}

// median returns the median of the durations, or firstCall if there are none.
func median(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return firstCall
	}
	return slices.Sorted(slices.Values(took))[len(took)/2]
}

// caughtLimit is how long a call waits for LetGo. After that it assumes that the nemesis is gone.
const caughtLimit = 5 * time.Second

// atMoments makes a call to the lock service that was invoked as op. It stops at the call if there is an order
// for it.
func atMoments[T any](w *worker, op history.Event, call func() (T, error)) (T, error) {
	landed := w.send(op)
	value, err := call()
	landed()
	return value, err
}

// send returns when a call that was invoked as op may be sent. It stops at the call if there is an order for it. The
// caller calls landed when the answer arrives.
func (w *worker) send(op history.Event) (landed func()) {
	order, after := w.catches.match(op.F)
	if order != nil && order.inFlight {
		return w.stopInFlight(op, order, after)
	}
	if order != nil {
		w.waitUnsent(op, order)
		return func() {}
	}
	began := time.Now()
	return func() { w.catches.note(op.F, time.Since(began)) }
}

// caught records that an order has caught a call.
func (w *worker) caught(op history.Event, order *catch) {
	w.record.Emit(history.Event{
		Type: history.Info, F: history.Caught, Op: op.Op, Key: op.Key, Grant: op.Grant, Token: op.Token, Note: order.id,
	})
}

// waitUnsent holds a call back until LetGo.
func (w *worker) waitUnsent(op history.Event, order *catch) {
	if !w.catches.take(order) {
		return
	}
	w.caught(op, order)
	limit := time.NewTimer(caughtLimit)
	defer limit.Stop()
	select {
	case <-order.letGo:
	case <-w.stop:
	case <-limit.C:
		w.catches.letGo(order.id)
	}
}

// stopInFlight stops the worker after some time, unless landed is called before. If the worker was stopped,
// landed returns only after it was continued.
func (w *worker) stopInFlight(op history.Event, order *catch, after time.Duration) (landed func()) {
	var flight sync.Mutex
	over := false
	go func() {
		sleepExactly(after)
		flight.Lock()
		defer flight.Unlock()
		if over || !w.catches.take(order) {
			return
		}
		w.caught(op, order)
		w.stopFamily()
	}()
	return func() {
		flight.Lock()
		defer flight.Unlock()
		over = true
	}
}

// stopFamily stops the client, if it is a process of its own, and then this process.
func (w *worker) stopFamily() {
	if client, is := w.lock.(clients.Outside); is {
		_ = client.Stop() // fails only if the client has ended
	}
	// The signal goes to this thread. A signal to the process may be delivered to another thread, a little
	// later.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP) // a process may always signal itself
}

// sleepExactly sleeps for d. It spends the last part in a busy loop. A timer may be a millisecond late, which
// is longer than a call to some services.
func sleepExactly(d time.Duration) {
	const awake = 2 * time.Millisecond
	begun := time.Now()
	time.Sleep(d - awake)
	for time.Since(begun) < d {
		runtime.Gosched()
	}
}
