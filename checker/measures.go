package checker

import (
	"cmp"
	"math"
	"time"

	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Measures are figures for choosing among locks that are known to be right: speed, fairness and
// unavailability (docs/verdicts.md, "Figures"). The verdict of a run does not rest on them; thresholds of a
// comparison can. Times in which a worker or a server was stopped, cut off or dead are included.
type Measures struct {
	// Active is the time in which the workers worked. It begins with the phase ready (else with the first
	// event). It ends with the last request or answer of an acquire, or the end of the last hold if that is
	// later, but not after the phase final.
	Active time.Duration `json:"active_ns"`
	// Work is the work done in Active: acknowledged updates, or holds if the workload updates nothing.
	Work int64 `json:"work"`

	// Acquire is the time of granted acquires, from invocation to answer.
	Acquire stats.Histogram `json:"acquire"`
	// Uncontended is the part of Acquire during which no other attempt asked for the key, held it, or may
	// have had it at the service. Another attempt may have it until its release was answered, and without
	// such an answer until the next grant.
	Uncontended stats.Histogram `json:"uncontended"`
	// Wait is the time from the first attempt that a worker made after its last grant to its next grant:
	// locks that are polled refuse many attempts before one is granted. A worker that goes on with another
	// key is still waiting.
	Wait stats.Histogram `json:"wait"`
	// Release is the time of acknowledged releases of grants.
	Release stats.Histogram `json:"release"`

	// Failover is the distribution that FailoverSummary summarizes: from when the holder was stopped, cut off
	// or killed, for longer than its lease, until the next grant to another worker.
	Failover stats.Histogram `json:"failover"`
	// Handover is the time from a release until the lock is granted again, as far as another worker asked for it and
	// no fault was near (see Noticed.IdleReleases).
	Handover stats.Histogram `json:"handed_over,omitzero"` // "handover" is Failover in schema 1
	// Notified is the time from the next grant to another worker until the holder learned of it; its maximum
	// is LossNotificationSummary.Latest.
	Notified stats.Histogram `json:"notified"`

	// FaultTime is the part of Active in which any proven fault was certainly in force. A killed worker stays
	// dead; its kill counts until the lock must be free again, that is for the lease and its grace period.
	FaultTime time.Duration `json:"fault_time_ns"`
	// Outage is the part of FaultTime that lies within gaps (see LongestGap) longer than OutageGap.
	Outage time.Duration `json:"outage_ns"`
	// LongestGap is the longest time without a grant of any key to any worker: between consecutive grants,
	// before the first or after the last. The beginning of a gap, in which no worker asked for the lock, does
	// not count.
	LongestGap time.Duration `json:"longest_gap_ns"`

	// Waited counts the grants that were asked for while another waiter was already waiting for the same key,
	// and was granted it later. Bypassed counts those of them that came before that waiter's grant. A worker
	// that was refused and asks again has been waiting since its first request. Requests less than AskedApart
	// apart count as simultaneous.
	Waited   int64 `json:"waited"`
	Bypassed int64 `json:"bypassed"`

	// Wakes is the number of notifications that waiting attempts received. WakeReleases is the number of
	// releases, as in Release, that could have caused them. Both are 0 for a lock that does not count them.
	Wakes        int64 `json:"wakes"`
	WakeReleases int64 `json:"wake_releases"`
}

// OutageGap is how long no worker must be granted the lock, although one asks for it, for that to count as an
// outage. Sections of that length cause outages by themselves.
const OutageGap = 500 * time.Millisecond

// AskedApart is how far apart two requests must be to be assumed to reach the service in the order in which
// they were made.
const AskedApart = 10 * time.Millisecond

// Throughput is the work per second; false if no time passed.
func (m *Measures) Throughput() (float64, bool) {
	return float64(m.Work) / m.Active.Seconds(), m.Active > 0
}

// Availability is the share of FaultTime without Outage; false if FaultTime is 0.
func (m *Measures) Availability() (float64, bool) {
	return 1 - float64(m.Outage)/float64(m.FaultTime), m.FaultTime > 0
}

// WakesPerRelease is how many waiters a release woke up on average; false if that was not counted.
func (m *Measures) WakesPerRelease() (float64, bool) {
	return float64(m.Wakes) / float64(m.WakeReleases), m.WakeReleases > 0
}

// Merge adds the results of another run. Everything adds up except LongestGap, which is the maximum.
func (m *Measures) Merge(other Measures) {
	m.Active += other.Active
	m.Work += other.Work
	m.Acquire.Merge(other.Acquire)
	m.Uncontended.Merge(other.Uncontended)
	m.Wait.Merge(other.Wait)
	m.Release.Merge(other.Release)
	m.Failover.Merge(other.Failover)
	m.Handover.Merge(other.Handover)
	m.Notified.Merge(other.Notified)
	m.FaultTime += other.FaultTime
	m.Outage += other.Outage
	m.LongestGap = max(m.LongestGap, other.LongestGap)
	m.Waited += other.Waited
	m.Bypassed += other.Bypassed
	m.Wakes += other.Wakes
	m.WakeReleases += other.WakeReleases
}

// measures computes everything except Failover, Handover and Notified, which other findings provide.
func (r *run) measures(ops Operations) Measures {
	active := r.activeTime()
	m := Measures{Active: time.Duration(active.length()), Work: ops.Acknowledged, Wakes: r.wakes}
	if history.WritesNothing(r.header.Workload) {
		m.Work = int64(len(r.holds))
	}
	for _, w := range r.byWorker {
		m.addWorker(w)
	}
	if r.header.Wakes {
		m.WakeReleases = m.Release.N
	}
	for _, key := range r.keys {
		k := r.byKey[key]
		asked := r.asked(k.attempts)
		m.addUncontended(r, k, asked)
		m.addOrder(requests(asked, len(k.holds)))
	}
	m.addGaps(r, united(r.provenFaultTimes(active)))
	return m
}

// activeTime is the time that Measures.Active measures.
func (r *run) activeTime() span {
	last := r.lastAsked
	for _, h := range r.holds {
		last = max(last, h.holdEnd)
	}
	if e, ok := r.phases[history.PhaseFinal]; ok {
		last = min(last, e.Time)
	}
	return span{r.start(), max(last, r.start())}
}

// addWorker measures the grants of a worker.
func (m *Measures) addWorker(w *actor) {
	var first *attempt // first attempt since the last grant
	for _, a := range w.attempts {
		if first == nil {
			first = a
		}
		if !a.granted() {
			continue
		}
		m.Wait.Add(time.Duration(a.acquire.done - first.acquire.invoke))
		m.Acquire.Add(a.acquire.took())
		if c := a.released(); c != nil {
			m.Release.Add(c.took())
		}
		first = nil
	}
}

// took is the duration of an answered call.
func (c *call) took() time.Duration { return time.Duration(c.done - c.invoke) }

// addUncontended measures the acquires of a key that no other attempt overlapped. asked is sorted by
// invocation.
func (m *Measures) addUncontended(r *run, k *keyed, asked []*attempt) {
	before := int64(math.MinInt64) // until then an earlier attempt may have had the key
	for i, a := range asked {
		last := i+1 == len(asked) || asked[i+1].acquire.invoke > a.acquire.done
		if a.granted() && before < a.acquire.invoke && last {
			m.Uncontended.Add(a.acquire.took())
		}
		before = max(before, r.mayHaveUntil(k, a))
	}
}

// mayHaveUntil is until when an attempt asked for a key, held it, or may have had it at the service, whatever
// its worker believed.
func (r *run) mayHaveUntil(k *keyed, a *attempt) int64 {
	if a.acquire.failed() {
		return a.acquire.done
	}
	end, since := a.holdEnd, a.acquire.done
	if !a.granted() {
		end = r.gaveUp(a)
		since = end
	}
	for c := range a.releases {
		if !c.unknown() {
			return max(end, c.done)
		}
	}
	if next := k.nextGrantExcept(since, 0); next != nil {
		return max(end, next.acquire.done)
	}
	return r.end
}

// request is the time from when a worker first asked for a key until it was granted it.
type request struct{ asked, granted int64 }

// requests returns the requests that were granted, in the order in which they were made.
func requests(asked []*attempt, holds int) []request {
	all := make([]request, 0, holds)
	refused := make(map[worker]int64) // first request of each worker since its last grant
	for _, a := range asked {
		since := a.acquire.invoke
		if len(refused) > 0 {
			if first, again := refused[a.worker]; again {
				since = first
			}
		}
		if !a.granted() {
			refused[a.worker] = since
			continue
		}
		delete(refused, a.worker)
		all = append(all, request{since, a.acquire.done})
	}
	sorted(all, func(a, b request) int { return cmp.Compare(a.asked, b.asked) })
	return all
}

// addOrder counts the requests that met an earlier one, and those that bypassed it.
func (m *Measures) addOrder(requests []request) {
	earlier, ahead := 0, int64(math.MinInt64) // ahead: the latest grant of the earlier requests
	for _, w := range requests {
		for requests[earlier].asked <= w.asked-int64(AskedApart) {
			ahead = max(ahead, requests[earlier].granted)
			earlier++
		}
		if ahead > w.asked {
			m.Waited++
		}
		if ahead > w.granted {
			m.Bypassed++
		}
	}
}

// provenFaultTimes returns the parts of a time in which proven faults certainly were in force.
func (r *run) provenFaultTimes(active span) []span {
	var spans []span
	for i := range r.faults {
		f := &r.faults[i]
		if !f.Proven || f.certainTo == 0 {
			continue
		}
		to := f.certainTo
		if f.does(history.Ends) && f.onlyWorkers(r.workers) {
			to = min(to, later(f.certainFrom, r.header.Lease+r.header.Grace))
		}
		spans = append(spans, span{max(f.certainFrom, active.from), min(to, active.to)})
	}
	return spans
}

// addGaps measures the times without any grant, and the fault time within them.
func (m *Measures) addGaps(r *run, faults []span) {
	for _, f := range faults {
		m.FaultTime += time.Duration(f.length())
	}
	for _, g := range r.gaps() {
		m.addGap(g, faults)
	}
}

func (m *Measures) addGap(gap span, faults []span) {
	m.LongestGap = max(m.LongestGap, time.Duration(gap.length()))
	if gap.length() <= int64(OutageGap) {
		return
	}
	for _, f := range meeting(faults, gap.from, gap.to) {
		m.Outage += time.Duration(min(f.to, gap.to) - max(f.from, gap.from))
	}
}
