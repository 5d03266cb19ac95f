package checker

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"lockcheck/history"
)

// builder turns the events of a history, in the order of its file, into a run.
type builder struct {
	*run
	open        history.Open[pending]
	faultEvents []history.Event
	begun       bool
}

// pending is an operation without completion.
type pending struct {
	f       history.Function
	call    *call
	renewal *renewal // nil unless f is Renew
}

func newBuilder(h history.Header, names *history.Names) *builder {
	return &builder{
		run: &run{
			header: h, names: names, workers: workersIn(h),
			byKey:      make(map[key]*keyed),
			byWorker:   make(map[worker]*actor),
			phases:     make(map[string]history.Event),
			releasedBy: make(map[*attempt]*attempt),

			misranked: make(map[key]bool),
		},
		open: make(history.Open[pending]),
	}
}

func (b *builder) add(e *history.Event) {
	if !b.begun {
		b.begun, b.begin, b.end = true, e.Time, e.Time
	}
	b.begin, b.end = min(b.begin, e.Time), max(b.end, e.Time)
	if e.F == history.Client {
		b.client(e)
		return
	}
	switch e.Process {
	case history.Harness:
		switch e.F {
		case history.Phase:
			b.phases[e.Note] = *e
		case history.Stalled:
			b.stalls = append(b.stalls, span{e.From, e.Time})
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

// finish sorts and connects what was added. It must be called once, after the last event.
func (b *builder) finish(cutOff int) *run {
	r := b.run
	r.cutOff = cutOff
	r.keys = slices.SortedFunc(maps.Keys(r.byKey), func(x, y key) int { return cmp.Compare(r.name(x), r.name(y)) })
	r.faults = collectFaults(r, b.faultEvents)
	b.faultEvents = nil
	r.indexFaults()
	r.applyFaults()
	for _, w := range r.byWorker {
		r.orderAttempts(w)
		r.findResumed(w)
	}
	r.extendByAccesses()
	granted := 0
	for a := range r.attempts.each {
		if h := r.attempt(a.holder); a.asked && h != nil && h.key == a.key && a.namesHolder() {
			h.witnessed = true
		}
		if a.asked {
			r.lastAsked = max(r.lastAsked, a.acquire.invoke, a.acquire.done)
		}
		if a.granted() {
			r.computeHoldEnd(a)
			granted++
		}
	}
	r.holds = make([]*attempt, 0, granted)
	for _, k := range r.keys {
		r.orderKey(r.byKey[k])
	}
	for _, w := range r.byWorker {
		r.indexAttempts(w)
	}
	return r
}

// extendByAccesses takes accesses that the resource accepted as evidence that their workers acted as holders.
// An access may have been on its way for long, so it is no evidence once its worker was dead or had asked for
// the lock anew.
func (r *run) extendByAccesses() {
	for _, k := range r.byKey {
		for i := range k.accesses {
			e := &k.accesses[i]
			if a := r.attempt(e.grant); a != nil && !e.refused {
				a.holdEnd = max(a.holdEnd, min(e.time, a.deadline))
			}
		}
	}
}

// orderKey sorts the holds, accesses and elements of a key.
func (r *run) orderKey(k *keyed) {
	first := len(r.holds)
	for _, a := range k.attempts {
		if a.granted() {
			r.holds = append(r.holds, a)
		}
	}
	k.holds = r.holds[first:]
	sorted(k.holds, r.byStart)
	other := int32(len(k.holds))
	for i := range slices.Backward(k.holds) {
		if i+1 < len(k.holds) && k.holds[i].worker != k.holds[i+1].worker {
			other = int32(i + 1)
		}
		k.holds[i].nextOther = other
	}
	r.computeEarliestStarts(k)
	sorted(k.accesses, func(a, b access) int { return cmp.Compare(a.seq, b.seq) })
	k.sortElements()
	r.reconcile(k)
}

// sortElements sorts the elements that workers tried to write. A refused element that was tried again and
// accepted is legal in the final state.
func (k *keyed) sortElements() {
	slices.Sort(k.legal)
	k.legal = slices.Compact(k.legal)
	slices.Sort(k.refused)
	k.refused = slices.Compact(k.refused)
	if len(k.refused) == 0 {
		return
	}
	var accepted []int64
	for w := range k.accepted {
		accepted = append(accepted, w.element)
	}
	slices.Sort(accepted)
	among := func(all []int64) func(int64) bool {
		return func(x int64) bool {
			_, is := slices.BinarySearch(all, x)
			return is
		}
	}
	k.refused = slices.DeleteFunc(k.refused, among(accepted))
	k.legal = slices.DeleteFunc(k.legal, among(k.refused))
}

// reconcile keeps in unrecorded only committed updates that the record lacks. An update is committed if its
// write and the release after it were both answered.
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

// orderAttempts sorts the attempts of a worker by their invocations. It also sets until when the worker may have acted
// under each attempt: until it asked for the same key again. That limit does not apply to a reentrant lock.
func (r *run) orderAttempts(w *actor) {
	w.attempts = slices.DeleteFunc(w.attempts, func(a *attempt) bool { return !a.asked })
	sorted(w.attempts, r.byInvocation)
	dead, again := cmp.Or(w.killed, math.MaxInt64), make(map[key]int64)
	for _, a := range slices.Backward(w.attempts) {
		a.deadline = min(dead, cmp.Or(again[a.key], math.MaxInt64))
		if r.header.Reentrant <= 1 {
			again[a.key] = a.acquire.invoke
		}
	}
}

// findResumed finds the grants that a service gave again. A worker whose release was lost and that asks again still
// has its record at some services, such as the key of an etcd session, and then gets the same token. It holds the
// same grant, which is no second use of the token.
func (r *run) findResumed(w *actor) {
	last := make(map[key]*attempt)
	for _, a := range w.attempts {
		if before := last[a.key]; a.granted() && a.token != 0 && before != nil && before.token == a.token {
			again := a.extend()
			again.resumes, again.again, again.earlier = before.sameGrant(), before.timesResumed()+1, before.earlierRelease()
			for c := range before.releases {
				if c.unknown() && c.invoke < a.acquire.done { // a reentrant lock is released after it was taken again
					again.earlier = c
				}
			}
		}
		switch {
		case a.granted() && a.mayBeKept():
			last[a.key] = a
		case a.granted(), a.busy, a.answeredRelease(): // the service says that the worker does not have it
			delete(last, a.key)
		}
	}
}

// mayBeKept says whether the service may still have the grant on record when its worker no longer uses it: no release
// was sent, or none was answered, and the service never answered that the grant was gone. A notification of a loss
// is no such answer, because it may be untrue.
func (a *attempt) mayBeKept() bool {
	refused := slices.ContainsFunc(a.renewals(), func(r *renewal) bool { return r.failed() })
	return !a.answeredRelease() && !a.expired && !refused
}

// answeredRelease says whether the service has answered a release, so that the grant is gone.
func (a *attempt) answeredRelease() bool {
	for c := range a.releases {
		if !c.unknown() {
			return true
		}
	}
	return false
}

// indexAttempts computes when each attempt of a worker asked for the lock or held it. It also computes the holds
// that the death of the worker may have ended: the last hold of each key, or for a reentrant lock every hold
// that nothing else ended.
func (r *run) indexAttempts(w *actor) {
	for _, a := range w.attempts {
		for c := range a.calls {
			w.hasOpenCall = w.hasOpenCall || c.outcome == open
		}
	}
	w.ends = newEndTree(len(w.attempts), func(i int) int64 {
		a := w.attempts[i]
		end := a.acquire.doneOr(r.end)
		if a.granted() {
			end = max(end, a.holdEnd)
		}
		return end
	})
	if w.killed == 0 {
		return
	}
	again := make(map[key]bool)
	for _, a := range slices.Backward(w.attempts) {
		if a.granted() && a.ended == withoutTrace && !again[a.key] {
			w.abandoned = append(w.abandoned, a)
		}
		again[a.key] = r.header.Reentrant <= 1
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
		b.keyed(e.Key).recordFinal(e)
	case history.Read, history.Write:
		k, g := b.keyed(e.Key), b.names.Of(e.Grant)
		k.accesses = append(k.accesses, access{
			seq: e.Seq, time: e.Time, element: e.Element, base: e.Base, version: e.Version,
			grant: g, client: b.names.Of(e.Client),
			write: e.F == history.Write, refused: e.Type != history.OK,
			unanswered: e.Type != history.OK && e.Note != "",
		})
		k.recordElement(e)
	}
}

func (b *builder) service(e *history.Event) {
	if e.F == history.Unobserved {
		b.unobserved = e.Time
		return
	}
	k := b.keyed(e.Key)
	if e.Client != "" {
		k.removals = append(k.removals, *e)
		return
	}
	if k.dropped == nil {
		k.dropped = make(map[uint64]int64)
	}
	if e.F == history.Dropped {
		k.dropped[e.Token] = e.Time
	} else {
		k.dropped[e.Token] = 0
	}
}

// client records what the history says about a client of a user's own lock.
func (b *builder) client(e *history.Event) {
	switch {
	case e.Error != "":
		b.clientFaults = append(b.clientFaults, e.Process+": "+e.Error)
	case !slices.Contains(b.clients, e.Note):
		b.clients = append(b.clients, e.Note)
	}
}

func (k *keyed) recordElement(e *history.Event) {
	if e.F != history.Write || e.Element == 0 {
		return
	}
	// The worker and the resource name the same element one after the other.
	if n := len(k.legal); n == 0 || k.legal[n-1] != e.Element {
		k.legal = append(k.legal, e.Element)
	}
	if e.Process == history.Resource && e.Type != history.OK {
		k.refused = append(k.refused, e.Element)
	}
}

func (b *builder) worker(e *history.Event) {
	b.recordElement(e)
	if e.F == history.Caught {
		b.faultEvents = append(b.faultEvents, *e)
		return
	}
	w := b.actor(e.Process)
	if e.F == history.Renew && b.header.Renewals {
		b.renewalOfSession(w, e)
		return
	}
	if e.Grant == "" {
		return
	}
	a := b.attemptOf(w, e)
	if e.F == history.Acquire && e.Type == history.Invoke {
		w.current = a
	}
	// Once a worker goes on with another attempt, only its own accesses and renewals prove that it acts under
	// this one.
	if w.current != nil {
		w.current.holdEnd = max(w.current.holdEnd, e.Time)
	}
	if e.Type == history.Invoke && (e.F == history.Read || e.F == history.Write || e.F == history.Renew) {
		a.holdEnd = max(a.holdEnd, e.Time)
	}
	switch e.F {
	case history.Lost:
		a.extend().lost = append(a.extend().lost, notification{e.Time, e.Error == history.ByService, e.Error == history.ByDeadline})
	case history.Acquire, history.Renew, history.Release:
		b.call(a, e)
	case history.Write:
		b.answeredWrite(e)
	}
}

// answeredWrite records a write that was confirmed to its worker, if the lock's own database keeps the data.
// Updates that this database lost are missing from all of its records.
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

func (b *builder) recordElement(e *history.Event) {
	if e.F == history.Write && e.Element != 0 {
		b.keyed(e.Key).recordElement(e)
	}
}

// attemptOf returns the attempt of a worker's event. It creates the attempt if this is its first event.
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
	process := b.names.Of(e.Process)
	if e.Type == history.Invoke {
		a.shared = a.shared || e.Shared
		b.open.Invoke(process, e.Op, a.begin(e.F, e.Time))
		return
	}
	p, begun := b.open.Complete(process, e.Op)
	if !begun || p.f != e.F {
		p = a.begin(e.F, e.Time)
		a.malformed = true
	}
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

func (a *attempt) answered(e *history.Event, names *history.Names) {
	a.token, a.until, a.expired = e.Token, e.Until, e.Expired
	a.holder = names.Of(e.Holder)
	a.busy = e.Type == history.Fail && (e.Error == history.Busy || e.Holder != "")
}

func (a *attempt) begin(f history.Function, at int64) pending {
	c := call{invoke: at}
	switch f {
	case history.Renew:
		r := &renewal{call: c}
		a.extend().renewals = append(a.extend().renewals, r)
		return pending{f, &r.call, r}
	case history.Release:
		if !a.triedRelease {
			a.triedRelease, a.release = true, c
			return pending{f, &a.release, nil}
		}
		another := &c
		a.extend().releases = append(a.extend().releases, another)
		return pending{f, another, nil}
	}
	if a.asked {
		a.malformed = true
		return pending{f, &c, nil}
	}
	a.asked, a.acquire = true, c
	return pending{f, &a.acquire, nil}
}

func (a *attempt) extend() *rare {
	if a.rare == nil {
		a.rare = &rare{}
	}
	return a.rare
}
