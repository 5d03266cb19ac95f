package checker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// oracle compares the results of the checkers with the truth of a simulation and with its own definitions on
// the record.
type oracle struct {
	world   simulation.World
	truth   *simulation.Truth
	record  *record
	results Results
	wrong   map[string]string // disagreements, by kind
	// searched is the number of keys of which all orders were tried; illegal is the number of keys without a
	// legal order.
	searched, illegal int
}

// disagree returns the disagreements with the truth, by kind; empty if there are none.
func disagree(w simulation.World, h *history.History, truth *simulation.Truth) map[string]string {
	return askOracle(w, h, truth, Check(h, Options{})).wrong
}

// askOracle compares results with the truth.
func askOracle(w simulation.World, h *history.History, truth *simulation.Truth, results Results) *oracle {
	o := &oracle{world: w, truth: truth, record: recordOf(h), results: results, wrong: make(map[string]string)}
	o.record.tokensMislead = truth.Wrong["token"]+truth.Wrong["double"]+truth.Wrong["upsert"] > 0
	o.record.nothingEndedWrongly = len(o.serviceWrong()) == 0
	if o.results.bug() {
		o.fail("contradiction", "%s", factsText(o.results.of(Assumptions).Facts))
	}
	o.rightService()
	o.overlaps()
	o.releases()
	o.renewals()
	o.tokens()
	o.repeated()
	o.dead()
	o.stale()
	o.accesses()
	o.updates()
	o.causes()
	o.order()
	o.coverage()
	o.states()
	o.stuck()
	return o
}

func (o *oracle) fail(kind, what string, args ...any) {
	if _, known := o.wrong[kind]; !known {
		o.wrong[kind] = fmt.Sprintf(what, args...)
	}
}

// rightService: a service that did nothing wrong must not be accused.
func (o *oracle) rightService() {
	service := 0
	for _, n := range o.serviceWrong() {
		service += n
	}
	if service > 0 {
		return
	}
	for _, p := range []Property{Linearizability, NoWrongRelease, NoWrongRenewal, FencingOrder, Liveness} {
		if f := o.results.of(p); f.Verdict == Violation {
			o.fail("right service: "+string(p), "%s: %v", factsText(f.Facts), f.Violations)
		}
	}
	if n := o.results.Overlaps.DoubleGrants; n > 0 {
		o.fail("right service: double grant", "%d: %v", n, o.results.of(MutualExclusion).Violations)
	}
}

// serviceWrong is what the service did wrong, without the errors of the resource.
func (o *oracle) serviceWrong() map[string]int {
	service := make(map[string]int)
	for what, n := range o.truth.Wrong {
		if !slices.Contains([]string{"drop", "twin", "phantom", "applies", "cries"}, what) {
			service[what] = n
		}
	}
	return service
}

func (o *oracle) overlaps() {
	pairs := o.record.together()
	s := o.results.Overlaps
	if int(s.Total()) != len(pairs) || o.results.of(MutualExclusion).Total != len(pairs) {
		o.fail("overlaps counted", "%d, want %s", s.Total(), names(pairs))
	}
	var longest, sum int64
	for _, p := range pairs {
		length := min(p[0].holdEnd(), p[1].holdEnd()) - max(p[0].answered, p[1].answered)
		longest, sum = max(longest, length), sum+length
	}
	if o.world.Permits <= 1 && (int64(s.Longest) != longest || int64(s.Sum) != sum) {
		o.fail("overlaps measured", "%s and %s in all, want %d and %d", s.Longest, s.Sum, longest, sum)
	}
	for _, v := range o.results.of(MutualExclusion).Violations {
		for _, w := range v.Workers {
			if killed, dead := o.truth.Killed[w]; dead && v.To > killed {
				o.fail("overlap with the dead", "%v, killed at %d", v, killed)
			}
		}
	}
	if (o.world.Session || o.world.Lease == 0) && len(o.record.order) > 0 || o.world.Permits > 1 {
		return // until when a client vouched for a lock is in no event
	}
	doubleGrants := 0
	for _, p := range pairs {
		from, instant := p[1].answered, p[1].holdEnd() == p[1].answered
		if from < p[0].deadline() && (from < p[1].deadline() || instant && from == p[1].deadline()) {
			doubleGrants++
		}
	}
	if int(s.DoubleGrants) != doubleGrants {
		o.fail("double grants counted", "%d, want %d", s.DoubleGrants, doubleGrants)
	}
}

