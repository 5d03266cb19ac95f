package workloads

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"

	"lockcheck/history"
)

// Commands to the resource, a line each: to hold back the next write of a worker,
// for a fault with an id, and to let it in.
const (
	commandDefer   = "defer"   // ID WORKER
	commandDeliver = "deliver" // ID
)

// WriteDelayer holds back writes on their way to a running resource, as a network does
// that delivers late: the worker has sent its write, and waits for the answer.
type WriteDelayer struct{ Resource io.Writer }

// Defer holds back the next write of a worker until Deliver. The id is that of the
// fault, one word.
func (d WriteDelayer) Defer(id, worker string) error { return d.send(commandDefer, id, worker) }

// Deliver lets in what is held back under the id, and holds back nothing more.
func (d WriteDelayer) Deliver(id string) error { return d.send(commandDeliver, id) }

func (d WriteDelayer) send(words ...string) error {
	_, err := io.WriteString(d.Resource, strings.Join(words, " ")+"\n")
	return err
}

// deferrals are the orders to hold back writes that are in force.
type deferrals struct {
	mu     sync.Mutex
	orders []*deferral
}

type deferral struct {
	id        string
	worker    string
	met       bool // by a write
	delivered chan struct{}
}

func newDeferrals() *deferrals { return new(deferrals) }

// obey carries out commands until the input ends, then lets in all that is held
// back.
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

// meet returns the order that a write of a worker meets; nil if there is none.
func (d *deferrals) meet(worker string) *deferral {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, order := range d.orders {
		if order.worker == worker && !order.met {
			order.met = true
			return order
		}
	}
	return nil
}

// arrive holds a write back if it is to be.
func (r *resource) arrive(a Access) {
	if !a.Write {
		return
	}
	order := r.deferrals.meet(a.Client)
	if order == nil {
		return
	}
	r.emit(history.Event{
		Type: history.Info, F: history.Deferred, Key: a.Key, Client: a.Client, Op: a.Op, Grant: a.Grant, Note: order.id,
	})
	<-order.delivered
}

// emit records what is no access.
func (r *resource) emit(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Emit(e)
}
