package present

import (
	"fmt"
	"time"

	"lockcheck/checker"
)

// incident is the sentence for an incident.
func (p presenter) incident(i checker.Incident) string {
	for _, say := range []func(checker.Incident) string{p.holders, tokens, conflict, lost, finalState, p.waits, p.applicationIncident} {
		if text := say(i); text != "" {
			return text
		}
	}
	return ""
}

// holders describes incidents of workers that held, used or released the lock while another worker had it, or
// without having it.
func (p presenter) holders(i checker.Incident) string {
	first, second := name(i.Workers, 0), name(i.Workers, 1)
	switch i.Kind {
	case checker.KindOverlap:
		return p.overlap(i)
	case checker.KindExpiredGrant:
		return fmt.Sprintf("%s was granted %s, though the service no longer had the grant on record", first, i.Key)
	case checker.KindWrongRelease:
		text := fmt.Sprintf("the release of %s by %s succeeded although %s had held it for %s", i.Key, first, second, length(i.Figures.Length))
		if more := len(i.Workers) - 2; more > 0 {
			text += ", and " + count(more, "other", "others")
		}
		return text
	case checker.KindWrongRenewal:
		return fmt.Sprintf("the renewal of %s by %s succeeded %s after %s had been granted the lock", i.Key, first, length(i.Figures.Length), second)
	case checker.KindStaleWrite:
		return fmt.Sprintf("the resource accepted a write to %s from %s, %s after %s had been granted the lock and used it", i.Key, first, length(i.Figures.Length), second)
	case checker.KindUnlocked:
		return fmt.Sprintf("the resource accepted a write to %s from %s, which had not been granted the lock", i.Key, first)
	case checker.KindChangedRead:
		return fmt.Sprintf("%s read version %d of %s and then version %d, which %s had written meanwhile", first, i.Figures.Version, i.Key, i.Figures.Next, second)
	}
	return ""
}

func (p presenter) overlap(i checker.Incident) string {
	first := name(i.Workers, 0)
	ended, justEnded := "its lease had run out ", "its lease ran out just then"
	if p.header.Lease == 0 { // the lock ends with a connection or a transaction, and nothing shows when the server ended it
		ended, justEnded = "its lock may have ended ", "its lock may have ended just then"
	}
	validity := justEnded
	switch {
	case i.Class == checker.Unclassified:
		validity = "its lease is not known"
	case i.Class == checker.DoubleGrant:
		validity = "both were within their validity"
	case i.Figures.LaterOver:
		validity = "the lease of " + name(i.Workers, 1) + " may have run out before it was told of its grant"
	case i.Figures.Expired > 0:
		validity = ended + length(i.Figures.Expired) + " before"
	}
	held := "both held " + i.Key
	if p.header.Permits > 1 {
		held = fmt.Sprintf("were among more than %d who held %s", p.header.Permits, i.Key)
	}
	took := "a moment"
	if i.To > i.From {
		took = length(between(i))
	}
	return fmt.Sprintf("%s and %s %s for %s (%s was %s; %s)", first, name(i.Workers, 1), held, took, first, i.Figures.Holder, validity)
}

// between is how long an incident took.
func between(i checker.Incident) time.Duration { return time.Duration(max(0, i.To-i.From)) }

func tokens(i checker.Incident) string {
	if len(i.Figures.Tokens) != 2 {
		return ""
	}
	first, second := name(i.Workers, 0), name(i.Workers, 1)
	earlier, later := i.Figures.Tokens[0], i.Figures.Tokens[1]
	switch i.Kind {
	case checker.KindTokenLower:
		return fmt.Sprintf("%s got token %d for %s, lower than %s's %d before it", second, later, i.Key, first, earlier)
	case checker.KindTokenSame:
		return fmt.Sprintf("%s got token %d for %s, the same as %s's %d before it", second, later, i.Key, first, earlier)
	case checker.KindTokensContradict:
		return fmt.Sprintf("the tokens of %s and %s for %s, %d and %d, contradict the order in which they may have had it", first, second, i.Key, earlier, later)
	}
	return ""
}

