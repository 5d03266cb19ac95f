package workloads

import (
	"bufio"
	"io"
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

// Post holds back writes on their way to a running resource, as a network does
// that delivers late: the worker has sent its write, and waits for the answer.
type Post struct{ Resource io.Writer }

// Defer holds back the next write of a worker until Deliver. The id is that of the
// fault.
func (p Post) Defer(id, worker string) error { return p.send(commandDefer, id, worker) }

// Deliver lets in what is held back under the id, and holds back nothing more.
func (p Post) Deliver(id string) error { return p.send(commandDeliver, id) }

func (p Post) send(words ...string) error {
	_, err := io.WriteString(p.Resource, strings.Join(words, " ")+"\n")
	return err
}

// deferrals are the orders to hold back writes that are in force.
type deferrals struct {
	mu     sync.Mutex
	orders map[string]*deferral // by id
}

type deferral struct {
	worker    string
	met       bool // by a write
	delivered chan struct{}
}

func newDeferrals() *deferrals { return &deferrals{orders: make(map[string]*deferral)} }

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
	if d.orders[id] == nil {
		d.orders[id] = &deferral{worker: worker, delivered: make(chan struct{})}
	}
}

func (d *deferrals) deliver(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if order := d.orders[id]; order != nil {
		close(order.delivered)
		delete(d.orders, id)
	}
}

func (d *deferrals) deliverAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, order := range d.orders {
		close(order.delivered)
		delete(d.orders, id)
	}
}

// meet returns the order that a write of a worker meets, if there is one.
func (d *deferrals) meet(worker string) (id string, order *deferral) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, order := range d.orders {
		if order.worker == worker && !order.met {
			order.met = true
			return id, order
		}
	}
	return "", nil
}

// arrive holds a write back if it is to be.
func (r *resource) arrive(a Access) {
	if !a.Write {
		return
	}
	id, order := r.deferrals.meet(a.Client)
	if order == nil {
		return
	}
	r.emit(history.Event{
		Type: history.Info, F: history.Deferred, Key: a.Key, Client: a.Client, Op: a.Op, Grant: a.Grant, Note: id,
	})
	<-order.delivered
}

// emit records what is no access.
func (r *resource) emit(e history.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Emit(e)
}
