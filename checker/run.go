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

// run is a history, sorted and connected once for all checkers. Names are numbers and attempts have a fixed
// size, so that a history of millions of operations fits in memory.
type run struct {
	header   history.Header
	workers  nameSet
	names    *history.Names
	cutOff   int               // line of a truncated event, 0 for none
	attempts attempts          // by first event in the file
	byGrant  []*attempt        // indexed by the name of the grant
	byKey    map[key]*keyed    // what happened to each key
	keys     []key             // sorted by their strings
	byWorker map[worker]*actor // what each worker did
	holds    []*attempt        // granted attempts, by key, then start
	faults   []fault
	// forces are the times in which faults may have been in force; serverFaults are those of faults of the
	// servers.
	forces, serverFaults *faultTimes
	answerLosses         *faultTimes      // times of faults that may have lost an answer
	earlyEndReasons      []earlyEndReason // reasons why a grant may have ended early, the most specific first
	// deferrals maps a grant to the first fault that held back one of its writes.
	deferrals map[grant]*fault
	phases    map[string]history.Event // the last event of each phase
	begin     int64
	end       int64
	// stalls are the times in which the machine of the run scheduled none of its processes.
	stalls []span
	// unobserved is when the observer of the service gave up, 0 for never.
	unobserved int64
	// releasedBy maps a grant to the attempt of another worker whose release ended it.
	releasedBy map[*attempt]*attempt
	// misranked are keys whose tokens contradict the order of their grants.
	misranked map[key]bool
	// lastAsked is the last time at which an acquire began or was answered.
	lastAsked int64
	// clients are the names of users' clients, and clientFaults the protocol errors of each.
	clients, clientFaults []string
	// wakes is the number of notifications that all attempts received.
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
	accesses []access   // at the resource, in the order in which the resource served them
	finals   finals
	// legal are the elements that workers tried to write, without the refused ones. refused are the elements
	// that the resource refused. Both are sorted.
	legal, refused []int64
	// unrecorded are lost updates of the database that keeps the data: it told their workers that they are
	// committed, but has no record of them. They are in the order of the answers. While the run is built,
	// unrecorded holds all answered updates.
	unrecorded []access
	// dropped maps the token of a claim to when the observer of the service learned that the claim was gone,
	// 0 while it is on record. It is nil for a service without an observer.
	dropped map[uint64]int64
	// removals are commands that removed the key, as the observer saw them, by time.
	removals []history.Event
	// doubted caches releasedInDoubt; nil until it is first needed.
	doubted *bool
	// lastAsked holds the last attempts for the key of two different workers; lastAskedAlone does so for the
	// attempts that did not ask to share it. Both are computed lazily.
	lastAsked, lastAskedAlone *[2]*attempt
}

// actor is what one worker did, one attempt after the other.
type actor struct {
	name        string
	attempts    []*attempt // by first event; in finished runs only attempts with an acquire, by its invocation
	ends        endTree    // ends of the attempts, including the time of asking
	hasOpenCall bool       // one of its calls was never answered
	current     *attempt   // the attempt that it began last
	// These times follow from the faults. In cutOffs the worker could not reach a majority of its servers. In
	// lapses the service may have given up the worker's grants. In stops the worker was stopped.
	cutOffs, lapses spans
	stops           []span
	killed          int64 // when it was killed, 0 for never
	// renewals are those that its client sent in the background for the session of each grant, by invocation; under 0
	// for the sessions that serve all attempts. overdue is when these sessions may have been over.
	renewals map[grant][]*sessionRenewal
	overdue  map[grant][]overdue
	// abandoned are the holds that its death may have ended.
	abandoned []*attempt
	// lastGrants caches lastGrant: when the worker was last granted each key. It is nil until first needed.
	lastGrants map[key]int64
}

// access is what the resource did with one read or write.
type access struct {
	seq, time              int64
	element, base, version int64
	grant                  grant
	client                 worker
	write, refused         bool
	unanswered             bool // refused because the lock service did not say who holds the lock
}

// attempt is everything that happened under one grant.
type attempt struct {
	grant         grant
	key           key
	worker        worker
	holder        grant // the acquire was refused because this grant holds the lock
	acquire       call  // valid if asked
	earliestStart int64 // the earliest end of the previous hold, 0 if it is not known
	release       call  // the first release, if tried
	token         uint64
	until         int64
	rare          *rare
	// holdEnd is when the hold of a granted attempt ends. While the run is built it is the last evidence that
	// the worker acted as the holder.
	holdEnd int64
	// deadline is the end of the validity of a granted attempt. While the run is built it is the time after
	// which an accepted access is no such evidence.
	deadline        int64
	block           int32 // index among the blocks of its key
	nextOther       int32 // index of the next hold of the key by another worker, or the number of holds if there is none
	ended           ending
	asked           bool // the history has its acquire
	triedRelease    bool // a release was tried
	expired         bool // the service had forgotten the grant when it arrived
	busy            bool // refused because another worker held the lock
	replaced        bool // another worker was granted the lock during the hold
	usedData        bool // the resource accepted an access under it
	countedAsOrigin bool // counted as an incident that no fault explains
	witnessed       bool // another worker was refused because this grant held the lock
	shared          bool // the acquire asked to share the lock
	malformed       bool // contradicts the schema: not fit for porcupine
}

