package application

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// more multiplies the number of random histories: go test ./checker/application -more 20.
var more = flag.Uint64("more", 1, "how many times as many random histories to try")

// histories is how many to try where so many are usual: a tenth with -short.
func histories(usual uint64) uint64 {
	if testing.Short() {
		usual /= 10
	}
	return usual * *more
}

const ms = int64(1e6)

// Kinds of locks.
const (
	right  uint64 = iota // it is held until it is given back, or its holder dies
	leased               // it ends by itself after a time, whatever its holder does
	wrong                // it may be granted to two besides, its tokens may begin anew, and work is done again
	kinds
)

// world is an application with a lock, as it truly was.
type world struct {
	*rand.Rand
	kind      uint64
	says      []history.Function
	token     uint64
	owner     map[string]*stay // by key
	stays     []*stay
	works     []*work
	done      map[string]bool  // pieces of work
	again     map[string]int64 // when each was first done again
	pairs     []overlap        // once all is over
	events    []history.Event
	pauses    map[string][]span // by replica
	killed    map[string]int64
	read      map[string]int64 // by replica, when its last line was read
	restarted map[string]bool
	n         int

	applied       int64            // the last request to the resource
	stores, named bool             // it keeps data in the resource, and work too unless it says it; its threads have names
	versions      map[string]int64 // of the keys of the resource
	lost          map[string]bool  // the updates of the resource that were overwritten unseen, by key and the version that replaced them
}

type span struct{ from, to int64 }

// stay is a hold as it was: from when its holder learned of it until it gave the lock back.
type stay struct {
	key              string
	who              holder
	granted, learned int64
	said, leaving    int64 // when it said that it has the lock, and that it will give it back; 0 if it did not
	end              int64
	lease            int64 // its end
	token            uint64
}

// work is a piece of work as it was done.
type work struct {
	id   string
	who  holder
	at   int64
	stay *stay
}

// thread is one that takes the lock again and again.
type thread struct {
	who  holder
	at   int64 // of its next step
	step func(*thread)
	stay *stay
}

const lease, ending = 200 * ms, 5000 * ms

// simulate returns a history, and the truth behind it.
func simulate(seed uint64) (*history.History, *world) {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 5)), kind: seed % kinds, owner: make(map[string]*stay), pauses: make(map[string][]span),
		killed: make(map[string]int64), read: make(map[string]int64), restarted: make(map[string]bool), done: make(map[string]bool), versions: make(map[string]int64), lost: make(map[string]bool), again: make(map[string]int64),
		says: []history.Function{history.Holding, history.Did, history.Accepted, history.Releasing, history.Released},
	}
	switch w.IntN(4) {
	case 0:
		w.says = w.says[:4]
	case 1:
		w.says = slices.Delete(w.says, 3, 4)
	}
	if w.stores = w.IntN(2) == 0; w.stores && w.IntN(2) == 0 {
		w.says = slices.DeleteFunc(w.says, func(f history.Function) bool { return f == history.Did })
	}
	header := saying(everything(), w.says...)
	header.Application.Resource = w.stores
	header = asking(asking(header, "once", history.InvariantOnce), "never", history.InvariantNever)
	names := header.Application.Replicas
	threads := w.threads(names)
	w.nemesis(names)
	for _, name := range names {
		w.print(name, "", history.Started, second, history.Event{})
	}
	for {
		next := slices.MinFunc(threads, func(a, b *thread) int { return cmp.Compare(a.at, b.at) })
		if next.at > second+ending {
			break
		}
		if w.awake(next) {
			next.step(next)
		}
	}
	for _, p := range []struct {
		note string
		at   int64
	}{{history.PhaseReady, second}, {history.PhaseFinal, second + ending + 2*second}, {history.PhaseEnd, second + ending + 4*second}} {
		w.events = append(w.events, history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: p.note, Time: p.at})
	}
	w.pairs = w.overlaps()
	w.ask()
	h := &history.History{Header: header, Events: w.events}
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	number(h.Events)
	return h, w
}

func (w *world) upTo(d int64) int64 { return 1 + w.Int64N(d) }

