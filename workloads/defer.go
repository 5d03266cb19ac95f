package workloads

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"

	"lockcheck/history"
)

// Commands to the resource, one per line: to hold back the next write of a worker, for a fault with an ID, and
// to deliver it.
const (
	commandDefer   = "defer"   // ID WORKER
	commandDeliver = "deliver" // ID
)

// WriteDelayer holds back writes on their way to a running resource, like a network that delivers late. The
// worker has sent its write and waits for the answer.
type WriteDelayer struct{ Resource io.Writer }

// Defer holds back the next write of a worker until Deliver. The ID is that of the fault, a single word.
func (d WriteDelayer) Defer(id, worker string) error { return d.send(commandDefer, id, worker) }

// Deliver delivers the write that is held back under the ID, and cancels the order.
func (d WriteDelayer) Deliver(id string) error { return d.send(commandDeliver, id) }

func (d WriteDelayer) send(words ...string) error {
	_, err := io.WriteString(d.Resource, strings.Join(words, " ")+"\n")
	return err
}

// deferrals has the orders to hold back writes that are in force.
type deferrals struct {
	mu     sync.Mutex
	orders []*deferral
}

type deferral struct {
	id        string
	worker    string
	used      bool // a write is held back by this order
	delivered chan struct{}
}

func newDeferrals() *deferrals { return new(deferrals) }

// obey executes commands until the input ends, and then delivers all writes that are held back.
func (d *deferrals) obey(input io.Reader) error {
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		switch words := strings.Fields(lines.Text()); {
		case len(words) == 3 && words[0] == commandDefer:
			d.order(words[1], words[2])
		case len(words) == 2 && words[0] == commandDeliver:
			d.deliver(words[1])
		}
	}
	d.deliverAll()
	return lines.Err()
}

func (d *deferrals) order(id, worker string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.orders = append(d.orders, &deferral{id: id, worker: worker, delivered: make(chan struct{})})
}

func (d *deferrals) deliver(id string) {
	d.deliverThose(func(order *deferral) bool { return order.id == id })
}

func (d *deferrals) deliverAll() { d.deliverThose(func(*deferral) bool { return true }) }

func (d *deferrals) deliverThose(which func(*deferral) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.orders = slices.DeleteFunc(d.orders, func(order *deferral) bool {
		if !which(order) {
			return false
		}
		close(order.delivered)
		return true
	})
}

// match returns the order that applies to a write of the worker, and uses it up; nil if there is none.
func (d *deferrals) match(worker string) *deferral {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, order := range d.orders {
		if order.worker == worker && !order.used {
			order.used = true
			return order
		}
	}
	return nil
}

// holdBackIfOrdered holds a write back if an order applies to it.
func (r *resource) holdBackIfOrdered(a Access) {
	if !a.Write {
		return
	}
	order := r.deferrals.match(a.Client)
	if order == nil {
		return
	}
	r.emit(history.Event{
		Type: history.Info, F: history.Deferred, Key: a.Key, Client: a.Client, Op: a.Op, Grant: a.Grant, Note: order.id,
	})
	<-order.delivered
}

// emit records an event that is not an access.
func (r *resource) emit(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Emit(e)
}
