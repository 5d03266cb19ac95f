package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"lockcheck/history"
)

// builder makes a run of the events of a history, in the order of its file.
type builder struct {
	*run
	open        map[opID]pending
	faultEvents []history.Event
	begun       bool
}

type opID struct {
	process worker
	op      int64
	f       history.Function
}

// pending is an operation without completion.
type pending struct {
	call    *call
	renewal *renewal // of a renewal
}

func newBuilder(h history.Header, names *history.Names) *builder {
	return &builder{
		run: &run{
			header: h, names: names,
			byKey:    make(map[key]*keyed),
			byWorker: make(map[worker]*actor),
			phases:   make(map[string]history.Event),
			robbers:  make(map[*attempt]*attempt),
		},
		open: make(map[opID]pending),
	}
}

func (b *builder) add(e *history.Event) {
	if !b.begun {
		b.begun, b.begin, b.end = true, e.Time, e.Time
	}
	b.begin, b.end = min(b.begin, e.Time), max(b.end, e.Time)
	switch e.Process {
	case history.Harness:
		if e.F == history.Phase {
			b.phases[e.Note] = *e
		}
	case history.Nemesis:
		b.faultEvents = append(b.faultEvents, *e)
	case history.Resource:
		b.resource(e)
	case history.Service:
		b.service(e)
	default:
		b.worker(e)
	}
}

// finish puts in order what was added. It must be called once, after the last event.
func (b *builder) finish(cutOff int) *run {
	r := b.run
	r.cutOff = cutOff
	r.keys = slices.SortedFunc(maps.Keys(r.byKey), func(x, y key) int { return cmp.Compare(r.name(x), r.name(y)) })
	r.faults = collectFaults(r, b.faultEvents)
	for _, w := range r.byWorker {
		r.endure(w)
	}
	granted := 0
	for a := range r.attempts.each {
		if h := r.attempt(a.holder); a.asked && h != nil && h.key == a.key && a.namesHolder() {
			h.witnessed = true
		}
		if a.asked {
			r.lastAsked = max(r.lastAsked, a.acquire.invoke, a.acquire.done)
		}
		if a.granted() {
			r.settle(a)
			granted++
		}
	}
	r.holds = make([]*attempt, 0, granted)
	for _, k := range r.keys {
		r.order(r.byKey[k])
	}
	for _, w := range r.byWorker {
		r.line(w)
	}
	return r
}

// order sorts what happened to a key.
func (r *run) order(k *keyed) {
	first := len(r.holds)
	for _, a := range k.attempts {
		if a.granted() {
			r.holds = append(r.holds, a)
		}
	}
	k.holds = r.holds[first:]
	sorted(k.holds, r.byStart)
	sorted(k.accesses, func(a, b access) int { return cmp.Compare(a.seq, b.seq) })
	slices.Sort(k.asked)
	k.asked = slices.Compact(k.asked)
	r.reconcile(k)
}

// reconcile leaves of the updates that were answered those that were committed by the
// answers, to the write and to the release after it, and that the record lacks.
func (r *run) reconcile(k *keyed) {
	if len(k.unrecorded) == 0 {
		return
	}
	recorded := make(map[int64]bool)
	for w := range k.accepted {
		recorded[w.element] = true
	}
	k.unrecorded = slices.DeleteFunc(k.unrecorded, func(w access) bool {
		a := r.attempt(w.grant)
		return recorded[w.element] || a == nil || a.released() == nil
	})
}

// line puts what a worker did one after the other.
func (r *run) line(w *actor) {
	w.attempts = slices.DeleteFunc(w.attempts, func(a *attempt) bool { return !a.asked })
	sorted(w.attempts, r.byInvocation)
	reach := int64(math.MinInt64)
	for _, a := range w.attempts {
		for c := range a.calls {
			reach = max(reach, c.over(r.end))
		}
		if a.granted() {
			reach = max(reach, a.holdEnd)
		}
		a.reach = reach
	}
}

func (b *builder) keyed(name string) *keyed {
	id := b.names.Of(name)
	k := b.byKey[id]
	if k == nil {
		k = &keyed{name: name}
		b.byKey[id] = k
	}
	return k
}

func (b *builder) resource(e *history.Event) {
	switch e.F {
	case history.Deferred:
		b.faultEvents = append(b.faultEvents, *e)
	case history.Final:
		final := *e
		b.keyed(e.Key).final = &final
	case history.Read, history.Write:
		k, g := b.keyed(e.Key), b.names.Of(e.Grant)
		k.accesses = append(k.accesses, access{
			seq: e.Seq, time: e.Time, element: e.Element, base: e.Base, version: e.Version,
			grant: g, client: b.names.Of(e.Client),
			write: e.F == history.Write, refused: e.Type != history.OK,
			unanswered: e.Type != history.OK && e.Note != "",
		})
		k.ask(e)
		if a := b.attempt(g); a != nil && e.Type == history.OK {
			a.holdEnd = max(a.holdEnd, e.Time)
		}
	}
}

