package checker

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"lockcheck/history"
)

// run is a history put in order once for all checkers. Names are numbers and
// attempts have a fixed size, so that those of millions of operations fit in memory.
type run struct {
	header   history.Header
	workers  nameSet
	names    *history.Names
	cutOff   int               // line of a truncated event, 0 for none
	attempts attempts          // by first event in the file
	byGrant  []*attempt        // by the name of the grant
	byKey    map[key]*keyed    // what happened to each key
	keys     []key             // by their names
	byWorker map[worker]*actor // what each worker did
	holds    []*attempt        // granted ones, by key, then start
	faults   []fault
	// When faults may have been in force, and those of the servers.
	forces, disturbances *faultTimes
	silences             *faultTimes // by which an answer can have been lost
	earlies              []early     // what can have ended a grant early, the most telling first
	// deferrals are the first fault that held a write of a grant back.
	deferrals map[grant]*fault
	phases    map[string]history.Event // the last of each name
	begin     int64
	end       int64
	// stalls are the times in which the machine that the run was made on let nobody of it run.
	stalls []span
	// unobserved is when the observer of the service gave up, 0 for never.
	unobserved int64
	// releasedBy maps a grant to the attempt whose release ended it.
	releasedBy map[*attempt]*attempt
	// misranked are keys whose tokens contradict the order of their grants.
	misranked map[key]bool
	// lastAsked is the last time at which an acquire began or was answered.
	lastAsked int64
	// clients are the names of clients of users, and clientFaults what is wrong with which.
	clients, clientFaults []string
	// wakes is how many notifications all attempts got.
	wakes   int64
	origins origins
}

type (
	grant  = history.Name
	key    = history.Name
	worker = history.Name
)

// keyed is what happened to one key.
type keyed struct {
	name     string
	attempts []*attempt
	holds    []*attempt // by start
	accesses []access   // at the resource, in true order
	finals   finals
	// legal are the elements that someone tried to write, and that the resource did not
	// refuse, as it did those of refused; both in order.
	legal, refused []int64
	// unrecorded are the updates of which the database that keeps the data told their
	// workers that they are committed, and has no record, in the order of the answers.
	// While the run is built they are all that were answered.
	unrecorded []access
	// dropped is when the observer of the service learned that a claim was gone, by its
	// token; 0 while it is on record. It is nil for a service that nobody observed.
	dropped map[uint64]int64
	// doubted is what releasedInDoubt says, once somebody wanted to know.
	doubted *bool
	// lastAsked are the attempts of two workers that asked for the key last, and lastAskedAlone of
	// those that did not ask to share it, once somebody wanted to know; nil for none.
	lastAsked, lastAskedAlone *[2]*attempt
}

// actor is what one worker did: one attempt after the other.
type actor struct {
	name     string
	attempts []*attempt // by first event; in finished runs those with an acquire, by its invocation
	ends     ends       // of these, of asking and of holding
	waits    bool       // one of its calls was never answered
	current  *attempt   // the one that it made last
	// Of the faults, made once: when no majority of its servers was in reach, when the
	// service can have given up what was granted to it before the end of that, and when it
	// was stopped.
	cutOffs, lapses spans
	stops           []span
	killed          int64 // when it was killed, 0 for never
	// left are the holds that its death can have ended.
	left []*attempt
	// lastGrants are when each key was granted to it last, once somebody wanted to know.
	lastGrants map[key]int64
}

// access is what the resource did with one read or write.
type access struct {
	seq, time              int64
	element, base, version int64
	grant                  grant
	client                 worker
	write, refused         bool
	unanswered             bool // refused because the lock service did not say who holds it
}

