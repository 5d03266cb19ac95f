package checker

import (
	"container/heap"
	"math"
	"slices"
	"sort"
	"time"
)

// crowdFrom is the number of simultaneous holders of a key from which their overlaps are counted by a crowd.
// Below it, comparing pairs is cheaper than maintaining members.
const crowdFrom = 64

// crowd counts the overlaps of simultaneous holders of a key without comparing each pair: a history can have
// thousands of workers that all hold one key. How a pair counts depends on the earlier hold, on when the
// later hold begins, and on hardly anything else of the later hold. So members are grouped, and all members
// of a group count the same with the next hold. A member changes its group only a few times; the heap turns
// has the next change of each. Pairs that depend on more of the later hold are compared one by one.
type crowd struct {
	run     *run
	into    *together
	members []*member // by start
	over    int       // number of members whose holds are over
	turns   turns
	groups  map[pairing]*pairGroup
	workers map[worker][]*member
	fresh   []*member // members whose key no other worker has been granted since
	lengths [2]lengths
	ends    []int64 // of all holds, sorted
	highest int64   // the highest member.unreleased
}

// member is a hold of the key in a crowd.
type member struct {
	*attempt
	in         *pairGroup // nil if the hold is over
	turn       int64      // when its group changes, or the hold is over
	own        []int64
	ranked     bool
	released   int64 // grantEnd.orReleased
	unreleased int64 // grantEnd.unreleased
	excluded   bool  // excluded from the count of its group for the current hold
}

// pairing is how a pair counts if the later hold begins now.
type pairing struct {
	shared       bool
	valid        bool // the earlier hold is within its validity
	ended        bool // the grant of the earlier hold may have ended
	state        HolderState
	why          origin // of the pair
	class        string
	withoutFault bool   // no fault explains it
	expired      *fault // the fault that explains it if the later grant had expired when it arrived
}

type pairGroup struct {
	pairing
	n        int64     // number of members
	unmarked []*member // members that may not be marked as origins yet, and a few that have left
	doubtful int64     // number of members whose overlap with the current hold is unexplained
}

// countCrowd counts the overlaps of holds[from:] with the active holds and with each other, until no worker
// holds the key. It returns the index of the next hold.
func (t *together) countCrowd(r *run, active, holds []*attempt, from int) (next int) {
	c := &crowd{run: r, into: t, groups: make(map[pairing]*pairGroup), workers: make(map[worker][]*member)}
	last := int64(math.MinInt64)
	for _, a := range active {
		last = max(last, a.holdEnd)
		c.ends = append(c.ends, a.holdEnd)
	}
	for next = from; next < len(holds) && holds[next].acquire.done < last; next++ {
		last = max(last, holds[next].holdEnd)
		c.ends = append(c.ends, holds[next].holdEnd)
	}
	slices.Sort(c.ends)
	c.ends = slices.Compact(c.ends)
	for i := range c.lengths {
		c.lengths[i] = newLengths(len(c.ends))
	}
	for _, a := range active {
		c.add(a, holds[from].acquire.done)
	}
	for _, h := range holds[from:next] {
		c.advance(h.acquire.done)
		c.count(h)
		c.add(h, h.acquire.done)
	}
	return next
}

// add makes a hold a member.
func (c *crowd) add(a *attempt, now int64) {
	if a.holdEnd <= now {
		return
	}
	m := c.run.member(a)
	c.members = append(c.members, m)
	c.workers[a.worker] = append(c.workers[a.worker], m)
	c.fresh = append(c.fresh, m)
	c.lengthsOf(a.shared).add(c.place(a.holdEnd), a)
	c.highest = max(c.highest, m.unreleased)
	c.group(m, now)
	heap.Push(&c.turns, m)
}

func (r *run) member(a *attempt) *member {
	e := r.endOf(a)
	return &member{attempt: a, own: r.turnsOf(a, e), ranked: r.rankedByToken(a), released: e.orReleased(), unreleased: e.unreleased()}
}