// conflict says which answers of a service contradict each other.
func conflict(i checker.Incident) string {
	first, second := name(i.Workers, 0), name(i.Workers, 1)
	lock := "the lock of " + first + " on " + i.Key
	switch i.Kind {
	case checker.KindGrantedTwice:
		return fmt.Sprintf("the service let %s have %s before the grant of %s could have ended", second, i.Key, first)
	case checker.KindEndedNever:
		return "the service no longer knew " + lock + ", which cannot have ended by itself"
	case checker.KindEndedEarly:
		return fmt.Sprintf("the service no longer knew %s, %s before it could have ended by itself", lock, length(i.Figures.Length))
	case checker.KindAnsweredBefore:
		return fmt.Sprintf("%s was answered about %s before %s had asked for it", second, lock, first)
	case checker.KindAnsweredAfter:
		return second + " was answered about " + lock + " after the service had said that it was gone"
	case checker.KindHeldElsewhere:
		return fmt.Sprintf("%s was refused %s because %s held it, but that grant is one of %s", first, i.Key, second, i.Figures.OtherKey)
	}
	return ""
}

// lost says how an update was lost, or a job done twice.
func lost(i checker.Incident) string {
	f, first, second := i.Figures, name(i.Workers, 0), name(i.Workers, 1)
	update := fmt.Sprintf("update %d of %s to %s (version %d)", i.Element, first, i.Key, f.Version)
	switch i.Kind {
	case checker.KindOverwritten:
		return fmt.Sprintf("%s was overwritten %s later by %s, whose version %d was computed from version %d", update, length(between(i)), second, f.Next, f.Base)
	case checker.KindLostUnexplained:
		return update + " was acknowledged, but the final state lacks it; no accepted write explains the loss"
	case checker.KindVanished:
		return update + " was committed, as the answers to its write and its release say, but the database has neither the update nor a record of it"
	case checker.KindRepeatedJob:
		return fmt.Sprintf("job %d of %s was done by %s, and again %s later by %s, which had read version %d", i.Element, i.Key, first, length(between(i)), second, f.Base)
	}
	return ""
}

// finalState says what a final state lacks, or has but should not.
func finalState(i checker.Incident) string {
	f := i.Figures
	element := fmt.Sprintf("element %d is in the final state of %s", i.Element, i.Key)
	switch i.Kind {
	case checker.KindCountedLess:
		return fmt.Sprintf("%s counts %d after %s; no write explains the loss of %d", i.Key, f.N, count(f.Of, "increment", "increments"), f.Missing)
	case checker.KindCountedMore:
		return fmt.Sprintf("%s counts %d, %d more than the workers tried to add", i.Key, f.N, f.Missing)
	case checker.KindCountedRefused:
		return fmt.Sprintf("%s counts %d, %d more than the workers tried to add without being refused", i.Key, f.N, f.Missing)
	case checker.KindDuplicated:
		return element + " " + times(f.N)
	case checker.KindPhantom:
		return element + ", though no worker tried to write it"
	case checker.KindRefusedPhantom:
		return element + ", though the resource refused it"
	}
	return ""
}

// waits says who waited in vain.
func (p presenter) waits(i checker.Incident) string {
	since := after(i.Figures.Since)
	switch i.Kind {
	case checker.KindStuckKey:
		vacancy := "no live worker held it"
		if p.header.Permits > 1 {
			vacancy = fmt.Sprintf("fewer than %d live workers held it", p.header.Permits)
		}
		return fmt.Sprintf("%sno worker could acquire %s for %s, though %s", since, i.Key, length(between(i)), vacancy)
	case checker.KindNothingButErrors:
		return fmt.Sprintf("%s%s got nothing but errors for %s when it asked for the lock", since, name(i.Workers, 0), length(between(i)))
	case checker.KindLateFailover:
		return fmt.Sprintf("%s fell silent while it held %s; no other worker was granted it for %s, though one asked and could reach the servers", name(i.Workers, 0), i.Key, length(i.Figures.Length))
	case checker.KindUntrueLoss:
		return fmt.Sprintf("%s was told that it had lost %s, yet its release succeeded %s later, and nobody else had been granted the lock", name(i.Workers, 0), i.Key, length(i.Figures.Length))
	case checker.KindIdleLock:
		if i.Class == checker.ClassMissedWakeUp {
			return fmt.Sprintf("%s released %s while a worker was cut off; no worker was granted it for %s that no fault excuses, though one asked for it", name(i.Workers, 0), i.Key, length(i.Figures.Length))
		}
		return fmt.Sprintf("%s released %s, and no worker was granted it for %s, though one asked for it", name(i.Workers, 0), i.Key, length(i.Figures.Length))
	}
	return ""
}