func (b *builder) service(e *history.Event) {
	if e.F == history.Unobserved {
		b.unobserved = e.Time
		return
	}
	k := b.keyed(e.Key)
	if k.dropped == nil {
		k.dropped = make(map[uint64]int64)
	}
	if e.F == history.Dropped {
		k.dropped[e.Token] = e.Time
	} else {
		k.dropped[e.Token] = 0
	}
}

func (k *keyed) ask(e *history.Event) {
	if e.F != history.Write || e.Element == 0 {
		return
	}
	// The worker and the resource name the same element one after the other.
	if n := len(k.asked); n == 0 || k.asked[n-1] != e.Element {
		k.asked = append(k.asked, e.Element)
	}
}

func (b *builder) worker(e *history.Event) {
	b.ask(e)
	if e.Grant == "" {
		return
	}
	w := b.actor(e.Process)
	a := b.attemptOf(w, e)
	if e.F == history.Acquire && e.Type == history.Invoke {
		w.current = a
	}
	// A worker that goes on with another attempt no longer acts under this one.
	if w.current != nil {
		w.current.holdEnd = max(w.current.holdEnd, e.Time)
	}
	switch e.F {
	case history.Lost:
		a.extend().lost = append(a.extend().lost, notice{e.Time, e.Error == history.ByService, e.Error == history.ByDeadline})
	case history.Acquire, history.Renew, history.Release:
		b.call(a, e)
	case history.Write:
		b.answeredWrite(e)
	}
}

// answeredWrite keeps what a worker was told of its write where the data are in the
// lock's database: what that lost is in none of its records.
func (b *builder) answeredWrite(e *history.Event) {
	if b.header.Guard != history.GuardDatabase || e.Type != history.OK || e.Element == 0 {
		return
	}
	k := b.keyed(e.Key)
	k.unrecorded = append(k.unrecorded, access{
		time: e.Time, element: e.Element, base: e.Base, version: e.Version,
		grant: b.names.Of(e.Grant), client: b.names.Of(e.Process), write: true,
	})
}

func (b *builder) ask(e *history.Event) {
	if e.F == history.Write && e.Element != 0 {
		b.keyed(e.Key).ask(e)
	}
}

// attemptOf returns the attempt of an event of a worker, a new one if this is its first.
func (b *builder) attemptOf(w *actor, e *history.Event) *attempt {
	g, process, key := b.names.Of(e.Grant), b.names.Of(e.Process), b.names.Of(e.Key)
	for len(b.byGrant) <= int(g) {
		b.byGrant = append(b.byGrant, nil)
	}
	a := b.byGrant[g]
	if a == nil {
		a = b.attempts.next()
		a.grant, a.key, a.worker = g, key, process
		b.byGrant[g] = a
		k := b.keyed(e.Key)
		k.attempts = append(k.attempts, a)
		w.attempts = append(w.attempts, a)
	}
	if a.key != key || a.worker != process {
		a.malformed = true
	}
	return a
}

func (b *builder) call(a *attempt, e *history.Event) {
	id := opID{b.names.Of(e.Process), e.Op, e.F}
	if e.Type == history.Invoke {
		b.open[id] = a.begin(e.F, e.Time)
		return
	}
	p, begun := b.open[id]
	if !begun {
		p = a.begin(e.F, e.Time)
		a.malformed = true
	}
	delete(b.open, id)
	p.call.done, p.call.outcome = e.Time, outcomeOf(e.Type)
	if p.renewal != nil {
		p.renewal.until = e.Until
		if p.call.ok() {
			a.rare.renewed = max(a.rare.renewed, p.call.invoke)
		}
	}
	if p.call == &a.acquire {
		a.answered(e, b.names)
		b.wakes += e.Wakes
	}
	if e.Time < p.call.invoke {
		a.malformed = true
	}
}

// answered records what the completion of an acquire says.
func (a *attempt) answered(e *history.Event, names *history.Names) {
	a.token, a.until, a.dead = e.Token, e.Until, e.Expired
	a.holder = names.Of(e.Holder)
	a.busy = e.Type == history.Fail && (e.Error == history.Busy || e.Holder != "")
}

func (a *attempt) begin(f history.Function, at int64) pending {
	c := call{invoke: at}
	switch f {
	case history.Renew:
		r := &renewal{call: c}
		a.extend().renewals = append(a.extend().renewals, r)
		return pending{call: &r.call, renewal: r}
	case history.Release:
		if !a.tried {
			a.tried, a.release = true, c
			return pending{call: &a.release}
		}
		another := &c
		a.extend().releases = append(a.extend().releases, another)
		return pending{call: another}
	}
	if a.asked {
		a.malformed = true
		return pending{call: &c}
	}
	a.asked, a.acquire = true, c
	return pending{call: &a.acquire}
}

func (a *attempt) extend() *rare {
	if a.rare == nil {
		a.rare = &rare{}
	}
	return a.rare
}