func names(pairs [][2]*attempted) string {
	var all []string
	for _, p := range pairs {
		all = append(all, p[0].id+" and "+p[1].id)
	}
	return fmt.Sprintf("%d: %s", len(pairs), strings.Join(all, ", "))
}

// mayHaveTaken says that the service let the worker of x take what y had, without telling the worker of x that it
// had a grant, and that y lost it by no fault. A release by another worker is an equally good explanation.
func (o *oracle) mayHaveTaken(x, y *simulation.Grant) bool {
	bad := []simulation.End{simulation.Early, simulation.Forgotten, simulation.Denied, simulation.Taken}
	return !o.record.byID[x.ID].granted() && (slices.Contains(bad, y.Ended) || slices.Contains(x.Excluded, y.ID))
}

// releases: a release is wrong if another worker was granted the lock after the released grant and before the
// release, and still holds it. Each release counts once.
func (o *oracle) releases() {
	f := o.results.of(NoWrongRelease)
	if o.world.Permits > 1 {
		return
	}
	found := make(map[string]bool)
	for _, v := range f.Violations {
		a, b := v.Grants[0], v.Grants[1]
		if found[a] {
			o.fail("release counted twice", "%v", v)
		}
		found[a] = true
		if x, y := o.truth.Grants[a], o.truth.Grants[b]; !(y.Order > x.Order && y.Order < x.ReleaseOrder) &&
			!o.mayHaveTaken(x, y) && !o.deceived(o.record.byID[a], o.record.byID[b]) {
			o.fail("release not wrong", "%v: %+v %+v", v, *x, *y)
		}
	}
	for _, a := range o.record.grants {
		c := a.released()
		if c == nil || !a.granted() || found[a.id] {
			continue
		}
		for _, b := range o.record.holds(a.key) {
			if b.worker != a.worker && !(a.shared && b.shared) && a.answered < b.asked && !b.dead && b.answered < c.from && b.holdEnd() > c.to &&
				!o.record.ended(b, c.to) && o.record.ended(a, b.answered) && !o.record.disturbed(b.asked, c.to) {
				o.fail("wrong release missed", "%s while %s held", a.id, b.id)
			}
		}
	}
}

// renewals: a renewal is wrong if another worker was granted the lock after the renewed grant, once its lease had run
// out, and before the renewal.
func (o *oracle) renewals() {
	found := make(map[string]bool)
	for _, v := range o.results.of(NoWrongRenewal).Violations {
		a, b := v.Grants[0], v.Grants[1]
		if found[a] {
			o.fail("renewal counted twice", "%v", v)
		}
		found[a] = true
		if x, y := o.truth.Grants[a], o.truth.Grants[b]; !(y.Order > x.Order && y.Order < x.RenewOrder) && !o.deceived(o.record.byID[a], o.record.byID[b]) {
			o.fail("renewal not wrong", "%v: %+v %+v", v, *x, *y)
		}
	}
	if o.world.Permits > 1 || o.world.Session || !o.world.Renews {
		return
	}
	for _, a := range o.record.grants {
		for _, b := range o.record.holds(a.key) {
			c, end := o.record.renewedAfter(a, b.answered)
			if a.granted() && c != nil && !found[a.id] && b.worker != a.worker && !(a.shared && b.shared) && a.answered < b.asked && !b.dead &&
				end < b.answered && !o.record.disturbed(b.asked, c.to) && !o.record.askedAgain(a, c.to) {
				o.fail("wrong renewal missed", "%s after %s was granted", a.id, b.id)
			}
		}
	}
}

