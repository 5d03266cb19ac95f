package present

import (
	"fmt"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
)

// fact is the sentence for one fact of a finding.
func (p presenter) fact(f checker.Fact) string {
	for _, say := range []func(checker.Fact) string{p.aboutHolders, p.aboutGrants, p.aboutData, p.aboutLiveness, p.aboutFaults, p.aboutRun, aboutBugs, p.aboutInvariants, p.aboutReplicas, p.aboutResource, p.aboutApplication} {
		if text := say(f); text != "" {
			return text
		}
	}
	return ""
}

func (p presenter) aboutHolders(f checker.Fact) string {
	switch f.Kind {
	case checker.FactNeverHeld:
		return "no worker ever held the lock"
	case checker.FactSharedByRight:
		return "several workers may hold this lock at once"
	case checker.FactOverlaps:
		o := p.results.Overlaps
		return fmt.Sprintf("%s of holders (%s); longest %s", count(f.N, "overlap", "overlaps"), kindsOf(o), length(o.Longest))
	case checker.FactSingleWorker:
		return "a single worker cannot overlap with another; run at least 2 (--concurrency 2)"
	case checker.FactPermitsForAll:
		return "no worker can be one too many: there are permits for all"
	case checker.FactGrantedMeanwhile:
		return fmt.Sprintf("%s was granted %s at %s while %s had it; nothing more is known of that hold", name(f.Workers, 0), name(f.Keys, 0), p.at(f.At), name(f.Workers, 1))
	case checker.FactNobodyTookTurns:
		return "each lock was granted to only one worker, although another one asked for a free lock: nothing shows that the lock keeps anybody out" + p.moreChances()
	case checker.FactHoldsApart:
		if p.readers() {
			return count(f.N, "hold", "holds") + ", no writer next to another holder"
		}
		return count(f.N, "hold", "holds") + ", never " + tooMany(p.header) + " at once"
	case checker.FactInsideAtOnce:
		return fmt.Sprintf("the resource saw %s at once", count(f.N, "worker", "workers"))
	}
	return ""
}

func (p presenter) readers() bool { return p.header.Workload == history.WorkloadReadWrite }

// tooMany says how many holders of a key at once are too many.
func tooMany(h history.Header) string {
	if h.Permits > 1 {
		return fmt.Sprintf("more than %d", h.Permits)
	}
	return "two"
}

func heldAtOnce(n int, h history.Header) string {
	who := tooMany(h) + " workers"
	if n == 1 {
		return who + " once held the lock at the same time"
	}
	return who + " held the lock at once " + times(n)
}

func kindsOf(o checker.OverlapSummary) string {
	var kinds []string
	if o.DoubleGrants > 0 {
		kinds = append(kinds, count(o.DoubleGrants, "double grant", "double grants"))
	}
	if o.UsesAfterExpiry > 0 {
		kinds = append(kinds, count(o.UsesAfterExpiry, "use after expiry", "uses after expiry"))
	}
	if o.Unclassified > 0 {
		kinds = append(kinds, fmt.Sprintf("%d of unknown kind", o.Unclassified))
	}
	return strings.Join(kinds, ", ")
}

