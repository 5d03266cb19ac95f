package checker

import (
	"math"
	"slices"

	"lockcheck/history"
)

// record is an independent reading of a history, which uses nothing of the checkers, to compare them with.
type record struct {
	header              history.Header
	grants              []*attempted // by their first event
	byID                map[string]*attempted
	accesses            []history.Event // that the resource accepted
	refused             []history.Event
	final               map[string]history.Event
	killed              map[string]int64 // earliest time of the kill
	faults              map[string][]history.Fault
	order               []string // of faults
	end                 int64
	tokensMislead       bool // its tokens do not tell the order of grants
	nothingEndedWrongly bool // no grant ended wrongly
}

// attempted is one attempt to acquire. Times that are not known are -1.
type attempted struct {
	id, worker, key string
	asked, answered int64
	outcome         history.Type // "" without an answer
	token           uint64
	shared, dead    bool
	holder          string
	until           int64 // of the acquire and the renewals
	renewals        []operation
	releases        []operation
	lost            []history.Event
	lastSeen        int64 // last evidence that the worker acted under the grant
}

type operation struct {
	from, to int64
	outcome  history.Type
	until    int64
}

func recordOf(h *history.History) *record {
	r := &record{
		header: h.Header, byID: make(map[string]*attempted), final: make(map[string]history.Event),
		killed: make(map[string]int64), faults: make(map[string][]history.Fault),
	}
	for _, e := range h.Events { // a stage is recorded after it began
		if r.end = max(r.end, e.Time); e.Fault != nil {
			r.fault(*e.Fault)
		}
	}
	current := make(map[string]*attempted)
	for _, e := range h.Events {
		switch e.Process {
		case history.Harness, history.Service, history.Nemesis:
		case history.Resource:
			r.access(e)
		default:
			r.worker(e, current)
		}
	}
	return r
}

func (r *record) fault(f history.Fault) {
	if _, known := r.faults[f.ID]; !known {
		r.order = append(r.order, f.ID)
	}
	r.faults[f.ID] = append(r.faults[f.ID], f)
	if f.Stage != history.Applied || !history.Does(f.Kind, history.Ends) {
		return
	}
	for _, target := range f.Targets {
		if _, dead := r.killed[target]; !dead {
			r.killed[target] = f.From
		}
	}
}

func (r *record) access(e history.Event) {
	switch {
	case e.F == history.Final:
		r.final[e.Key] = e
	case e.F == history.Deferred:
	case e.Type != history.OK:
		r.refused = append(r.refused, e)
	default:
		r.accesses = append(r.accesses, e)
		if a := r.byID[e.Grant]; a != nil {
			until := e.Time // an access from a dead worker was sent before its death
			if killed, dead := r.killed[a.worker]; dead {
				until = min(until, killed)
			}
			a.lastSeen = max(a.lastSeen, until)
		}
	}
}

func (r *record) worker(e history.Event, current map[string]*attempted) {
	if e.F == history.Renew && r.header.Renewals { // the client renews its session, whatever the worker does
		return
	}
	a := r.byID[e.Grant]
	if a == nil {
		a = &attempted{id: e.Grant, worker: e.Process, key: e.Key, asked: -1, answered: -1}
		r.byID[e.Grant] = a
		r.grants = append(r.grants, a)
	}
	if e.F == history.Acquire && e.Type == history.Invoke {
		current[e.Process] = a
	}
	if c := current[e.Process]; c != nil {
		c.lastSeen = max(c.lastSeen, e.Time)
	}
	if e.Type == history.Invoke && (e.F == history.Read || e.F == history.Write || e.F == history.Renew) {
		a.lastSeen = max(a.lastSeen, e.Time) // an outer hold continues while its worker takes another lock
	}
	switch {
	case e.F == history.Lost:
		a.lost = append(a.lost, e)
	case e.F == history.Acquire && e.Type == history.Invoke:
		a.asked, a.shared = e.Time, e.Shared
	case e.F == history.Acquire:
		a.answered, a.outcome, a.token, a.until, a.dead, a.holder = e.Time, e.Type, e.Token, e.Until, e.Expired, e.Holder
	case e.F == history.Release:
		a.releases = operate(a.releases, e)
	case e.F == history.Renew:
		a.renewals = operate(a.renewals, e)
	}
}

// operate adds an event to a sequence of consecutive operations.
func operate(all []operation, e history.Event) []operation {
	if e.Type == history.Invoke {
		return append(all, operation{from: e.Time, to: -1})
	}
	last := &all[len(all)-1]
	last.to, last.outcome, last.until = e.Time, e.Type, e.Until
	return all
}

func (a *attempted) granted() bool { return a.outcome == history.OK }

// released is the first release that was answered ok, nil for none.
func (a *attempted) released() *operation {
	for i := range a.releases {
		if a.releases[i].outcome == history.OK {
			return &a.releases[i]
		}
	}
	return nil
}

// holdEnd is when the worker stopped acting as the holder.
func (a *attempted) holdEnd() int64 {
	end := int64(math.MaxInt64)
	for _, c := range a.releases {
		end = min(end, c.from)
	}
	for _, e := range a.lost {
		end = min(end, e.Time)
	}
	if end == math.MaxInt64 {
		end = a.lastSeen
	}
	return max(end, a.answered)
}