func (w *world) threads(names []string) []*thread {
	var all []*thread
	named := w.IntN(3) == 0
	w.named = named
	for _, name := range names {
		for i := range 1 + w.IntN(2) {
			who := holder{name, ""}
			if named {
				who.client = fmt.Sprint("t", i)
			} else if i > 0 {
				continue // nobody can tell two threads without names apart
			}
			all = append(all, &thread{who: who, at: second + w.upTo(50*ms), step: w.acquire})
		}
	}
	return all
}

// nemesis decides beforehand when replicas are paused and killed. The record brackets both.
func (w *world) nemesis(names []string) {
	for _, name := range names {
		at := second + w.upTo(800*ms)
		for w.IntN(3) > 0 && at < second+ending-second {
			f := span{at, at + 20*ms + w.upTo(900*ms)}
			w.pauses[name] = append(w.pauses[name], f)
			w.fault(history.Pause, name, f)
			at = f.to + 100*ms + w.upTo(second)
		}
		if w.IntN(3) == 0 {
			w.killed[name] = second + w.upTo(ending)
			w.fault(history.Kill, name, span{w.killed[name], w.killed[name] + 100*ms})
		}
	}
}

func (w *world) fault(kind, target string, f span) {
	w.n++
	id := fmt.Sprint("f", w.n)
	add := func(stage history.Stage, from, to int64) {
		w.events = append(w.events, history.Event{Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Time: to,
			Fault: &history.Fault{ID: id, Kind: kind, Stage: stage, Targets: []string{target}, From: from, To: to}})
	}
	add(history.Applied, f.from-w.upTo(3*ms), f.from+w.upTo(3*ms))
	add(history.Proven, f.from+4*ms, f.from+4*ms)
	add(history.Healed, f.to-w.upTo(3*ms), f.to+w.upTo(3*ms))
	add(history.ProvenHealed, f.to+4*ms, f.to+4*ms)
}

// awake says whether a thread takes its step now. One that is paused takes it later, and one that is killed begins anew.
func (w *world) awake(t *thread) bool {
	name, next := t.who.replica, t.at
	for _, p := range w.pauses[name] {
		if t.at >= p.from && t.at < p.to {
			next = p.to + w.upTo(2*ms)
		}
	}
	if dead := w.killed[name]; dead != 0 && next >= dead && t.at < dead+100*ms {
		if t.stay != nil {
			t.stay.end, t.stay = min(t.stay.end, dead), nil
		}
		if !w.restarted[name] {
			w.restarted[name] = true
			w.print(name, "", history.Started, dead+100*ms, history.Event{})
		}
		t.at, t.step = max(next, dead+100*ms+w.upTo(20*ms)), w.acquire
		return false
	}
	awake := next == t.at
	t.at = next
	return awake
}

func (t *thread) then(after int64, step func(*thread)) { t.at, t.step = t.at+after, step }

// held says whether the lock of a stay is still its own.
func (w *world) held(o *stay, at int64) bool {
	dead := w.killed[o.who.replica]
	if w.kind == right {
		return !(dead != 0 && o.granted < dead && at > dead)
	}
	return o.lease > at
}

func (w *world) acquire(t *thread) {
	key := fmt.Sprint("k", w.IntN(2))
	o := w.owner[key]
	if o != nil && w.held(o, t.at) && !(w.kind == wrong && w.IntN(20) == 0) {
		t.then(w.upTo(30*ms), w.acquire)
		return
	}
	if w.token++; w.kind == wrong && w.IntN(30) == 0 {
		w.token = w.token/2 + 1
	}
	s := &stay{key: key, who: t.who, granted: t.at, lease: t.at + lease, token: w.token}
	w.owner[key], t.stay = s, s
	// The answer is on its way, for longer than a lease if the replica is paused then.
	t.then(w.upTo(5*ms), func(t *thread) {
		s.learned, s.end = t.at, second+10*ending
		w.stays = append(w.stays, s)
		t.then(w.upTo(ms), func(t *thread) {
			s.said = t.at
			w.print(t.who.replica, t.who.client, history.Holding, t.at, history.Event{Key: key, Token: s.token})
			if w.IntN(10) == 0 { // it takes the lock twice
				w.print(t.who.replica, t.who.client, history.Holding, t.at+1, history.Event{Key: key, Token: s.token})
			}
			t.then(w.upTo(20*ms), w.act)
		})
	})
}

