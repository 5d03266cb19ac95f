package checker

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/history"
)

// LivenessGrace is what a waiter may need on top of lease and slack: it has to
// wake up and ask again.
const LivenessGrace = time.Second

// liveness judges that the lock can be had again after the last fault: some
// acquire succeeds within lease, slack and grace. The time counts from when the
// last fault was healed, or from the end of the last hold that was open by then:
// who waits for a holder that still lives is not stuck. A kill of a worker is
// over when it happened.
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
	if len(r.holds) == 0 && !r.tried(0) {
		j.Verdict, j.Summary = Undecided, "nobody tried to acquire the lock"
		return j
	}
	healed, since := r.quiet()
	if healed == 0 && len(r.holds) > 0 {
		j.Summary = count(len(r.holds), "acquire", "acquires") + " succeeded, no fault to recover from"
		return j
	}
	limit := int64(r.header.Lease) + int64(r.header.Slack) + int64(LivenessGrace)
	first, acquired := r.firstAcquired(max(healed, r.start()))
	what := r.lastFault(healed)
	if healed == 0 {
		what = "the start"
	}
	switch stop := r.stopped(); {
	case acquired && first-since <= limit:
		j.Summary = fmt.Sprintf("acquired %s after %s", dur(max(0, first-since)), what)
	case !r.tried(since):
		j.Verdict, j.Summary = Undecided, "nobody tried to acquire the lock after "+what
	case stop-since < limit:
		j.Verdict = Undecided
		j.Summary = fmt.Sprintf("the workers stopped %s after %s, too early to tell", dur(max(0, stop-since)), what)
	default:
		j.stuck(r, since, limit, first, acquired, what)
	}
	return j
}

// lastFault says in words what was over at a time.
func (r *run) lastFault(healed int64) string {
	for _, f := range r.faults {
		if f.Kind == kindKill && f.healedAt == healed && f.onlyWorkers(r.header) {
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

func (j *judged) stuck(r *run, since, limit, first int64, acquired bool, what string) {
	until := r.stopped()
	if acquired {
		until = first
	}
	j.Verdict, j.Total = Violation, 1
	j.clause = fmt.Sprintf("nobody could acquire the lock for %s after %s", dur(until-since), what)
	j.Summary = fmt.Sprintf("%s; %s were allowed", j.clause, dur(limit))
	j.Violations = []Incident{{From: since, To: until, What: j.clause, Class: "stuck"}}
}

// quiet returns when the last fault was gone, 0 without faults, and from when on
// a waiter could expect to be served.
func (r *run) quiet() (healed, since int64) {
	for _, f := range r.faults {
		if f.Applied {
			healed = max(healed, f.healedAt)
		}
	}
	since = max(healed, r.start())
	for _, h := range r.holds {
		if h.Start <= healed {
			since = max(since, h.End)
		}
	}
	return healed, since
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