func (p presenter) aboutGrants(f checker.Fact) string {
	switch f.Kind {
	case checker.FactExpiredGrants:
		return count(f.N, "grant", "grants") + " arrived that the service no longer had on record"
	case checker.FactNoExpiredGrant:
		return "no grant is known to have arrived too late"
	case checker.FactWrongReleases:
		return count(f.N, "release succeeded", "releases succeeded") + " although another worker held the lock"
	case checker.FactNoRelease:
		return "no release was acknowledged"
	case checker.FactReleases:
		return count(f.N, "release", "releases") + ", none while another worker held the lock"
	case checker.FactWrongRenewals:
		return count(f.N, "renewal", "renewals") + " succeeded after another worker had been granted the lock"
	case checker.FactNoRenewal:
		return "no renewal was acknowledged whose lease is on record"
	case checker.FactRenewals:
		return count(f.N, "renewal", "renewals") + ", none after another worker had been granted the lock"
	case checker.FactUntrueLosses:
		be := "were"
		if f.N == 1 {
			be = "was"
		}
		return fmt.Sprintf("%d of %s %s untrue: the release succeeded afterwards", f.N, count(f.Of, "reported loss", "reported losses"), be)
	case checker.FactLossesTrue:
		if f.N == 0 {
			return "no loss was reported whose truth the history shows"
		}
		return count(f.N, "reported loss", "reported losses") + ", none known to be untrue"
	case checker.FactIdleLocks:
		return fmt.Sprintf("the lock was idle after %d of %s for more than %s, though a worker asked for it", f.N, count(f.Of, "release", "releases"), length(f.Limit))
	case checker.FactHandedOver:
		if f.N == 0 {
			return "no lock was released while a worker waited for it and no fault was near"
		}
		return fmt.Sprintf("%s while another worker asked for the lock, which was granted again within %s (bound %s)",
			count(f.N, "release", "releases"), length(f.Length), length(f.Limit))
	case checker.FactLateFailovers:
		return fmt.Sprintf("%d of %s took longer than %s, though another worker asked for the lock and could reach the servers", f.N, count(f.Of, "failover", "failovers"), length(f.Limit))
	case checker.FactFailovers:
		if f.N == 0 {
			return "no holder was silent while another worker waited for its lock"
		}
		return count(f.N, "failover", "failovers") + ", none longer than " + length(f.Limit)
	case checker.FactTokensWrong:
		return count(f.N, "token", "tokens") + " did not increase"
	case checker.FactTokensDoubtful:
		return p.about(f) + ", or the lock was granted to both at once"
	case checker.FactTokensMissing:
		return fmt.Sprintf("%d of %s came without a token", f.N, count(f.Of, "grant", "grants"))
	case checker.FactTokensIncrease:
		text := count(f.N, "token", "tokens") + ", always increasing"
		if p.header.Reentrant > 1 {
			text += " unless a worker took its own lock again"
		}
		return text
	case checker.FactNoTokens:
		return "this lock has no tokens"
	case checker.FactNoToken:
		return "no grant came with a token"
	case checker.FactNotLinearizable:
		return "no " + p.model() + " could have given these answers for " + listed(f.Keys)
	case checker.FactLinearizable:
		return count(f.N, "operation", "operations") + " on " + count(f.Of, "key", "keys") + ", consistent with a single " + p.model()
	case checker.FactSilent:
		return "the order of grants alone decides about " + listed(f.Keys) + ": porcupine was not asked or gave no answer"
	case checker.FactUnordered:
		return "workers that share a lock have no order to judge by"
	case checker.FactContradictory:
		return "the history contradicts itself for " + listed(f.Keys)
	case checker.FactNoAnswers:
		return "there are no answers to judge"
	}
	return ""
}

// about says what happened in the incident of a fact.
func (p presenter) about(f checker.Fact) string {
	if f.Incident == nil {
		return ""
	}
	return p.incident(*f.Incident)
}

// model names the sequential model that the answers of a service must be consistent with.
func (p presenter) model() string {
	switch {
	case p.header.Permits > 1:
		return fmt.Sprintf("semaphore of %d permits", p.header.Permits)
	case p.readers():
		return "lock that readers share"
	}
	return "mutex"
}

func (p presenter) aboutData(f checker.Fact) string {
	u := p.results.Updates
	switch f.Kind {
	case checker.FactWritesNothing:
		return "the workload writes nothing"
	case checker.FactStaleWrites:
		return count(f.N, "write was", "writes were") + " accepted from a holder that a later one had replaced"
	case checker.FactUnlockedWrites:
		return count(f.N, "write was", "writes were") + " accepted without the lock"
	case checker.FactNoWrite:
		return "no write was accepted"
	case checker.FactTookTurns:
		return "two holders wrote to " + listed(f.Keys) + " in turns, and the record does not say which of them had been replaced"
	case checker.FactWrites:
		return count(f.N, "write", "writes") + " accepted, none from a replaced holder"
	case checker.FactUpdatesWrong:
		return fmt.Sprintf("%s (share: %s)", damage(u), Interval(u.LossInterval))
	case checker.FactUpdatesKept:
		return fmt.Sprintf("%s, none lost (%s)", count(u.Acknowledged, "acknowledged update", "acknowledged updates"), Interval(u.LossInterval))
	case checker.FactFinalUnread:
		return fmt.Sprintf("the final state of %s was never read (%s)", listed(f.Keys), count(f.N, "acknowledged update", "acknowledged updates"))
	case checker.FactFinalsDiffer:
		return "the final reads of " + listed(f.Keys) + " differ, without a write in between"
	case checker.FactNoUpdate:
		return "no update was acknowledged"
	case checker.FactReadsChanged:
		return count(f.N, "reader", "readers") + " saw the data change under the lock"
	case checker.FactNoRepeatedRead:
		return "no reader read the data twice under the lock"
	case checker.FactReadsRepeated:
		return count(f.N, "read was", "reads were") + " repeated under the lock, with the same result"
	}
	return ""
}