func (w *world) act(t *thread) {
	if w.IntN(3) == 0 {
		t.then(w.upTo(10*ms), w.giveBack)
		return
	}
	if w.stores && w.IntN(2) == 0 {
		w.update(t)
		return
	}
	w.do(t)
	t.then(w.upTo(40*ms), w.act)
}

// update reads a value and writes the next one, which the lock of the thread's key is to protect. It may keep another thread
// waiting in between, or be paused.
func (w *world) update(t *thread) {
	key := "of-" + t.stay.key
	w.access(t, history.Event{F: history.Read, Key: key})
	base := w.versions[key]
	t.then(w.upTo(20*ms), func(t *thread) {
		if w.versions[key]++; w.versions[key] != base+1 {
			w.lost[fmt.Sprint(key, w.versions[key])] = true
		}
		w.access(t, history.Event{F: history.Write, Key: key})
		t.then(w.upTo(20*ms), w.act)
	})
}

// access is a request to the resource. No two are applied at the same time.
func (w *world) access(t *thread, e history.Event) {
	w.applied = max(w.applied+1, t.at)
	e.Process, e.Client, e.Type, e.From, e.Time = history.Resource, t.who.replica, history.OK, t.at, w.applied
	w.events = append(w.events, e)
}

// appends says whether work is done by lines in the resource.
func (w *world) appends() bool { return w.stores && !slices.Contains(w.says, history.Did) }

// do does a piece of work, one that has been done at times.
func (w *world) do(t *thread) {
	w.n++
	id := fmt.Sprint("j", w.n)
	if w.appends() {
		id = "jobs/" + id
	}
	if w.kind == wrong && w.IntN(40) == 0 && len(w.works) > 0 {
		id = w.works[w.IntN(len(w.works))].id
	}
	if w.done[id] && w.again[id] == 0 {
		w.again[id] = t.at
	}
	w.done[id] = true
	w.works = append(w.works, &work{id, t.who, t.at, t.stay})
	if w.appends() {
		w.access(t, history.Event{F: history.Write, Key: "jobs", ID: strings.TrimPrefix(id, "jobs/")})
		return
	}
	w.print(t.who.replica, t.who.client, history.Did, t.at, history.Event{ID: id})
}

func (w *world) giveBack(t *thread) {
	s, silent := t.stay, w.IntN(15) == 0 // an exception, say
	if !silent {
		s.leaving = t.at
		w.print(t.who.replica, t.who.client, history.Releasing, t.at, history.Event{Key: s.key})
	}
	t.then(w.upTo(3*ms), func(t *thread) {
		s.end, t.stay = t.at, nil
		if w.owner[s.key] == s {
			delete(w.owner, s.key)
		}
		t.then(w.upTo(3*ms), func(t *thread) {
			if !silent {
				w.print(t.who.replica, t.who.client, history.Released, t.at, history.Event{Key: s.key})
			}
			if !silent && w.IntN(20) == 0 {
				w.do(t)
			}
			t.then(w.upTo(60*ms), w.acquire)
		})
	})
}

// print is a line of a replica. Its launcher reads it some time later, not while it is paused, and never if it is killed
// before. It was printed after the launcher had found nothing.
func (w *world) print(replica, client string, f history.Function, at int64, e history.Event) {
	if f != history.Started && !slices.Contains(w.says, f) {
		return
	}
	from, to := at-w.upTo(3*ms), at+w.upTo(3*ms)
	for _, p := range w.pauses[replica] {
		if from >= p.from && from < p.to {
			from = p.from - w.upTo(3*ms)
		}
		if to >= p.from && to < p.to {
			to = p.to + w.upTo(3*ms)
		}
	}
	if dead := w.killed[replica]; dead != 0 && at < dead && to >= dead {
		return
	}
	to = max(to, w.read[replica])
	w.read[replica] = to
	e.Process, e.Client, e.Type, e.F, e.From, e.Time = replica, client, history.Info, f, max(1, from), to
	w.events = append(w.events, e)
}

