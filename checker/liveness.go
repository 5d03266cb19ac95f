package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
)

// LivenessGrace is what a waiter may need on top of lease and slack: it has to
// wake up and ask again.
const LivenessGrace = time.Second

// retryPause is the longest time between two attempts of a worker in which it
// still counts as waiting for the lock: workers ask again within a fraction of it.
const retryPause = LivenessGrace / 2

// liveness judges that the lock can be had: after the last fault, or all the time
// if there was none, nobody asks for a key for longer than lease, slack and grace
// while nobody alive holds it and nobody is granted it, and no worker gets nothing
// but errors for that long. Who waits for a holder that still lives is not stuck. A
// kill of a worker is over when it happened.
func liveness(r *run) (judged, OrphanSummary) {
	j := r.recovery()
	orphans := r.orphans()
	if text := orphans.text(r.header.Lease); text != "" {
		j.Summary += "; " + text
	}
	return j, orphans
}

func (r *run) recovery() judged {
	j := judged{Finding: Finding{Property: Liveness, Verdict: Valid}}
	for _, f := range r.faults {
		if f.Applied && f.healedAt == 0 {
			j.Verdict, j.Summary = Undecided, "fault "+f.ID+" was never healed"
			return j
		}
	}
	healed := r.lastHealed()
	since, what := max(healed, r.start()), r.lastFault(healed)
	limit := int64(r.header.Lease) + int64(r.header.Slack) + int64(LivenessGrace)
	after := ""
	if healed != 0 {
		after = "after " + what + " "
	}
	stuck := append(r.stuckKeys(since, limit, after), r.stuckWorkers(since, limit, after)...)
	first, acquired := r.firstAcquired(since)
	switch {
	case len(stuck) > 0:
		return stuckFinding(stuck, limit)
	case healed == 0 && len(r.holds) > 0:
		j.Summary = count(len(r.holds), "acquire", "acquires") + " succeeded, no fault to recover from"
	case acquired:
		j.Summary = fmt.Sprintf("acquired %s after %s", dur(first-since), what)
	case !r.tried(since):
		j.Verdict, j.Summary = Undecided, "nobody tried to acquire the lock after "+what
	default:
		j.Verdict = Undecided
		j.Summary = fmt.Sprintf("nobody acquired the lock after %s, nor tried for longer than the %s that are allowed", what, dur(limit))
	}
	return j
}

func stuckFinding(stuck []Incident, limit int64) judged {
	j := judge(Liveness, stuck)
	j.clause = j.Violations[0].What
	if more := len(stuck) - 1; more > 0 {
		j.clause += fmt.Sprintf(" (and %d more like it)", more)
	}
	j.Summary = fmt.Sprintf("%s; %s were allowed", j.clause, dur(limit))
	return j
}

// stuckKeys finds the times in which somebody tried to get a key, nobody was
// granted it and nobody alive held it.
func (r *run) stuckKeys(since, limit int64, after string) []Incident {
	var found []Incident
	byKey, holds := r.attemptsByKey(), r.holdsByKey()
	for _, key := range sortedKeys(byKey) {
		for _, s := range r.unserved(holds[key], r.wanted(byKey[key], since)) {
			if s.length() <= limit {
				continue
			}
			found = append(found, Incident{
				Key: key, From: s.from, To: s.to, Class: classStuck,
				What: fmt.Sprintf("%snobody could acquire %s for %s, though nobody alive held it", after, key, dur(s.length())),
			})
		}
	}
	return found
}

const classStuck = "stuck"

// wanted returns when somebody tried to get a key: an attempt was open, was being
// taken back, or had failed and was about to be repeated by the same worker.
func (r *run) wanted(attempts []*attempt, since int64) []span {
	stopped := r.stopped()
	failed := make(map[string]int64) // when the last attempt of a worker that got nothing was over
	var spans []span
	for _, a := range byInvocation(attempts) {
		s := span{a.acquire.invoke, min(r.gaveUp(a), stopped)}
		if before, again := failed[a.worker]; again && s.from <= before+int64(retryPause) {
			s.from = before
		}
		delete(failed, a.worker)
		if !a.granted() {
			failed[a.worker] = s.to
		}
		s.from = max(s.from, since)
		spans = append(spans, s)
	}
	return united(spans)
}