// place is the index of the first end that is not before a time.
func (c *crowd) place(end int64) int {
	at, _ := slices.BinarySearch(c.ends, end)
	return at
}

func (c *crowd) lengthsOf(shared bool) *lengths {
	if shared {
		return &c.lengths[1]
	}
	return &c.lengths[0]
}

// group puts a member into the group that it belongs to from a time on.
func (c *crowd) group(m *member, now int64) {
	s := c.run.pairing(m, now)
	g := c.groups[s]
	if g == nil {
		g = &pairGroup{pairing: s}
		c.groups[s] = g
	}
	m.in, m.turn = g, min(m.holdEnd, c.run.nextTurn(m, now))
	g.n++
	if !m.countedAsOrigin {
		g.unmarked = append(g.unmarked, m)
	}
}

// pairing says how pairs with a member count from a time until the member's next turn.
func (r *run) pairing(m *member, now int64) pairing {
	s := pairing{shared: m.shared, valid: m.deadline > now, ended: m.released <= now, state: r.state(m.attempt, now)}
	if s.withoutFault = true; !leaseUnknown(r.header) {
		c := r.whyGone(m.attempt, now, false)
		s.class, s.why, s.withoutFault = c.class, origin{c.fault, c.span.from}, c.withoutFault()
		s.expired = r.whyGone(m.attempt, now, true).fault
	}
	return s
}