// deadline is the end of the validity if the client computes one, else the end of the hold.
func (a *attempted) deadline() int64 {
	if a.until == 0 {
		return a.holdEnd()
	}
	end := a.until
	for _, c := range a.renewals {
		if c.outcome == history.OK && c.to <= a.holdEnd() {
			end = max(end, c.until)
		}
	}
	return end
}

// holds returns the granted attempts on a key, by their answers.
func (r *record) holds(key string) []*attempted {
	var all []*attempted
	for _, a := range r.grants {
		if a.granted() && a.key == key {
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b *attempted) int { return int(a.answered - b.answered) })
	return all
}

func (r *record) keys() []string {
	var all []string
	for _, a := range r.grants {
		if !slices.Contains(all, a.key) {
			all = append(all, a.key)
		}
	}
	for key := range r.final {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}

// writes returns the writes that the resource accepted on a key, in order.
func (r *record) writes(key string) (all []history.Event) {
	for _, e := range r.accesses {
		if e.Key == key && e.F == history.Write {
			all = append(all, e)
		}
	}
	return all
}

// before says that a was certainly granted before b: a was answered before b was asked for, or the tokens of
// a service that counts them say so.
func (r *record) before(a, b *attempted) bool {
	if a.answered < b.asked {
		return true
	}
	return r.counts() && !r.tokensMislead && b.answered >= a.asked && a.token != 0 && b.token != 0 && a.token < b.token
}

// disturbed says that a fault of the servers may have been in force in a time, and may have ended a lease
// early.
func (r *record) disturbed(from, to int64) bool {
	for _, id := range r.order {
		f := r.faults[id][0]
		begin, end := f.From, r.end
		for _, stage := range r.faults[id] {
			if stage.Stage == history.Healed {
				end = stage.To
			}
		}
		server := slices.ContainsFunc(slices.Concat(f.Targets, f.Peers), func(name string) bool {
			return slices.Contains(r.header.Servers, name)
		})
		if server && begin <= to && end >= from {
			return true
		}
	}
	return false
}

// earlier says that a was granted before b as far as the record tells. That includes the case that a can have
// ended by the answer to b, and b cannot have ended by the answer to a.
func (r *record) earlier(a, b *attempted) bool {
	if r.before(a, b) || r.before(b, a) {
		return r.before(a, b)
	}
	return r.nothingEndedWrongly && r.ended(a, b.answered) && !r.ended(b, a.answered)
}

// ended says whether a grant may have ended by a time.
func (r *record) ended(a *attempted, at int64) bool {
	from := (&search{header: r.header}).ends(r, a)
	for _, c := range a.releases {
		if c.outcome != history.Fail {
			from = min(from, c.from)
		}
	}
	return from <= at
}

// counts says that tokens tell the order of grants.
func (r *record) counts() bool { return r.header.Tokens && r.header.Permits <= 1 }

// together returns the pairs of holds that two workers had at once, as ids. For a semaphore it returns one
// pair for each hold that exceeded the permits.
func (r *record) together() (pairs [][2]*attempted) {
	for _, key := range r.keys() {
		holds := r.holds(key)
		for i, b := range holds {
			var with [][2]*attempted
			for _, a := range holds[:i] {
				// A hold without length counts if it lies within another one.
				if !(a.shared && b.shared) && a.holdEnd() > b.answered && (b.holdEnd() > b.answered || a.answered < b.answered) && (a.worker != b.worker || r.header.Permits > 1) {
					with = append(with, [2]*attempted{a, b})
				}
			}
			if r.header.Permits > 1 {
				if len(with) >= r.header.Permits {
					pairs = append(pairs, with[0])
				}
				continue
			}
			pairs = append(pairs, with...)
		}
	}
	return pairs
}

// givenAgain says whether a grant can be one that its worker had before and never learned to be over. all are the
// grants of its key.
func givenAgain(all []*attempted, g *attempted) bool {
	mine := func(a *attempted) bool { return a.worker == g.worker && a.key == g.key && a.asked < g.asked }
	answered := func(c operation) bool { return c.outcome == history.OK || c.outcome == history.Fail }
	return slices.ContainsFunc(all, func(before *attempted) bool {
		if !mine(before) || !before.granted() || before.token != g.token {
			return false
		}
		return !slices.ContainsFunc(before.renewals, func(c operation) bool { return c.outcome == history.Fail }) &&
			!slices.ContainsFunc(all, func(a *attempted) bool {
				return mine(a) && a.asked >= before.asked && slices.ContainsFunc(a.releases, answered)
			})
	})
}

// askedAgain says whether the worker of a grant asked for its key again by a time. A renewal that is answered after that
// may have been of the new grant, at a service that knows holders by their names.
func (r *record) askedAgain(a *attempted, by int64) bool {
	return slices.ContainsFunc(r.grants, func(b *attempted) bool {
		return b.worker == a.worker && b.key == a.key && b.asked > a.answered && b.asked <= by
	})
}
