package present

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

func (p presenter) aboutFaults(f checker.Fact) string {
	kind := f.FaultKind
	switch f.Kind {
	case checker.FactNotProvenHealed:
		if len(f.Faults) > 1 {
			return "faults " + strings.Join(f.Faults, ", ") + " could not be proven healed"
		}
		return "fault " + name(f.Faults, 0) + " could not be proven healed"
	case checker.FactNoFaults:
		return "no faults were asked for"
	case checker.FactFaultsCovered:
		return joined(append(p.coverage(), reaction(p.results.Faults))...)
	case checker.FactNeverApplied:
		return "no " + kind + " was ever applied" + p.moreChances()
	case checker.FactNeverProven:
		return "no " + kind + " could be proven"
	case checker.FactMissedMoment:
		return "no " + kind + " came at the moment that it was aimed at" + p.moreChances()
	case checker.FactMissedWorkers:
		return "no " + kind + " hit a worker that held the lock or was about to" + p.moreChances()
	case checker.FactMissedHolders:
		return "no " + kind + " hit a holder inside its section while another worker asked for the lock" + p.moreChances()
	case checker.FactMissedOperations:
		return "no " + kind + " of a server met an operation" + p.moreChances()
	case checker.FactMissedPackets:
		return "no " + kind + " met a packet" + p.moreChances()
	case checker.FactMissedDisk:
		return "no operation of a server on its disk met the " + kind + p.moreChances()
	case checker.FactMissedAll:
		return "no clock was moved while a worker held the lock or asked for it" + p.moreChances()
	case checker.FactEffectUnknown:
		return "no " + kind + " is known to have mattered"
	}
	return ""
}

// coverage says per group how many faults counted.
func (p presenter) coverage() []string {
	var clauses []string
	if len(p.header.Faults) == 0 && len(p.results.Faults) == 0 && p.header.Imported == "" {
		return []string{"no faults were injected"}
	}
	for _, g := range checker.FaultGroups(p.results.Faults, p.header) {
		// Faults that an interrupted run did not reach do not count as missed.
		all := cmp.Or(g.Count(func(f checker.FaultCoverage) bool { return f.Applied }), int64(len(g.Faults)))
		counted, clause := g.Count(checker.FaultCoverage.Counts), ""
		switch {
		case g.OfHolders:
			clause = fmt.Sprintf("%d of %s hit a holder", counted, count(all, g.Name, plural(g.Name)))
			if p.header.Lease > 0 { // without a lease there is nothing to outlast
				clause += fmt.Sprintf(", %d outlasted its lease", g.Count(func(f checker.FaultCoverage) bool { return f.Outlasted }))
			}
		case g.Name == g.Kind && history.Does(g.Kind, history.Ends) && p.header.Application == nil:
			clause = fmt.Sprintf("%d of %s hit a worker that held the lock or was about to", counted, count(all, g.Name, plural(g.Name)))
		default:
			clause = fmt.Sprintf("%d of %s proven and exercised", counted, count(all, g.Name+" fault", g.Name+" faults"))
		}
		clauses = append(clauses, clause)
	}
	return clauses
}

// reaction says how quickly faults followed the events that they waited for.
func reaction(coverage []checker.FaultCoverage) string {
	var since []time.Duration
	for _, f := range coverage {
		if f.Since > 0 {
			since = append(since, f.Since)
		}
	}
	if len(since) == 0 {
		return ""
	}
	return fmt.Sprintf("faults took effect %s after the event that they waited for (median of %d; longest %s)",
		length(stats.Median(since)), len(since), length(slices.Max(since)))
}

// plural of the name of a kind of fault.
func plural(kind string) string {
	if strings.HasSuffix(kind, "sh") {
		return kind + "es"
	}
	return kind + "s"
}

// missed says why a fault does not count, "" if it does.
func missed(f checker.FaultCoverage) string {
	switch f.Missed {
	case checker.MissSkipped:
		return explained("skipped", f.Said)
	case checker.MissUnproven:
		return explained("not proven", f.Said)
	case checker.MissUnhealed:
		return explained("not proven healed", f.Said)
	case checker.MissNoWorker:
		return "no target held the lock or was about to"
	case checker.MissNoHolder:
		return "no target held the lock"
	case checker.MissNotWanted:
		return "no other worker asked for the lock that its target held"
	case checker.MissPermitsLeft:
		return "permits were left for all who asked"
	case checker.MissNoWaiter:
		return "no target was asking for the lock"
	case checker.MissNoOperation:
		return "no operation was open meanwhile"
	case checker.MissNoPacket:
		return "it met no packet"
	case checker.MissPackets:
		return "how many packets it met is not known"
	case checker.MissNoDisk:
		return "no operation of the server met it"
	case checker.MissDisk:
		return "how many operations of the server it met is not known"
	case checker.MissNobody:
		return "no worker held the lock or asked for it meanwhile"
	case checker.MissKind:
		return "this version cannot tell whether a fault of this kind mattered"
	case checker.MissNoCall:
		return "it was not in force while the call was in flight"
	case checker.MissNotQueued:
		return f.Actor + " did not wait in the queue any more"
	case checker.MissGranted:
		return f.Actor + " had the lock again"
	case checker.MissHoldOver:
		return "the hold of " + f.Actor + " that it waited for was over"
	}
	return ""
}