// turnsOf returns, sorted, the times at which the pairing of a grant may change.
func (r *run) turnsOf(a *attempt, e grantEnd) []int64 {
	lease, allowance := r.header.Lease, clockAllowance(r.header.Lease)
	all := []int64{a.deadline, a.until - allowance, r.certainLeaseEnd(a), e.lapse, e.release, e.byService()}
	for _, begin := range []int64{a.acquire.invoke, a.earliestStart} {
		all = append(all, later(begin, lease)-allowance)
	}
	for _, c := range a.renewals() {
		all = append(all, c.invoke, c.done, c.until-allowance, later(c.invoke, lease)-allowance)
	}
	if session, is := r.overdue(a); is {
		all = append(all, session.from)
	}
	if releaser := r.releasedBy[a]; releaser != nil {
		all = append(all, releaser.released().invoke)
	}
	if removal := r.removedBy(a, math.MaxInt64); removal != nil {
		all = append(all, removal.Time)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nextTurn is the next time at which the pairing of a member may change.
func (r *run) nextTurn(m *member, now int64) int64 {
	next := int64(math.MaxInt64)
	turn := func(at int64) { // a comparison with a time changes at that time or just after it
		if at < now || at == math.MaxInt64 {
			return
		}
		if at == now {
			at++
		}
		next = min(next, at)
	}
	at, _ := slices.BinarySearch(m.own, now)
	for _, own := range m.own[at:min(at+2, len(m.own))] {
		turn(own)
	}
	w := r.byWorker[m.worker]
	for _, all := range [][]span{w.stops, w.cutOffs.common, w.cutOffs.own} {
		at := sort.Search(len(all), func(i int) bool { return all[i].to >= now })
		for _, s := range all[at:min(at+2, len(all))] {
			turn(s.from)
			turn(s.to)
		}
	}
	turn(r.forces.nextBegin(now))
	for _, e := range r.earlyEndReasons {
		turn(e.faults.nextBegin(now))
	}
	return next
}

// nextBegin is the first beginning of a fault time after a time.
func (t *faultTimes) nextBegin(time int64) int64 {
	if n := t.begunBy(time); n < len(t.times) {
		return t.times[n].from
	}
	return math.MaxInt64
}

// advance moves all members to the groups that they belong to at a time.
func (c *crowd) advance(now int64) {
	for len(c.turns) > 0 && c.turns[0].turn <= now {
		m := c.turns[0]
		if m.in.n--; m.in.n == 0 {
			delete(c.groups, m.in.pairing)
		}
		if m.in = nil; m.holdEnd <= now {
			heap.Pop(&c.turns)
			c.over++
			continue
		}
		c.group(m, now)
		heap.Fix(&c.turns, 0)
	}
	if 2*c.over > len(c.members) {
		c.members, c.over = slices.DeleteFunc(c.members, (*member).isOver), 0
	}
}

func (m *member) isOver() bool { return m.in == nil }

// meets says whether a member and a hold that begins now overlap.
func (m *member) meets(h *attempt) bool {
	return !m.isOver() && m.worker != h.worker && !m.shares(h) && (h.holdEnd > h.acquire.done || m.acquire.done < h.acquire.done)
}

// count counts the overlaps of a hold that begins now.
func (c *crowd) count(h *attempt) {
	if h.holdEnd == h.acquire.done && h.wasGivenUp() {
		return
	}
	c.findEarly(h)
	apart := c.nonOverlapping(h)
	for _, those := range []func(*attempt) []*member{c.listed, c.comparedSingly} {
		for _, m := range those(h) {
			c.into.add(c.run, c.run.overlap(m.attempt, h))
			apart = append(apart, m)
			m.excluded = true
		}
	}
	c.countLengths(h, apart)
	later := c.replacing(h)
	c.countReplacing(h, later)
	apart = append(apart, later...)
	for _, m := range apart {
		m.in.n--
		m.excluded = true
	}
	c.countGroups(h)
	c.notify(h)
	for _, m := range apart {
		m.in.n++
		m.excluded = false
	}
}

// findEarly records the first overlap of the key that began before the service could have ended either grant by
// itself.
func (c *crowd) findEarly(h *attempt) {
	now, key := h.acquire.done, c.run.name(h.key)
	if _, seen := c.into.early[key]; seen || leaseUnknown(c.run.header) || c.highest <= now || c.run.endOf(h).unreleased() <= now {
		return
	}
	if i := slices.IndexFunc(c.members, func(m *member) bool { return m.unreleased > now && m.meets(h) }); i >= 0 {
		c.into.early[key] = c.run.overlap(c.members[i].attempt, h)
	}
}

// nonOverlapping returns the members that do not overlap with a hold, and marks them as excluded. Members that
// share the lock with the hold are not among them.
func (c *crowd) nonOverlapping(h *attempt) (apart []*member) {
	own := slices.DeleteFunc(c.workers[h.worker], (*member).isOver)
	c.workers[h.worker] = own
	apart = slices.Clone(own)
	if h.holdEnd == h.acquire.done {
		for _, m := range c.since(h.acquire.done) {
			if m.worker != h.worker && !m.isOver() {
				apart = append(apart, m)
			}
		}
	}
	for _, m := range apart {
		m.excluded = true
	}
	return apart
}

// since returns the members that were granted the key at a time or later, and some whose holds are over.
func (c *crowd) since(time int64) []*member {
	at := sort.Search(len(c.members), func(i int) bool { return c.members[i].acquire.done >= time })
	return c.members[at:]
}

// listed returns the members whose overlap with a hold may be among the listed incidents. Among incidents
// that begin at the same time the names of the grants decide.
func (c *crowd) listed(h *attempt) (all []*member) {
	if !c.into.mayList(h.acquire.done) {
		return nil
	}
	last, key, grant := c.into.last, c.run.name(h.key), c.run.name(h.grant)
	tied := c.into.full && h.acquire.done == last.From && key >= last.Key
	for _, m := range c.members {
		beyond := tied && (key > last.Key || min(grant, c.run.name(m.grant)) > last.Grants[0])
		if !beyond && !m.excluded && m.meets(h) {
			all = append(all, m)
		}
	}
	return all
}

// comparedSingly returns the members whose overlap with a hold depends on more of the hold than its beginning. If
// both acquires were open at once, they may have been granted in the other order (see inOrder). Then the
// later hold may be the one that ended early (see whyReplaced).
func (c *crowd) comparedSingly(h *attempt) (all []*member) {
	r, now, ranked, released := c.run, h.acquire.done, c.run.rankedByToken(h), c.run.endOf(h).orReleased()
	early := r.endedEarly(h, now)
	doubt := early.class != CauseTwice && !h.expired && !leaseUnknown(r.header)
	always := early.fault == nil && h.reportedGone() // for any member
	if !ranked && released > now && !doubt {
		return nil
	}
	for _, m := range c.since(h.acquire.invoke) {
		byToken := ranked && m.ranked
		switch {
		case m.excluded || !m.meets(h):
		case byToken && m.token > h.token: // handled by replacing
			if m.acquire.done == now {
				all = append(all, m)
			}
		case !byToken && released <= m.acquire.done:
			all = append(all, m)
		case !doubt || m.in.class != CauseTwice:
		case byToken && m.token < h.token, !byToken && m.in.ended: // the order is certain
		case always:
			m.in.doubtful++
		default:
			all = append(all, m)
		}
	}
	return all
}

// replacing returns the members that, by their tokens, were granted the key after a hold that begins now: the
// answer to the hold came late.
func (c *crowd) replacing(h *attempt) (later []*member) {
	if !c.run.rankedByToken(h) {
		return nil
	}
	for _, m := range c.since(h.acquire.invoke) {
		if m.ranked && m.token > h.token && m.acquire.done < h.acquire.done && !m.excluded && m.meets(h) {
			later = append(later, m)
		}
	}
	return later
}

// countReplacing counts the overlaps of a hold with members that were granted the key after it. The hold is
// the earlier one of each pair.
func (c *crowd) countReplacing(h *attempt, later []*member) {
	var p pairing
	earlier, turn := c.run.member(h), int64(math.MinInt64)
	for _, m := range later { // by start
		if m.acquire.done >= turn {
			p, turn = c.run.pairing(earlier, m.acquire.done), c.run.nextTurn(earlier, m.acquire.done)
		}
		p.valid = m.in.valid
		c.countPairs(p, h, m.expired, 1, 0)
		if c.withoutFault(p, m.expired) {
			c.run.origins.mark(h)
		}
	}
}

// countGroups counts the overlaps of a hold with all members that are not excluded.
func (c *crowd) countGroups(h *attempt) {
	for _, g := range c.groups {
		doubtful := g.doubtful
		g.doubtful = 0
		if g.n == 0 || g.shared && h.shared {
			continue
		}
		c.countPairs(g.pairing, h, h.expired, g.n, doubtful)
		if !c.withoutFault(g.pairing, h.expired) {
			continue
		}
		g.unmarked = slices.DeleteFunc(g.unmarked, func(m *member) bool {
			if m.in == g && !m.excluded {
				c.run.origins.mark(m.attempt)
			}
			return m.in != g || m.countedAsOrigin
		})
	}
}

// countPairs counts n pairs with a hold that begins now; doubtful of them are unexplained. expired says that
// the later grant of each pair had expired when it arrived.
func (c *crowd) countPairs(p pairing, h *attempt, expired bool, n, doubtful int64) {
	class, cause, why := UseAfterExpiry, p.class, p.why
	if p.valid && (h.deadline > h.acquire.done || h.deadline == h.acquire.done && h.holdEnd == h.acquire.done) {
		class = DoubleGrant
	}
	if expired {
		cause, why = CauseExpiredGrant, origin{fault: p.expired}
	}
	if leaseUnknown(c.run.header) {
		class = Unclassified
	} else {
		c.into.because(cause, n-doubtful)
		c.into.because(CauseUnexplained, doubtful)
	}
	c.into.summary.count(class, p.state, n)
	c.into.more(c.run.name(h.key), n)
	if !c.withoutFault(p, expired) {
		c.run.origins.explain(why)
	}
}

// withoutFault says that no fault explains a pair.
func (c *crowd) withoutFault(p pairing, expired bool) bool {
	if expired && !leaseUnknown(c.run.header) {
		return p.expired == nil
	}
	return p.withoutFault
}

// countLengths adds up how long a hold overlaps with the members that are not excluded.
func (c *crowd) countLengths(h *attempt, apart []*member) {
	now, sum := h.acquire.done, int64(0)
	if h.holdEnd == now {
		return
	}
	for i := range c.lengths {
		l := &c.lengths[i]
		if l == c.lengthsOf(true) && h.shared {
			continue
		}
		sum += l.along(c.place(now+1), c.place(h.holdEnd), h)
		if latest := l.latestBut(h.worker); latest > now {
			c.into.summary.Longest = max(c.into.summary.Longest, time.Duration(min(latest, h.holdEnd)-now))
		}
	}
	for _, m := range apart {
		if !m.shares(h) {
			sum -= min(m.holdEnd, h.holdEnd) - now
		}
	}
	c.into.summary.Sum += time.Duration(sum)
}

// notify records when the members that a hold replaces learned of it.
func (c *crowd) notify(h *attempt) {
	c.fresh = slices.DeleteFunc(c.fresh, func(m *member) bool {
		if !m.isOver() && !m.excluded && !m.shares(h) {
			c.into.notify(overlap{earlier: m.attempt, later: h})
		}
		return m.isOver() || m.replaced
	})
}

// turns is a heap of members, ordered by their next turns.
type turns []*member

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].turn < t[j].turn }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(m any)        { *t = append(*t, m.(*member)) }