// renewedAfter returns the first renewal asked for after a time that succeeded, nil for none, and when the
// lease has certainly run out without it and those after it.
func (r *record) renewedAfter(a *attempted, time int64) (after *operation, end int64) {
	end = a.answered
	for i, c := range a.renewals {
		switch {
		case c.from <= time && c.outcome != history.Fail:
			end = max(end, c.to)
		case c.from > time && c.outcome == history.OK && after == nil:
			after = &a.renewals[i]
		}
	}
	return after, end + int64(r.header.Lease)
}

// tokens: each grant whose token is not higher than that of an earlier one is wrong.
func (o *oracle) tokens() {
	if !o.record.counts() {
		return
	}
	found := make(map[string]bool)
	for _, v := range o.results.of(FencingOrder).Violations {
		x, y := o.truth.Grants[v.Grants[0]], o.truth.Grants[v.Grants[1]]
		found[v.Grants[1]] = true
		inTurn := o.record.byID[x.ID].answered < o.record.byID[y.ID].asked && y.Token < x.Token
		if !inTurn && y.Token != x.Token && !(y.Order > x.Order && y.Token < x.Token) || o.truth.Wrong["token"]+o.truth.Wrong["double"]+o.truth.Wrong["sticky"] == 0 {
			o.fail("token not wrong", "%v: %+v %+v", v, *x, *y)
		}
	}
	for _, key := range o.record.keys() {
		holds := o.record.holds(key)
		for _, b := range holds {
			for _, a := range holds {
				again := a.worker == b.worker && a.token == b.token && (o.world.Reentrant > 1 || givenAgain(o.record.grants, b))
				if a.token != 0 && b.token != 0 && a.answered < b.asked && b.token <= a.token && !again && !found[b.id] {
					o.fail("wrong token missed", "%s %d after %s %d", b.id, b.token, a.id, a.token)
				}
			}
		}
	}
}

func (o *oracle) dead() {
	n := 0
	for _, a := range o.record.grants {
		if a.granted() && a.dead {
			n++
		}
	}
	if f := o.results.of(NoExpiredGrant); f.Total != n {
		o.fail("expired grants counted", "%d, want %d", f.Total, n)
	}
}

// stale: a write of a grant after an access of a later grant is stale.
func (o *oracle) stale() {
	if o.world.Permits > 1 {
		return
	}
	found := make(map[int64]bool)
	for _, v := range o.results.of(NoStaleWrite).Violations {
		if found[v.Element] {
			o.fail("stale write counted twice", "%v", v)
		}
		found[v.Element] = true
		a, b := o.record.byID[v.Grants[0]], o.record.byID[v.Grants[1]]
		x, y := o.truth.Grants[a.id], o.truth.Grants[b.id]
		if y.Order < x.Order && !o.deceived(a, b) && !(a.dead && b.dead && a.token < b.token) {
			o.fail("write not stale", "%v: %+v %+v", v, *x, *y)
		}
	}
	for i, w := range o.record.accesses {
		a := o.record.byID[w.Grant]
		if w.F != history.Write || a == nil || found[w.Element] {
			continue
		}
		for _, e := range o.record.accesses[:i] {
			b := o.record.byID[e.Grant]
			if e.Key != w.Key || b == nil || b == a || b.dead && !a.dead || !o.record.earlier(a, b) {
				continue
			}
			again := o.world.Reentrant > 1 && a.worker == b.worker
			newer := !buildsOnLatest(o.world.Guard) || e.F == history.Write && e.Version > w.Base
			if !again && newer {
				o.fail("stale write missed", "element %d of %s after %s had used the data", w.Element, a.id, b.id)
			}
		}
	}
}

// deceived says that the record itself shows the wrong order of two grants. The service counts tokens
// wrongly, or grants a lock whose previous grant cannot have ended.
func (o *oracle) deceived(a, b *attempted) bool {
	wrong := o.serviceWrong()
	tokens := len(wrong) > 0 && a.token != 0 && b.token != 0 && a.token < b.token
	return tokens || len(wrong) > 0 && (o.record.ended(a, b.answered) || o.record.ended(b, a.answered))
}