// attempt is everything that happened under one grant.
type attempt struct {
	grant   grant
	key     key
	worker  worker
	holder  grant // that the acquire was refused in favour of
	acquire call  // if asked
	after   int64 // when the hold before it can have ended at the earliest; 0 where that is not known
	release call  // the first one, if tried
	token   uint64
	until   int64
	rare    *rare
	// holdEnd is when the hold of a granted attempt ends. While the run is built it is the
	// last evidence that the worker acted as the holder.
	holdEnd int64
	// deadline is the end of the validity of a granted one. While the run is built it is
	// until when an access that the resource accepts is such evidence.
	deadline  int64
	block     int32 // its place among the blocks of its key
	other     int32 // the place of the next hold of its key of another worker, that of the end if there is none
	ended     ending
	asked     bool // the history has its acquire
	tried     bool // a release
	expired   bool // the service had forgotten the grant when it arrived
	busy      bool // refused because somebody else held the lock
	replaced  bool // somebody else was granted the lock during the hold
	user      bool // the resource accepted an access under it
	origin    bool // of an incident that no fault explains
	witnessed bool // somebody was refused in its favour
	shared    bool // asked for next to others that share it
	malformed bool // contradicts the schema: not fit for porcupine
}

// rare is what most attempts lack.
type rare struct {
	renewals []*renewal
	renewed  int64   // when the last renewal that was acknowledged was asked for, 0 for none
	releases []*call // after the first one
	lost     []notification
}

// call is one operation of a worker.
type call struct {
	invoke, done int64 // done is 0 without completion
	outcome      outcome
}

type renewal struct {
	call
	until int64
}

type outcome uint8

const (
	open outcome = iota // no completion
	succeeded
	failed
	unsure // completed without a known outcome
)

func outcomeOf(t history.Type) outcome {
	switch t {
	case history.OK:
		return succeeded
	case history.Fail:
		return failed
	}
	return unsure
}

// notification is the moment in which a worker learned that its lock is gone.
type notification struct {
	time                  int64
	byService, byDeadline bool
}

func (c *call) ok() bool      { return c.outcome == succeeded }
func (c *call) failed() bool  { return c.outcome == failed }
func (c *call) unknown() bool { return !c.ok() && !c.failed() }

func (a *attempt) granted() bool { return a.asked && a.acquire.ok() }

// renewals returns those of the attempt.
func (a *attempt) renewals() []*renewal {
	if a.rare == nil {
		return nil
	}
	return a.rare.renewals
}

// notifications returns when its worker learned that the lock is gone.
func (a *attempt) notifications() []notification {
	if a.rare == nil {
		return nil
	}
	return a.rare.lost
}

// releases returns those of the attempt: most have one.
func (a *attempt) releases(yield func(*call) bool) {
	if !a.tried || !yield(&a.release) || a.rare == nil {
		return
	}
	for _, c := range a.rare.releases {
		if !yield(c) {
			return
		}
	}
}

// calls returns all calls to the lock service.
func (a *attempt) calls(yield func(*call) bool) {
	if a.asked && !yield(&a.acquire) {
		return
	}
	for _, c := range a.renewals() {
		if !yield(&c.call) {
			return
		}
	}
	a.releases(yield)
}

// released returns the first release that the service acknowledged, or nil.
func (a *attempt) released() *call {
	for c := range a.releases {
		if c.ok() {
			return c
		}
	}
	return nil
}

// later adds without overflow.
func later(t int64, d time.Duration) int64 {
	if t > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return t + int64(d)
}

// newRun puts a whole history in order.
func newRun(h *history.History) *run {
	if h == nil {
		h = &history.History{}
	}
	b := newBuilder(h.Header, history.NewNames())
	for i := range h.Events {
		b.add(&h.Events[i])
	}
	return b.finish(h.Truncated)
}

// name returns the string of a name.
func (r *run) name(n history.Name) string { return r.names.String(n) }

func (r *run) nameAll(names ...history.Name) []string {
	all := make([]string, 0, len(names))
	for _, n := range names {
		all = append(all, r.name(n))
	}
	return all
}

// attempt returns the one with a grant, nil if the history lacks it.
func (r *run) attempt(g grant) *attempt {
	if g == 0 || int(g) >= len(r.byGrant) {
		return nil
	}
	return r.byGrant[g]
}