// rare holds what most attempts lack.
type rare struct {
	renewals []*renewal
	renewed  int64   // invocation of the last acknowledged renewal, 0 for none
	releases []*call // after the first one
	lost     []notification
	// resumes is the first grant of the worker that the service gave again, because no release of it arrived; nil
	// for a grant of its own. again counts the grants given again so far, from 1.
	resumes *attempt
	again   int
	// earlier is a release of such a grant, before it was given again, whose outcome is unknown; nil if there is none.
	earlier *call
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

// sameGrant is the grant that the service gave with this one, perhaps again.
func (a *attempt) sameGrant() *attempt {
	if a.rare == nil || a.rare.resumes == nil {
		return a
	}
	return a.rare.resumes
}

// timesResumed counts the times that the service had given the grant before.
func (a *attempt) timesResumed() int {
	if a.rare == nil {
		return 0
	}
	return a.rare.again
}

// ranksBefore says whether the tokens of two grants put a before b. Two grants with one token precede each other,
// which is a conflict unless they are the same grant.
func (a *attempt) ranksBefore(b *attempt) bool {
	if a.token != b.token || a.sameGrant() != b.sameGrant() {
		return a.token <= b.token
	}
	return a.timesResumed() < b.timesResumed()
}

func (a *attempt) renewals() []*renewal {
	if a.rare == nil {
		return nil
	}
	return a.rare.renewals
}

func (a *attempt) notifications() []notification {
	if a.rare == nil {
		return nil
	}
	return a.rare.lost
}

// releases yields the releases of the attempt. Most attempts have one.
func (a *attempt) releases(yield func(*call) bool) {
	if !a.triedRelease || !yield(&a.release) || a.rare == nil {
		return
	}
	for _, c := range a.rare.releases {
		if !yield(c) {
			return
		}
	}
}

// calls yields all calls to the lock service.
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

// later adds a duration to a time and saturates instead of overflowing.
func later(t int64, d time.Duration) int64 {
	if t > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return t + int64(d)
}

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

func (r *run) name(n history.Name) string { return r.names.String(n) }

func (r *run) nameAll(names ...history.Name) []string {
	all := make([]string, 0, len(names))
	for _, n := range names {
		all = append(all, r.name(n))
	}
	return all
}

// attempt returns the attempt of a grant, nil if the history lacks it.
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

// dataKeys yields the keys whose data the resource or its database knows, sorted by name.
func (r *run) dataKeys(yield func(*keyed) bool) {
	for _, k := range r.keys {
		if d := r.byKey[k]; (len(d.accesses)+len(d.unrecorded) > 0 || d.finals.wasRead()) && !yield(d) {
			return
		}
	}
}

// attempts stores attempts in chunks that never move. Growing one slice would copy them and need twice the
// memory.
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

// byStart orders the holds of one key by start. Equal times are ordered by grant.
func (r *run) byStart(a, b *attempt) int {
	if c := cmp.Or(cmp.Compare(a.acquire.done, b.acquire.done), cmp.Compare(a.acquire.invoke, b.acquire.invoke)); c != 0 {
		return c
	}
	return cmp.Compare(r.name(a.grant), r.name(b.grant))
}

// byInvocation orders attempts by invocation. Equal times are ordered by grant.
func (r *run) byInvocation(a, b *attempt) int {
	if c := cmp.Compare(a.acquire.invoke, b.acquire.invoke); c != 0 {
		return c
	}
	return cmp.Compare(r.name(a.grant), r.name(b.grant))
}

// sorted sorts in place; it is cheap if the slice is already in order, as is usual here.
func sorted[T any](all []T, compare func(a, b T) int) {
	if !slices.IsSortedFunc(all, compare) {
		slices.SortStableFunc(all, compare)
	}
}

// lastGrant returns when the worker was last granted a key, 0 for never.
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

// between yields the attempts of a worker that may have asked for the lock or held it in a time, and a few
// others.
func (w *actor) between(from, to int64) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		n := sort.Search(len(w.attempts), func(i int) bool { return w.attempts[i].acquire.invoke > to })
		w.ends.since(from, n, func(i int) bool { return yield(w.attempts[i]) })
	}
}

// heldBetween yields the holds of a worker that overlap a time.
func (w *actor) heldBetween(from, to int64) iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		for a := range w.between(from, to) {
			if a.heldIn(from, to) && !yield(a) {
				return
			}
		}
	}
}

// heldIn says whether the attempt was granted and its hold overlaps a time.
func (a *attempt) heldIn(from, to int64) bool {
	return a.granted() && a.acquire.done <= to && a.holdEnd >= from
}

// nextGrantExcept returns the first grant of a key after a time to any worker except one (0 excludes none), or nil.
func (k *keyed) nextGrantExcept(after int64, but worker) *attempt {
	first := k.firstHoldAfter(after)
	if first < len(k.holds) && k.holds[first].worker == but {
		first = int(k.holds[first].nextOther)
	}
	if first >= len(k.holds) {
		return nil
	}
	return k.holds[first]
}

// firstHoldAfter is the index of the first hold of a key that began after a time.
func (k *keyed) firstHoldAfter(time int64) int {
	return sort.Search(len(k.holds), func(i int) bool { return k.holds[i].acquire.done > time })
}

// doneOr is when a call was completed. A call without completion lasts to the end of the history.
func (c *call) doneOr(end int64) int64 {
	if c.outcome == open {
		return end
	}
	return c.done
}