func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// lengths adds up how long holds overlap with another hold.
type lengths struct {
	number, sum fenwick // of the ends, by their indexes
	// latest are the latest ends of two different workers, the later one first.
	latest [2]struct {
		end    int64
		worker worker
	}
}

func newLengths(places int) lengths {
	l := lengths{number: make(fenwick, places+1), sum: make(fenwick, places+1)}
	for i := range l.latest {
		l.latest[i].end = math.MinInt64
	}
	return l
}

func (l *lengths) add(place int, a *attempt) {
	l.number.add(place, 1)
	l.sum.add(place, a.holdEnd)
	at := 0
	if a.worker != l.latest[0].worker && a.holdEnd <= l.latest[0].end {
		at = 1
	} else if a.worker != l.latest[0].worker {
		l.latest[1] = l.latest[0]
	}
	if a.holdEnd > l.latest[at].end {
		l.latest[at].end, l.latest[at].worker = a.holdEnd, a.worker
	}
}

// latestBut is the latest end of a hold of any worker except one.
func (l *lengths) latestBut(w worker) int64 {
	if l.latest[0].worker == w {
		return l.latest[1].end
	}
	return l.latest[0].end
}

// along is how long the holds that end at index from or later overlap with a hold that ends at index to.
func (l *lengths) along(from, to int, h *attempt) int64 {
	within, beyond := l.number.between(from, to), l.number.between(to, len(l.number))
	return l.sum.between(from, to) + beyond*h.holdEnd - (within+beyond)*h.acquire.done
}

// fenwick is a tree of prefix sums. (P. Fenwick, "A new data structure for cumulative frequency tables",
// 1994.)
type fenwick []int64

func (f fenwick) add(place int, n int64) {
	for ; place < len(f); place |= place + 1 {
		f[place] += n
	}
}

// between is the sum of the numbers from one index up to, but not including, another.
func (f fenwick) between(from, to int) int64 {
	if from >= to {
		return 0
	}
	return f.before(to) - f.before(from)
}

func (f fenwick) before(place int) (sum int64) {
	for place--; place >= 0; place = place&(place+1) - 1 {
		sum += f[place]
	}
	return sum
}
