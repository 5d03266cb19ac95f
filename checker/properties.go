package checker

import (
	"slices"

	"lockcheck/history"
)

// Property is what one checker judges.
type Property string

const (
	MutualExclusion Property = "mutual-exclusion"
	NoExpiredGrant  Property = "no-expired-grant"
	NoWrongRelease  Property = "no-wrong-release"
	NoWrongRenewal  Property = "no-wrong-renewal"
	NoStaleWrite    Property = "no-stale-write"
	NoLostUpdate    Property = "no-lost-update"
	RepeatableRead  Property = "repeatable-read"
	FencingOrder    Property = "fencing-order"
	Linearizability Property = "linearizability"
	Liveness        Property = "liveness"
	NoUntrueLoss    Property = "no-untrue-loss"
	NoIdleLock      Property = "no-idle-lock"
	PromptFailover  Property = "prompt-failover"
	FaultEvidence   Property = "fault-evidence"
	Assumptions     Property = "assumptions"
)

// Properties of tests of applications only. Package application judges them. Of the properties above it
// judges mutual exclusion, fencing order, fault evidence and assumptions.
const (
	Invariants    Property = "invariants"
	NoStaleEffect Property = "no-stale-effect"
	ExactlyOnce   Property = "exactly-once"
)

// property is a row of the table that drives the checkers.
type property struct {
	name Property
	// applies selects the runs that have a finding of this property even if they do not require it by name; nil
	// for all.
	applies func(history.Header) bool
	// required says whether the verdict rests on the property by default.
	required func(history.Header) bool
	// guarded means that a guard of the resource makes the violations harmless.
	guarded bool
	// judge returns the finding, and adds to the results what else it computed.
	judge func(*judging) judged
}

// properties is that table, in the order of findings: what the lock did, what became of the data, the second
// opinion, liveness, and last what every verdict rests on. A new property is a row here and a file with its
// function.
func properties() []property {
	return []property{
		{
			name:     MutualExclusion,
			required: ofLocks, guarded: true,
			judge: func(j *judging) judged {
				j.results.Overlaps, j.results.Measures.Notified = j.overlaps.summary, j.overlaps.notified
				return mutualExclusion(j.run, j.overlaps)
			},
		}, {
			name:     NoExpiredGrant,
			required: ofLocks, guarded: true,
			judge: func(j *judging) judged { return noExpiredGrant(j.run, expiredGrants(j.run)) },
		}, {
			name:     NoWrongRelease,
			required: ofLocks, guarded: true,
			judge: func(j *judging) judged { return noWrongRelease(j.run, j.wrong) },
		}, {
			name:     NoWrongRenewal,
			applies:  renewed,
			required: func(h history.Header) bool { return renewed(h) && ofLocks(h) }, guarded: true,
			judge: func(j *judging) judged { return noWrongRenewal(j.run, wrongRenewals(j.run)) },
		}, {
			name:     NoStaleWrite,
			required: ofOurs,
			judge: func(j *judging) (found judged) {
				found, j.results.Fence = noStaleWrite(j.run, staleWrites(j.run))
				return found
			},
		}, {
			name:     NoLostUpdate,
			required: always,
			judge: func(j *judging) judged {
				u := checkUpdates(j.run)
				j.results.Updates, j.results.Losses = u.UpdateSummary, u.losses
				return noLostUpdate(j.run, u)
			},
		}, {
			name:     RepeatableRead,
			applies:  readWrite,
			required: readWrite,
			judge:    func(j *judging) judged { return repeatableRead(j.run) },
		}, {
			name:     FencingOrder,
			required: func(h history.Header) bool { return h.Tokens },
			judge:    func(j *judging) judged { return fencingOrder(j.run, j.opinion) },
		}, {
			name:     Linearizability,
			required: never,
			judge:    func(j *judging) judged { return linearizability(j.opinion) },
		}, {
			name:     Liveness,
			required: ofOurs,
			judge: func(j *judging) (found judged) {
				found, j.results.Orphans = liveness(j.run)
				j.results.Failovers, j.results.Measures.Failover = j.run.failovers()
				j.results.Noticed = j.noticed.Noticed
				return found
			},
		}, {
			name:     NoUntrueLoss,
			applies:  never,
			required: never,
			judge:    func(j *judging) judged { return noUntrueLoss(&j.noticed) },
		}, {
			name:     NoIdleLock,
			applies:  never,
			required: never,
			judge:    func(j *judging) judged { return noIdleLock(&j.noticed, HandoverBound(j.run.header)) },
		}, {
			name:     PromptFailover,
			applies:  never,
			required: never,
			judge:    func(j *judging) judged { return promptFailover(j.run) },
		}, {
			name:     FaultEvidence,
			required: always,
			judge: func(j *judging) (found judged) {
				found, j.results.Faults = faultEvidence(j.run)
				return found
			},
		}, {
			name:     Assumptions,
			required: always,
			judge: func(j *judging) judged {
				found := disagreements(j.run, j.opinion, j.overlaps, j.wrong, j.opinion.tokens)
				return assumptions(j.run, j.results.Operations, append(found, j.run.insideWithoutHold(j.overlaps)...))
			},
		},
	}
}

func always(history.Header) bool { return true }
func never(history.Header) bool  { return false }

// renewed says that the holders extended their leases.
func renewed(h history.Header) bool { return h.Renewed }

// ofOurs says that the history was recorded by lockcheck itself and is therefore complete.
func ofOurs(h history.Header) bool { return h.Imported == "" }

// ofLocks says that the lock alone has to keep holders apart, without a guard.
func ofLocks(h history.Header) bool { return !guarded(h) && !setOnly(h) }

func guarded(h history.Header) bool { return h.Guard != "" && h.Guard != history.GuardNone }

// setOnly says that an imported history is about a set without a lock.
func setOnly(h history.Header) bool { return h.Imported != "" && h.Lock == "" }

// Properties returns the properties of lock tests, in the order of findings.
func Properties() []Property {
	var names []Property
	for _, p := range properties() {
		names = append(names, p.name)
	}
	return names
}

// Required returns the properties that the verdict of a run rests on. A guard makes overlapping holders
// harmless, so in a guarded run such properties count only if the header requires them (docs/verdicts.md).
func Required(h history.Header) []Property {
	var names []Property
	for _, p := range properties() {
		if p.required(h) || slices.Contains(h.Require, string(p.name)) {
			names = append(names, p.name)
		}
	}
	return names
}

// judging is the shared input of the properties of a run.
type judging struct {
	run      *run
	opinion  opinion
	wrong    incidents
	overlaps together
	noticed  noticed
	results  *Results
}

// newJudging computes what several properties need. Wrong releases come first because they explain some of
// the overlaps and their consequences.
func newJudging(r *run, o opinion, results *Results) *judging {
	j := &judging{run: r, opinion: o, results: results}
	j.wrong = wrongReleases(r)
	j.overlaps = findOverlaps(r)
	j.noticed = r.notice()
	results.Operations = operationsOf(r)
	results.Measures = r.measures(results.Operations)
	results.Measures.Handover = j.noticed.handover
	results.LossNotifications = j.overlaps.notifications
	return j
}
