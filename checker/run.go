package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"lockcheck/history"
)

// run is a history put in order once for all checkers.
type run struct {
	header   history.Header
	events   []history.Event
	cutOff   int        // line of a truncated event, 0 for none
	attempts []*attempt // by first event in the file
	byGrant  map[string]*attempt
	holds    []Hold // by key, then start
	faults   []fault
	accesses map[string][]history.Event // at the resource, by key, in true order
	finals   map[string]history.Event   // by key
	asked    map[string]map[int64]bool  // elements that someone tried to write, by key
	phases   map[string]history.Event   // the last of each name
	begin    int64
	end      int64
}

// attempt is everything that happened under one grant.
type attempt struct {
	grant, key, worker string
	acquire            *call // nil if the history lacks it
	renewals           []*call
	releases           []*call
	lost               []notice
	lastSeen           int64 // last sign that the worker acted as the holder
	malformed          bool  // contradicts the schema: not fit for porcupine
}

// call is one operation of a worker.
type call struct {
	invoke, done int64 // done is 0 without completion
	outcome      history.Type
	token        uint64
	until        int64
	dead         bool
	holder, err  string
}

// notice is the moment in which a worker learned that its lock is gone.
type notice struct {
	time int64
	by   string
}

const (
	byService  = "service"
	byDeadline = "deadline"
	errBusy    = "busy"
)

func (c *call) ok() bool      { return c.outcome == history.OK }
func (c *call) failed() bool  { return c.outcome == history.Fail }
func (c *call) unknown() bool { return !c.ok() && !c.failed() }

// refused says of an acquire that somebody else held the lock.
func (c *call) refused() bool { return c.failed() && (c.err == errBusy || c.holder != "") }

func (a *attempt) granted() bool { return a.acquire != nil && a.acquire.ok() }

// released returns the first release that the service acknowledged, or nil.
func (a *attempt) released() *call {
	for _, c := range a.releases {
		if c.ok() {
			return c
		}
	}
	return nil
}

// leaseEnd is the earliest time at which the lease can run out: the service
// counts from when it gets the request, which is not before the worker sent it.
// A renewal of unknown outcome can only have moved it further away.
func (a *attempt) leaseEnd(lease time.Duration) int64 {
	if lease <= 0 {
		return math.MaxInt64
	}
	end := a.acquire.invoke
	for _, c := range a.renewals {
		if c.ok() {
			end = max(end, c.invoke)
		}
	}
	return later(end, lease)
}

// serviceEnd is the earliest time at which the service may have ended the grant
// without an acknowledged release: the lease ran out, a release whose answer
// was lost took effect, or the service itself told that the grant is gone.
// math.MaxInt64 if none of these can have happened.
func (a *attempt) serviceEnd(lease time.Duration) int64 {
	if a.released() != nil {
		return math.MaxInt64
	}
	end := a.leaseEnd(lease)
	if lease > 0 {
		end -= clockAllowance(lease)
	}
	for _, c := range a.releases {
		if c.unknown() {
			end = min(end, c.invoke)
		}
	}
	for _, n := range a.lost {
		if n.by == byService {
			end = min(end, n.time)
		}
	}
	return end
}

// clockAllowance is how much early a lease may seem to end without anything
// being wrong: servers count it in whole milliseconds of a clock that may be
// slewed. The figures are those of the Redlock specification: 1 % and 2 ms.
func clockAllowance(lease time.Duration) int64 {
	return int64(min(lease, lease/100+2*time.Millisecond))
}

// later adds without overflow.
func later(t int64, d time.Duration) int64 {
	if t > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return t + int64(d)
}