// repeated is when a piece of work was first done again, 0 for never.
func (w *world) repeated(id string) int64 { return w.again[id] }

// ask asks which work was done twice, and whether the last two pieces of work were done by one replica; the answer is that
// of one moment between the question and its end. Some questions have no answer.
func (w *world) ask() {
	one := func(name string, at int64, rows func(int64) []string, sure bool) {
		from, to := at-w.upTo(5*ms), at+w.upTo(5*ms)
		e := history.Event{Process: history.Asker, Type: history.OK, F: history.Asked, Key: name, From: from, Time: to}
		if !sure && w.IntN(6) == 0 {
			e.Type, e.Error = history.Info, "refused"
		} else {
			all := rows(at)
			if len(all) > 0 {
				e.Type = history.Fail
			}
			e.Answer = &history.Answer{Rows: all, Count: int64(len(all))}
		}
		w.events = append(w.events, e)
	}
	twice := func(at int64) []string {
		var rows []string
		for id, t := range w.again {
			if t <= at {
				rows = append(rows, id)
			}
		}
		slices.Sort(rows)
		return rows
	}
	for at := second + 10*ms; at < second+ending; at += 100*ms + w.upTo(100*ms) {
		one("once", at, twice, false)
		one("never", at, w.together, false)
	}
	one("once", second+ending+3*second, twice, true)
	one("never", second+ending+3*second, w.together, true)
}

// together are the keys that two hold.
func (w *world) together(at int64) []string {
	var keys []string
	for _, o := range w.pairs {
		if o.from <= at && o.to > at && !slices.Contains(keys, o.a.key) {
			keys = append(keys, o.a.key)
		}
	}
	return keys
}

// TestSimulation: nothing is reported that did not happen, with causes that are true, and most of what happened is found.
func TestSimulation(t *testing.T) {
	found, there, nowhere := make(map[checker.Property]int), make(map[checker.Property]int), make(map[checker.Property]int)
	for seed := range histories(400) {
		h, w := simulate(seed)
		if err := history.Validate(h); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := Check(h)
		for _, p := range Properties() {
			truth, is := w.violated(p)
			if !is {
				continue
			}
			f := r.Finding(p)
			for _, i := range f.Violations {
				if why := w.untrue(p, i); why != "" {
					t.Fatalf("seed %d: %s: %s: %+v", seed, p, why, i)
				}
			}
			if f.Verdict == checker.Violation && !truth {
				t.Fatalf("seed %d: %s is violated, and nothing happened: %+v", seed, p, f.Violations)
			}
			if truth {
				there[p]++
			} else {
				nowhere[p]++
			}
			if f.Verdict == checker.Violation {
				found[p]++
			}
		}
	}
	for p, least := range map[checker.Property]float64{checker.Invariants: 0.9, checker.NoLostUpdate: 0.8, checker.ExactlyOnce: 0.95, checker.NoStaleEffect: 0.8, checker.MutualExclusion: 0.8, checker.FencingOrder: 0.8} {
		t.Logf("%s: found in %d of %d, not there in %d", p, found[p], there[p], nowhere[p])
		if there[p] < 5 || nowhere[p] < 5 || float64(found[p]) < least*float64(there[p]) {
			t.Errorf("%s was found in %d of %d, and is not there in %d", p, found[p], there[p], nowhere[p])
		}
	}
}

// overlap is a time in which two held a key.
type overlap struct {
	a, b *stay
	span
}

func (w *world) overlaps() []overlap {
	var all []overlap
	for _, a := range w.stays {
		for _, b := range w.stays {
			from, to := max(a.learned, b.learned), min(a.end, b.end, second+2*ending)
			if a.key == b.key && a.who != b.who && a.granted < b.granted && from < to {
				all = append(all, overlap{a, b, span{from, to}})
			}
		}
	}
	return all
}