// accesses counts what the guard refused.
func (o *oracle) accesses() {
	var want FenceSummary
	for _, e := range o.record.refused {
		switch {
		case e.F == history.Write:
			want.RefusedWrites++
		default:
			want.RefusedReads++
		}
		if e.Note != "" {
			want.Unanswered++
		}
	}
	if o.results.Fence != want {
		o.fail("refusals counted", "%+v, want %+v", o.results.Fence, want)
	}
}

// ledger is what became of updates.
type ledger struct{ acknowledged, lost, events, twins, phantoms, refused int64 }

func (o *oracle) updates() {
	if o.world.Workload == history.WorkloadMutex {
		return
	}
	var l ledger
	for _, key := range o.record.keys() {
		if final, read := o.record.final[key]; read && o.world.Workload == history.WorkloadCounter {
			l.counter(o.record.writes(key), final)
		} else if read {
			l.set(o.record, key, contentOf(final))
		}
	}
	u := o.results.Updates
	if u.Acknowledged != l.acknowledged || u.Lost != l.lost {
		o.fail("lost updates counted", "%d of %d, want %+v", u.Lost, u.Acknowledged, l)
	}
	if o.world.Workload == history.WorkloadCounter {
		return
	}
	if u.LossEvents != l.events {
		o.fail("loss events counted", "%d, want %+v", u.LossEvents, l)
	}
	// An element that was refused and is there may count as an update that nobody tried.
	if u.Duplicated != l.twins || u.Phantom < l.phantoms || u.Phantom > l.phantoms+l.refused {
		o.fail("twins and phantoms counted", "%d and %d, want %+v", u.Duplicated, u.Phantom, l)
	}
	f := o.results.of(NoLostUpdate)
	if bad := l.lost+l.twins+l.phantoms+l.refused > 0; bad != (f.Verdict == Violation) {
		o.fail("final state judged", "%s, want %+v", f.Verdict, l)
	}
}

// counter adds up a key that counts its increments.
func (l *ledger) counter(writes []history.Event, final history.Event) {
	var value int64
	if err := json.Unmarshal(final.Value, &value); err != nil {
		panic(err) // the simulation wrote it
	}
	l.acknowledged += int64(len(writes))
	l.lost += max(0, int64(len(writes))-value)
}

// set adds up a key that holds a set. An update is lost by the first later write that was computed without
// it.
func (l *ledger) set(r *record, key string, content []int64) {
	writes := r.writes(key)
	l.acknowledged += int64(len(writes))
	asked, by := make(map[int64]bool), make(map[int64]bool)
	for i, w := range writes {
		asked[w.Element] = true
		if slices.Contains(content, w.Element) {
			continue
		}
		l.lost++
		later := slices.IndexFunc(writes[i+1:], func(later history.Event) bool { return later.Base < w.Version })
		if later < 0 {
			l.events++
		} else {
			by[writes[i+1+later].Element] = true
		}
	}
	l.events += int64(len(by))
	for _, e := range r.refused {
		if e.Key == key && e.F == history.Write && slices.Contains(content, e.Element) {
			l.refused++
			asked[e.Element] = true
		}
	}
	seen := make(map[int64]int)
	for _, x := range content {
		if seen[x]++; seen[x] == 2 {
			l.twins++
		}
		if !asked[x] && seen[x] == 1 {
			l.phantoms++
		}
	}
}

// repeated: each shared hold to which the resource showed two versions is one incident.
func (o *oracle) repeated() {
	if o.world.Workload != history.WorkloadReadWrite {
		return
	}
	want := make(map[string]bool)
	seen := make(map[string]int64)
	for _, e := range o.record.accesses {
		a := o.record.byID[e.Grant]
		if e.F != history.Read || a == nil || !a.granted() || !a.shared || e.Time > a.holdEnd() {
			continue
		}
		if before, twice := seen[a.id]; twice && before != e.Version {
			want[a.id] = true
		}
		seen[a.id] = e.Version
	}
	f := o.results.of(RepeatableRead)
	if f.Total != len(want) {
		o.fail("changed reads counted", "%d, want %d", f.Total, len(want))
	}
	for _, v := range f.Violations {
		if !want[v.Grants[0]] {
			o.fail("read did not change", "%v", v)
		}
	}
}
