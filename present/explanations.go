package present

import (
	"fmt"
	"strings"

	"lockcheck/checker"
	"lockcheck/checker/application"
)

// why explains an incident; "" if nothing explains it.
func (p presenter) why(i checker.Incident) string {
	switch {
	case i.LastHold != nil:
		return p.lastHold(*i.LastHold, i.Key)
	case i.Seen != nil:
		return p.seen(*i.Seen)
	case i.Kind == application.KindDoneTwice:
		return applicationCause(i.Cause)
	case i.Explanation == nil:
		return ""
	case i.Explanation.Unlocked != nil:
		return p.unlocked(*i.Explanation)
	}
	return p.explanation(i.Cause, *i.Explanation)
}

// unlocked says how a worker came to write without the lock.
func (p presenter) unlocked(e checker.Explanation) string {
	u, how := e.Unlocked, "failed"
	if u.Unknown {
		how = "ended without a known outcome"
	}
	return fmt.Sprintf("the acquire of %s by %s, begun at %s, %s at %s, and %s went on all the same", e.Key, u.Worker, p.at(u.Asked), how, p.at(u.Answered), u.Worker)
}

// explanation has one clause each for the holder's grant, what ended that grant, what else is known, and the
// next grant.
func (p presenter) explanation(cause string, e checker.Explanation) string {
	granted := fmt.Sprintf("%s was granted %s at %s%s", e.Holder.Worker, e.Key, p.at(e.Holder.At), withToken(e.Holder))
	if e.Next.At < e.Holder.At {
		granted += ", by an answer that came late"
	}
	return joined(granted, p.ending(cause, e), p.recovering(e), p.between(e), p.recorded(e),
		fmt.Sprintf("%s was granted the lock at %s%s", e.Next.Worker, p.at(e.Next.At), withToken(e.Next)))
}

func withToken(g checker.Granted) string {
	if g.Token == 0 {
		return ""
	}
	return fmt.Sprintf(" with token %d", g.Token)
}

// ending says how a cause ended the holder's grant.
func (p presenter) ending(cause string, e checker.Explanation) string {
	holder, lease := e.Holder.Worker, "its lease may have run out from "+p.at(e.LeaseEnd)+" on"
	switch cause {
	case checker.CausePaused:
		return fmt.Sprintf("%s was stopped %s; %s", holder, p.stopped(*e.Stop), lease)
	case checker.CauseCutOff:
		return fmt.Sprintf("%s was cut off from %s to %s", holder, p.at(e.Cut.From), p.at(e.Cut.To))
	case checker.CauseUnrenewed:
		return fmt.Sprintf("the last answered renewal of its session was sent at %s; %s", p.at(e.Renewal.Asked), lease)
	case checker.CauseOutlasted:
		return lease + ", and " + holder + " worked on"
	case checker.CauseValidity:
		return fmt.Sprintf("%s took the lock for valid until %s, but %s", holder, p.at(e.ValidUntil), lease)
	case checker.CauseRenewedByOther:
		return fmt.Sprintf("its lease may have run out from %s on, yet its renewal, asked for at %s, succeeded at %s", p.at(e.Renewal.LeaseEnd), p.at(e.Renewal.Asked), p.at(e.Renewal.Answered))
	case checker.CauseInFlight:
		text := fmt.Sprintf("%s held the lock until %s at the latest, and its write was still on its way then", holder, p.at(e.HeldUntil))
		if e.HeldBack != "" {
			text += ", held back by fault " + e.HeldBack
		}
		return text
	case checker.CauseExpiredGrant:
		return "the service no longer had the claim of one of the two on record when its grant arrived"
	case checker.CauseReleasedByOther:
		if e.Releaser.Command != "" {
			return fmt.Sprintf("%s, which did not hold the lock, removed its key by %s, as the service showed at %s", e.Releaser.Worker, e.Releaser.Command, p.at(e.Releaser.At))
		}
		return fmt.Sprintf("%s released the lock at %s, though it was not its own", e.Releaser.Worker, p.at(e.Releaser.At))
	case checker.CauseLateRelease:
		return fmt.Sprintf("%s had sent a release at %s that got no answer, and was granted the lock again; that release must have arrived later", holder, p.at(e.Earlier.Asked))
	case checker.CauseTwice:
		return "nothing could have ended that grant " + p.before(e)
	case checker.CauseServerLost, checker.CauseServerFault, checker.CauseClock:
		if e.Connected {
			return "the lock lasted as long as its connection, and " + p.inForce(e)
		}
		return fmt.Sprintf("that grant cannot have ended by itself %s, but %s", p.before(e), p.inForce(e))
	}
	return "the history does not show why another worker was granted the lock"
}

// stopped says when a worker was stopped and when it went on, as narrowly as the record tells.
func (p presenter) stopped(s checker.Stop) string {
	begin := p.at(s.From)
	switch from, to := p.at(s.Resumed), p.at(s.To); {
	case s.Resumed == 0:
		return "from " + begin + " to " + to
	case from != to:
		return fmt.Sprintf("at %s and continued between %s and %s", begin, from, to)
	default:
		return "at " + begin + " and continued at " + to
	}
}