func byInvocation(attempts []*attempt) []*attempt {
	asked := slices.DeleteFunc(slices.Clone(attempts), func(a *attempt) bool { return a.acquire == nil })
	slices.SortFunc(asked, func(a, b *attempt) int {
		return cmp.Or(cmp.Compare(a.acquire.invoke, b.acquire.invoke), cmp.Compare(a.grant, b.grant))
	})
	return asked
}

// gaveUp is when a worker no longer tried to get the lock by this attempt. The
// dead try nothing, whatever they have left open.
func (r *run) gaveUp(a *attempt) int64 {
	end := a.acquire.done
	if a.acquire.outcome == history.Invoke {
		end = r.end
	}
	if !a.granted() {
		for _, c := range a.releases {
			end = max(end, c.invoke, c.done)
		}
	}
	if killed := r.killedAt(a.worker); killed != 0 {
		end = min(end, killed)
	}
	return end
}

// killedAt is when a worker was killed, 0 for never.
func (r *run) killedAt(worker string) int64 {
	for _, f := range r.faults {
		if f.does(history.Ends) && f.Applied && slices.Contains(f.Targets, worker) {
			return f.Begin
		}
	}
	return 0
}

// unserved cuts out of the times in which a key was wanted those in which
// somebody alive held it, and cuts them at each grant.
func (r *run) unserved(holds []Hold, wanted []span) []span {
	var rest []span
	for _, w := range wanted {
		for _, h := range holds { // by start
			if h.Start > w.to {
				break
			}
			if h.Start >= w.from {
				rest = append(rest, span{w.from, h.Start})
			}
			w.from = max(w.from, r.heldUntil(h))
		}
		if w.from <= w.to {
			rest = append(rest, w)
		}
	}
	return rest
}

// heldUntil is the end of a hold; of one without any trace, unless its worker is
// known to be dead or to have gone on, that of the history: it may be at work.
func (r *run) heldUntil(h Hold) int64 {
	if h.Ended != EndedWithoutTrace || r.killedAt(h.Worker) != 0 {
		return h.End
	}
	for _, a := range r.attempts {
		if a.worker == h.Worker && a.acquire != nil && a.acquire.invoke > h.Start {
			return h.End
		}
	}
	return r.end
}

// stuckWorkers finds workers that for too long were answered by nothing but
// errors while others were well served. One that is refused because the lock is
// held is not stuck, nor one that still waits for an answer: it may be its turn
// next. So the time is counted between answers.
func (r *run) stuckWorkers(since, limit int64, after string) []Incident {
	stopped := r.stopped()
	first, last := make(map[string]int64), make(map[string]int64)
	var found []Incident
	flush := func(worker string) {
		if from, to := first[worker], last[worker]; to-from > limit && r.othersServed(worker, from, to) {
			found = append(found, Incident{
				From: from, To: to, Class: classStuck, Workers: []string{worker},
				What: fmt.Sprintf("%s%s got nothing but errors for %s when it asked for the lock", after, worker, dur(to-from)),
			})
		}
		delete(first, worker)
		delete(last, worker)
	}
	for _, a := range byInvocation(r.attempts) {
		c := a.acquire
		switch {
		case c.done < since:
		case c.ok() || c.refused():
			flush(a.worker)
		case c.done <= stopped:
			first[a.worker], last[a.worker] = cmp.Or(first[a.worker], c.done), c.done
		}
	}
	for _, worker := range sortedKeys(first) {
		flush(worker)
	}
	return found
}