// actor returns what a worker did; it is never nil.
func (r *run) actor(name string) *actor {
	w := r.names.Of(name)
	if r.byWorker[w] == nil {
		r.byWorker[w] = &actor{name: name}
	}
	return r.byWorker[w]
}

// dataKeys returns what happened to the keys that the resource knows, by name.
func (r *run) dataKeys(yield func(*keyed) bool) {
	for _, k := range r.keys {
		if d := r.byKey[k]; (len(d.accesses)+len(d.unrecorded) > 0 || d.finals.read()) && !yield(d) {
			return
		}
	}
}

// attempts keeps them where they are made: copying them to a larger place over and
// over would need the memory twice.
type attempts struct{ chunks [][]attempt }

const chunk = 1 << 12

func (all *attempts) next() *attempt {
	n := len(all.chunks)
	if n == 0 || len(all.chunks[n-1]) == chunk {
		all.chunks = append(all.chunks, make([]attempt, 0, chunk))
		n++
	}
	last := append(all.chunks[n-1], attempt{})
	all.chunks[n-1] = last
	return &last[len(last)-1]
}

func (all *attempts) each(yield func(*attempt) bool) {
	for _, c := range all.chunks {
		for i := range c {
			if !yield(&c[i]) {
				return
			}
		}
	}
}

// byStart orders the holds of one key, those with equal times by their grants.
func (r *run) byStart(a, b *attempt) int {
	if c := cmp.Or(cmp.Compare(a.acquire.done, b.acquire.done), cmp.Compare(a.acquire.invoke, b.acquire.invoke)); c != 0 {
		return c
	}
	return cmp.Compare(r.name(a.grant), r.name(b.grant))
}

// byInvocation orders attempts, those with equal times by their grants.
func (r *run) byInvocation(a, b *attempt) int {
	if c := cmp.Compare(a.acquire.invoke, b.acquire.invoke); c != 0 {
		return c
	}
	return cmp.Compare(r.name(a.grant), r.name(b.grant))
}

// sorted sorts in place what mostly is in order already.
func sorted[T any](all []T, compare func(a, b T) int) {
	if !slices.IsSortedFunc(all, compare) {
		slices.SortStableFunc(all, compare)
	}
}

// lastGrant returns when a key was granted to a worker last, 0 for never.
func (w *actor) lastGrant(of key) int64 {
	if w.lastGrants == nil {
		w.lastGrants = make(map[key]int64)
		for _, a := range w.attempts {
			if a.granted() {
				w.lastGrants[a.key] = a.acquire.done
			}
		}
	}
	return w.lastGrants[of]
}

// between returns the attempts of a worker that may have asked for the lock or held it in
// a time, and a few others.
func (w *actor) between(from, to int64) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		n := sort.Search(len(w.attempts), func(i int) bool { return w.attempts[i].acquire.invoke > to })
		w.ends.since(from, n, func(i int) bool { return yield(w.attempts[i]) })
	}
}

// heldBetween returns the holds of a worker that meet a time.
func (w *actor) heldBetween(from, to int64) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for a := range w.between(from, to) {
			if a.heldIn(from, to) && !yield(a) {
				return
			}
		}
	}
}

// heldIn says whether the hold of an attempt, if it has one, meets a time.
func (a *attempt) heldIn(from, to int64) bool {
	return a.granted() && a.acquire.done <= to && a.holdEnd >= from
}

// next returns the first grant of a key after a time to anybody but one worker, 0 for nobody.
func (k *keyed) next(after int64, but worker) *attempt {
	first := k.after(after)
	if first < len(k.holds) && k.holds[first].worker == but {
		first = int(k.holds[first].other)
	}
	if first >= len(k.holds) {
		return nil
	}
	return k.holds[first]
}

// after is the place of the first hold of a key that began after a time.
func (k *keyed) after(time int64) int {
	return sort.Search(len(k.holds), func(i int) bool { return k.holds[i].acquire.done > time })
}

// over is when a call was over; one without completion lasts to the end of the
// history.
func (c *call) over(end int64) int64 {
	if c.outcome == open {
		return end
	}
	return c.done
}
