package present

import (
	"fmt"
	"strings"
	"time"

	"lockcheck/checker"
)

func (p presenter) aboutLiveness(f checker.Fact) string {
	switch f.Kind {
	case checker.FactNeverHealed:
		return "fault " + name(f.Faults, 0) + " was never healed"
	case checker.FactStuck:
		return fmt.Sprintf("%s; the limit is %s", p.stuck(f), length(f.Limit))
	case checker.FactStalled:
		return fmt.Sprintf("%s; the limit is %s, and this machine stalled for %s of that time", p.about(f), length(f.Limit), length(f.Length))
	case checker.FactPerhapsHeld:
		return fmt.Sprintf("%sno worker is known to have acquired %s for %s, but %s of unknown outcome may have held it",
			after(f.Since), name(f.Keys, 0), length(f.Length), count(f.N, "acquire", "acquires"))
	case checker.FactAcquired:
		return count(f.N, "acquire", "acquires") + " succeeded, and there was no fault to recover from"
	case checker.FactRecovered:
		return fmt.Sprintf("the lock was acquired %s after %s", length(f.Length), event(f.Since))
	case checker.FactNobodyTried:
		return "no worker tried to acquire the lock after " + event(f.Since)
	case checker.FactNobodyTriedLong:
		return fmt.Sprintf("no worker acquired the lock after %s, but none tried for longer than the limit of %s", event(f.Since), length(f.Limit))
	case checker.FactLivenessMeasured:
		r := p.results
		return joined(p.orphans(r.Orphans), p.failovers(r.Failovers), lossNotifications(r.LossNotifications), noticed(r.Noticed, checker.HandoverBound(p.header)))
	}
	return ""
}

// stuck describes the first liveness incident.
func (p presenter) stuck(f checker.Fact) string {
	first := p.results.Finding(checker.Liveness).Violations
	if len(first) == 0 {
		return ""
	}
	text := p.incident(first[0])
	if f.N > 1 {
		text += fmt.Sprintf(" (and %d more like it)", f.N-1)
	}
	return text
}

// after says what a wait followed, to begin a sentence; "" for a wait since the start of the run.
func after(s checker.Since) string {
	if s.Event == checker.SinceStart || s.Event == "" {
		return ""
	}
	return "after " + event(s) + " "
}

func event(s checker.Since) string {
	switch s.Event {
	case checker.SinceKill:
		if len(s.Killed) > 1 {
			return listed(s.Killed) + " were killed"
		}
		return strings.Join(s.Killed, "") + " was killed"
	case checker.SinceHealed:
		return "the last fault was healed"
	}
	return "the start"
}

// orphans says how long locks stayed with killed holders; "" if none of these locks was granted again.
func (p presenter) orphans(s checker.OrphanSummary) string {
	var text string
	switch {
	case s.Killed == s.Stuck:
		return ""
	case s.Killed == 1:
		text = fmt.Sprintf("the lock of %s was granted again %s after %s was killed", s.Victim, length(s.Longest), s.Victim)
	default:
		text = fmt.Sprintf("the locks of %d killed holders were granted again after at most %s (that of %s)", s.Killed, length(s.Longest), s.Victim)
	}
	if s.Stuck > 0 {
		text += fmt.Sprintf(", %d of them never", s.Stuck)
	}
	if p.header.Lease > 0 {
		text += ", lease " + length(p.header.Lease)
	}
	return text
}

// failovers says how long locks took to fail over; "" if no lock of a stopped, cut off or killed holder was
// granted again.
func (p presenter) failovers(s checker.FailoverSummary) string {
	granted := s.Holders - s.Stuck
	if granted == 0 {
		return ""
	}
	lease := ""
	if p.header.Lease > 0 {
		lease = "; lease " + length(p.header.Lease)
	}
	return fmt.Sprintf("the lock failed over %s after its holder was stopped, cut off or killed (median of %d; longest %s%s)",
		length(s.Median), granted, length(s.Longest), lease)
}

// lossNotifications says when replaced holders learned of their loss; "" if no holder was replaced.
func lossNotifications(s checker.LossNotificationSummary) string {
	if s.Replaced == 0 {
		return ""
	}
	text := fmt.Sprintf("of %s, %d learned of the loss before the release", count(s.Replaced, "replaced holder", "replaced holders"), s.Notified)
	if s.Notified > 0 {
		text += fmt.Sprintf(" (at most %s after the next grant)", length(s.Latest))
	}
	return text + fmt.Sprintf(", %d at the release, %d never", s.AtRelease, s.Never)
}

// noticed reports untrue losses and idle releases, which no property judges.
func noticed(n checker.Noticed, bound time.Duration) string {
	var untrue, idle string
	if n.UntrueLosses > 0 {
		untrue = fmt.Sprintf("%s: the lock was reported as lost, but its release succeeded afterwards (%s from loss to release in all)",
			count(n.UntrueLosses, "untrue loss", "untrue losses"), length(n.UntrueIdle))
	}
	if n.IdleReleases > 0 {
		idle = fmt.Sprintf("%s: no worker was granted the lock for more than %s afterwards, though others asked for it (%s in all)",
			count(n.IdleReleases, "idle release", "idle releases"), length(bound), length(n.Idle))
	}
	return joined(untrue, idle)
}