// damage says what is wrong with the final states.
func damage(u checker.UpdateSummary) string {
	var parts []string
	if u.Lost > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s lost", u.Lost, count(u.Acknowledged, "acknowledged update was", "acknowledged updates were")))
	}
	if u.Duplicated > 0 {
		parts = append(parts, count(u.Duplicated, "element is", "elements are")+" in a final state more than once")
	}
	if u.Repeated > 0 {
		parts = append(parts, count(u.Repeated, "job was", "jobs were")+" done twice")
	}
	if u.Phantom > 0 {
		parts = append(parts, count(u.Phantom, "update is", "updates are")+" in a final state although the resource never accepted "+oneOrMany(u.Phantom, "it", "them"))
	}
	return strings.Join(parts, ", ")
}

func oneOrMany(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func (p presenter) aboutRun(f checker.Fact) string {
	switch f.Kind {
	case checker.FactComplete:
		return "the run is complete and did its work"
	case checker.FactCutOff:
		return fmt.Sprintf("line %d of the history is cut off and was left out", f.N)
	case checker.FactInterrupted:
		if p.results.Verdict == checker.Violation { // which stands
			return "the run was interrupted before its end"
		}
		return "the run was interrupted before its end; run it again for a verdict"
	case checker.FactTooFew:
		what := count(f.N, "update was acknowledged", "updates were acknowledged")
		if history.WritesNothing(p.header.Workload) {
			what = count(f.N, "hold was released", "holds were released")
		}
		return fmt.Sprintf("only %s, %d %s needed", what, f.Of, oneOrMany(f.Of, "is", "are")) + p.enoughWork(f.N, f.Of)
	case checker.FactReadsRefused:
		return fmt.Sprintf("the resource refused reads in %s (guard %s), although the lock was granted: %s",
			count(f.N, "hold", "holds"), p.header.Guard, count(f.Of, "release succeeded", "releases succeeded"))
	case checker.FactIgnoredNothing:
		return "--" + checker.IgnoreFailedAcquire + " had no effect, because no acquire failed: the servers must be silent for longer than a client waits, as with --nemesis pause:majority --pause 8s"
	case checker.FactRunFailed:
		return explained("the run failed", joined(strings.Split(f.Said, "\n")...))
	case checker.FactHistoryEnds:
		return "the history ends before the run did"
	case checker.FactClientFault:
		return f.Said
	case checker.FactUnknownProperty:
		return fmt.Sprintf("there is no property %q to require", f.Said)
	}
	return ""
}

func explained(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// aboutBugs reports contradictions between the checkers, which only a bug in lockcheck can cause.
func aboutBugs(f checker.Fact) string {
	const bug, key = "this is a bug in lockcheck, please report it: ", 0
	switch f.Kind {
	case checker.FactIllegalUnexplained:
		return bug + "porcupine finds " + name(f.Keys, key) + " illegal, but nothing explains it"
	case checker.FactLegalOverlap:
		return bug + fmt.Sprintf("porcupine accepts %s, although %s and %s held it at once before either lease could have run out", name(f.Keys, key), name(f.Workers, 0), name(f.Workers, 1))
	case checker.FactLegalConflict:
		return bug + "porcupine accepts " + name(f.Keys, key) + ", although its operations cannot be put in order"
	case checker.FactOrderlyOverlap:
		return bug + "the grants of " + name(f.Keys, key) + " can be put in order, although two workers held it at once before either lease could have run out"
	case checker.FactUnheld:
		return bug + fmt.Sprintf("the resource saw %d workers in %s at once, and no holds overlap", f.N, name(f.Keys, key))
	}
	return ""
}