// violated says whether a property was violated in truth, and whether that is known here.
func (w *world) violated(p checker.Property) (violated, known bool) {
	if w.appends() && w.named && p == checker.NoStaleEffect {
		return false, false // nothing tells which thread appended a line
	}
	switch p {
	case checker.NoLostUpdate:
		return len(w.lost) > 0, w.stores
	case checker.ExactlyOnce:
		return slices.ContainsFunc(w.works, func(d *work) bool { return w.repeated(d.id) != 0 }), true
	case checker.MutualExclusion:
		return len(w.pairs) > 0, true
	case checker.NoStaleEffect:
		return slices.ContainsFunc(w.works, func(d *work) bool { return d.stay != nil && w.replaced(d) }), true
	case checker.FencingOrder:
		for i, s := range w.stays {
			if slices.ContainsFunc(w.stays[:i], func(before *stay) bool { return before.key == s.key && disordered(before, s) }) {
				return true, true
			}
		}
		return false, true
	case checker.Invariants:
		return len(w.events) > 0 && w.seen(), true
	}
	return false, false
}

// seen says whether an answer showed that something was wrong.
func (w *world) seen() bool {
	return slices.ContainsFunc(w.events, func(e history.Event) bool { return e.F == history.Asked && e.Type == history.Fail })
}

func disordered(a, b *stay) bool {
	if a.granted > b.granted {
		a, b = b, a
	}
	return a.token >= b.token
}

// replaced says whether somebody else held the key of a piece of work in the hold that it belongs to, before it was done.
func (w *world) replaced(d *work) bool {
	return slices.ContainsFunc(w.stays, func(b *stay) bool {
		return b.key == d.stay.key && b.who != d.who && b.learned < d.at && b.end > d.stay.granted
	})
}

// untrue says what is wrong with an incident, "" if it happened.
func (w *world) untrue(p checker.Property, i checker.Incident) string {
	switch p {
	case checker.NoLostUpdate:
		if !w.lost[fmt.Sprint(i.Key, i.Figures.Next)] {
			return "nothing was lost"
		}
	case checker.MutualExclusion:
		for _, o := range w.pairs {
			names := []string{o.a.who.String(), o.b.who.String()}
			slices.Sort(names)
			if o.a.key == i.Key && slices.Equal(names, slices.Sorted(slices.Values(i.Workers))) && o.from <= i.From && o.to >= i.To {
				return ""
			}
		}
		return "no such overlap"
	case checker.NoStaleEffect:
		for _, d := range w.works {
			if d.id == i.Figures.ID && d.who.String() == i.Workers[0] && d.stay != nil && d.stay.key == i.Key && w.replaced(d) {
				return ""
			}
		}
		return "no such effect"
	case checker.FencingOrder:
		for _, a := range w.stays {
			for _, b := range w.stays {
				if a != b && a.key == i.Key && b.key == i.Key && disordered(a, b) && a.token == i.Figures.Tokens[0] && b.token == i.Figures.Tokens[1] {
					return ""
				}
			}
		}
		return "no such tokens"
	case checker.ExactlyOnce:
		return w.wrongCause(i)
	case checker.Invariants:
		if i.Kind != KindRepeatedWork {
			return ""
		}
		if at := w.repeated(i.Seen.Rows[0]); at == 0 || at > i.From || at < i.Seen.Held {
			return "not in that time"
		}
	}
	return ""
}

// after says whether a stay came after another one, by what was said.
func after(b, a *stay) bool { return a.end <= b.said || a.leaving != 0 && a.leaving < b.said }

// wrongCause says whether no two of the times at which a piece of work was done have a cause.
func (w *world) wrongCause(i checker.Incident) string {
	for n, b := range w.works {
		for _, a := range w.works[:n] {
			if a.id != i.Figures.ID || b.id != a.id {
				continue
			}
			held := a.stay != nil && b.stay != nil
			switch {
			case i.Cause == "", i.Cause == CauseWithoutLock && (a.stay == nil || b.stay == nil),
				i.Cause == CauseOverlappingHolders && held && a.stay.end > b.stay.learned && b.stay.end > a.stay.learned,
				// By what they said: a line that is late, or a release that takes its time, hides that they overlap.
				i.Cause == CauseDecidedBeforeLock && held && (after(b.stay, a.stay) || after(a.stay, b.stay)):
				return ""
			}
		}
	}
	return "cause " + i.Cause + " is wrong"
}