// othersServed says whether the service was well meanwhile, for everybody but the
// stuck: at least two others were granted the lock, and none of those met an error.
// Where all runs short of time it is chance who gets an answer; one other worker
// that has its connection already would prove nothing.
func (r *run) othersServed(worker string, from, to int64) bool {
	served, troubled := make(map[string]bool), make(map[string]bool)
	meanwhile := func(c *call) bool { return c.done >= from && c.done <= to }
	unknown := func(c *call) bool { return meanwhile(c) && c.unknown() }
	for _, a := range r.attempts {
		if c := a.acquire; c != nil && a.worker != worker && meanwhile(c) {
			served[a.worker] = served[a.worker] || c.ok()
			troubled[a.worker] = troubled[a.worker] || !c.ok() && !c.refused()
		}
		if slices.ContainsFunc(a.renewals, unknown) || slices.ContainsFunc(a.releases, unknown) {
			troubled[a.worker] = true
		}
	}
	n := 0
	for other, was := range served {
		if was && troubled[other] {
			return false
		}
		if was {
			n++
		}
	}
	return n >= 2
}

// lastFault says in words what was over at a time.
func (r *run) lastFault(healed int64) string {
	if healed == 0 {
		return "the start"
	}
	for _, f := range r.faults {
		if f.does(history.Ends) && f.healedAt == healed && f.onlyWorkers(r.header) {
			return strings.Join(f.Targets, ", ") + " was killed"
		}
	}
	return "the last fault was healed"
}

// orphans tells how long locks took to be granted again after their holders were
// killed. Another name of the lock says nothing of the one that was held.
func (r *run) orphans() OrphanSummary {
	var s OrphanSummary
	for i := range r.faults {
		f := &r.faults[i]
		for _, h := range r.holds {
			if !f.widowed(h) {
				continue
			}
			s.Killed++
			next, granted := r.nextGrant(h)
			if !granted {
				s.Stuck++
				next = r.stopped()
			}
			if waited := time.Duration(max(0, next-f.Begin)); s.Victim == "" || waited > s.Longest {
				s.Longest, s.Victim = waited, h.Worker
			}
		}
	}
	return s
}

// text is empty if nobody was killed, or none of their locks was ever granted again.
func (s OrphanSummary) text(lease time.Duration) string {
	var text string
	switch {
	case s.Killed == s.Stuck:
		return ""
	case s.Killed == 1:
		text = fmt.Sprintf("next grant %s after its holder %s was killed", dur(int64(s.Longest)), s.Victim)
	default:
		text = fmt.Sprintf("%d holders were killed, next grant at most %s later (%s)", s.Killed, dur(int64(s.Longest)), s.Victim)
	}
	if s.Stuck > 0 {
		text += fmt.Sprintf(", %d never granted again", s.Stuck)
	}
	if lease > 0 {
		text += ", lease " + dur(int64(lease))
	}
	return text
}

// nextGrant returns when the key of a hold was granted next.
func (r *run) nextGrant(h Hold) (at int64, granted bool) {
	for _, other := range r.holds { // by key, then start
		if other.Key == h.Key && other.Start > h.Start && other.Worker != h.Worker {
			return other.Start, true
		}
	}
	return 0, false
}

// lastHealed is when the last fault was gone, 0 without faults.
func (r *run) lastHealed() int64 {
	healed := int64(0)
	for _, f := range r.faults {
		if f.Applied {
			healed = max(healed, f.healedAt)
		}
	}
	return healed
}

func (r *run) start() int64 {
	if e, ok := r.phases[history.PhaseReady]; ok {
		return e.Time
	}
	return r.begin
}

// stopped is when workers stopped trying, as far as their answers tell: an
// acquire without any may be that of a worker that was killed.
func (r *run) stopped() int64 {
	last := int64(0)
	for _, a := range r.attempts {
		if a.acquire != nil {
			last = max(last, a.acquire.invoke, a.acquire.done)
		}
	}
	if e, ok := r.phases[history.PhaseFinal]; ok {
		return min(last, e.Time)
	}
	return last
}

func (r *run) tried(since int64) bool {
	for _, a := range r.attempts {
		if a.acquire != nil && max(a.acquire.invoke, a.acquire.done) >= since {
			return true
		}
	}
	return false
}

// firstAcquired returns when the first acquire after since was answered ok.
func (r *run) firstAcquired(since int64) (int64, bool) {
	first, found := int64(0), false
	for _, h := range r.holds {
		if h.Start > since && (!found || h.Start < first) {
			first, found = h.Start, true
		}
	}
	return first, found
}