func newRun(h *history.History) *run {
	r := &run{
		byGrant:  make(map[string]*attempt),
		accesses: make(map[string][]history.Event),
		finals:   make(map[string]history.Event),
		asked:    make(map[string]map[int64]bool),
		phases:   make(map[string]history.Event),
	}
	if h == nil {
		return r
	}
	r.header, r.events, r.cutOff = h.Header, h.Events, h.Truncated
	b := builder{run: r, open: make(map[opID]*call), current: make(map[string]*attempt)}
	for i, e := range r.events {
		if i == 0 {
			r.begin, r.end = e.Time, e.Time
		}
		r.begin, r.end = min(r.begin, e.Time), max(r.end, e.Time)
		b.add(e)
	}
	for _, accesses := range r.accesses {
		slices.SortStableFunc(accesses, func(a, b history.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	r.faults = collectFaults(r)
	r.holds = collectHolds(r)
	return r
}

// keys returns the names of all locks that were asked for, sorted.
func (r *run) keys() []string {
	seen := make(map[string]bool)
	for _, a := range r.attempts {
		seen[a.key] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

type opID struct {
	process string
	op      int64
	f       history.Function
}

type builder struct {
	*run
	open    map[opID]*call
	current map[string]*attempt // the attempt that a worker made last
}

func (b *builder) add(e history.Event) {
	switch {
	case e.Process == history.Harness:
		if e.F == history.Phase {
			b.phases[e.Note] = e
		}
	case e.Process == history.Resource:
		b.resource(e)
	case e.Process != history.Nemesis:
		b.worker(e)
	}
}

func (b *builder) resource(e history.Event) {
	switch e.F {
	case history.Final:
		b.finals[e.Key] = e
	case history.Read, history.Write:
		b.accesses[e.Key] = append(b.accesses[e.Key], e)
		b.ask(e)
		if a := b.byGrant[e.Grant]; a != nil && e.Type == history.OK {
			a.lastSeen = max(a.lastSeen, e.Time)
		}
	}
}

func (b *builder) worker(e history.Event) {
	b.ask(e)
	if e.Grant == "" {
		return
	}
	a := b.attempt(e)
	if e.F == history.Acquire && e.Type == history.Invoke {
		b.current[e.Process] = a
	}
	// A worker that goes on with another attempt no longer acts under this one.
	if c := b.current[e.Process]; c != nil {
		c.lastSeen = max(c.lastSeen, e.Time)
	}
	if e.F == history.Lost {
		a.lost = append(a.lost, notice{e.Time, e.Error})
		return
	}
	if e.F == history.Acquire || e.F == history.Renew || e.F == history.Release {
		b.call(a, e)
	}
}

func (b *builder) ask(e history.Event) {
	if e.F != history.Write || e.Element == 0 {
		return
	}
	if b.asked[e.Key] == nil {
		b.asked[e.Key] = make(map[int64]bool)
	}
	b.asked[e.Key][e.Element] = true
}

func (b *builder) attempt(e history.Event) *attempt {
	a := b.byGrant[e.Grant]
	if a == nil {
		a = &attempt{grant: e.Grant, key: e.Key, worker: e.Process}
		b.byGrant[e.Grant] = a
		b.attempts = append(b.attempts, a)
	}
	if a.key != e.Key || a.worker != e.Process {
		a.malformed = true
	}
	return a
}

func (b *builder) call(a *attempt, e history.Event) {
	id := opID{e.Process, e.Op, e.F}
	c := b.open[id]
	if e.Type == history.Invoke {
		c = &call{invoke: e.Time, outcome: history.Invoke}
		b.open[id] = c
		a.begin(e.F, c)
		return
	}
	if c == nil {
		c = &call{invoke: e.Time}
		a.begin(e.F, c)
		a.malformed = true
	}
	delete(b.open, id)
	c.done, c.outcome, c.token, c.until, c.holder, c.err = e.Time, e.Type, e.Token, e.Until, e.Holder, e.Error
	c.dead = e.Dead
	if c.done < c.invoke {
		a.malformed = true
	}
}

func (a *attempt) begin(f history.Function, c *call) {
	switch f {
	case history.Acquire:
		if a.acquire != nil {
			a.malformed = true
			return
		}
		a.acquire = c
	case history.Renew:
		a.renewals = append(a.renewals, c)
	case history.Release:
		a.releases = append(a.releases, c)
	}
}