func (p presenter) before(e checker.Explanation) string {
	if e.LeaseEnd == 0 {
		return "at all"
	}
	return "before " + p.at(e.LeaseEnd)
}

// inForce says which faults explain the end, and since when each was in force.
func (p presenter) inForce(e checker.Explanation) string {
	if len(e.InForce) == 0 {
		return "the clocks of the workers differed from the start (lock option " + checker.ClocksApart + ")"
	}
	var parts []string
	for _, f := range e.InForce {
		parts = append(parts, fmt.Sprintf("%s was in force from %s", faultName(f), p.at(f.From)))
	}
	return strings.Join(parts, ", and ")
}

func faultName(f checker.InForce) string {
	if len(f.Targets) == 0 {
		return fmt.Sprintf("fault %s (%s)", f.ID, f.Kind)
	}
	return fmt.Sprintf("fault %s (%s of %s)", f.ID, f.Kind, listed(f.Targets))
}

// recovering names a fault from which the servers may not have recovered.
func (p presenter) recovering(e checker.Explanation) string {
	if e.Recovering == nil {
		return ""
	}
	return fmt.Sprintf("%s had ended %s before %s asked for the lock, and servers may take %s to recover",
		faultName(e.Recovering.Fault), length(e.Recovering.Ago), e.Holder.Worker, length(p.header.Grace))
}

// between says what became of another attempt between the two grants.
func (p presenter) between(e checker.Explanation) string {
	if e.Between == nil {
		return ""
	}
	return "between the two grants " + p.left(*e.Between)
}

// left says what became of an attempt, and when.
func (p presenter) left(l checker.Past) string {
	switch g := *l.Granted; l.Fate {
	case checker.FateGaveUp:
		return fmt.Sprintf("%s gave up its attempt %s at %s", g.Worker, g.Grant, p.at(l.At))
	case checker.FateNamed:
		return fmt.Sprintf("the service named %s as the holder, at %s", grantee(g), p.at(l.At))
	case checker.FateClaimed:
		return fmt.Sprintf("%s was first in the queue of the service, at %s", grantee(g), p.at(l.At))
	default:
		return p.fate(l, "its grant "+g.Grant)
	}
}

// grantee names an attempt that the service has on record. It adds if no worker is known to have received
// that grant.
func grantee(g checker.Granted) string {
	switch {
	case g.Worker != "" && g.At != 0:
		return fmt.Sprintf("%s (%s)", g.Worker, g.Grant)
	case g.RefusedByItself:
		return fmt.Sprintf("%s (%s), whose acquire it had refused although %s had the lock,", g.Worker, g.Grant, g.Grant)
	case g.Worker != "":
		return fmt.Sprintf("%s (%s), which was not told of a grant,", g.Worker, g.Grant)
	case g.Grant == "":
		return fmt.Sprintf("a claim with token %d, of which no worker was told,", g.Token)
	}
	return fmt.Sprintf("%s, which is no attempt of a worker,", g.Grant)
}

// recorded says whether the service's own record still had the claim, or when the service dropped it.
func (p presenter) recorded(e checker.Explanation) string {
	switch r := e.Record; {
	case r == nil:
		return ""
	case r.Dropped == 0:
		return "by its own record the service had that claim to the end"
	case r.Late:
		return "the service was seen to drop that claim at " + p.at(r.Dropped)
	default:
		return "by its own record the service had dropped that claim by " + p.at(r.Dropped)
	}
}

// lastHold says who had a key last, what became of that hold, and what may have kept the key since.
func (p presenter) lastHold(l checker.LastHold, key string) string {
	last := "no worker had been granted " + key + " before"
	if g := l.Granted; g != nil {
		last = fmt.Sprintf("%s was last granted to %s (%s), at %s%s; %s", key, g.Worker, g.Grant, p.at(g.At), withToken(*g), p.fate(l.Past, "it"))
	}
	since := ""
	switch s := l.Since; {
	case s == nil:
	case s.Fate == checker.FateGaveUp:
		since = "before that wait " + p.left(*s)
	default:
		since = "meanwhile " + p.left(*s)
	}
	return joined(last, since)
}

// fate says what became of a grant.
func (p presenter) fate(l checker.Past, grant string) string {
	holder := l.Granted.Worker
	switch l.Fate {
	case checker.FateReleased:
		return fmt.Sprintf("%s released %s at %s, which the service acknowledged at %s", holder, grant, p.at(l.Asked), p.at(l.At))
	case checker.FateGone:
		return fmt.Sprintf("%s tried to release %s, and was refused at %s: it no longer had the lock", holder, grant, p.at(l.At))
	case checker.FateUnanswered:
		return fmt.Sprintf("%s released %s at %s, and the outcome of that is unknown", holder, grant, p.at(l.Asked))
	case checker.FateKilled:
		return fmt.Sprintf("%s was killed at %s and did not release %s", holder, p.at(l.At), grant)
	}
	return holder + " never released " + grant
}
