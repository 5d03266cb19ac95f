package checker

import (
	"slices"

	"lockcheck/checker/simulation"
	"lockcheck/history"
)

// situations are what simulations must regularly get into. In most of them a history was once judged wrongly.
var situations = map[string]func(o *oracle) bool{
	"a write of a dead worker arrived": func(o *oracle) bool {
		return slices.ContainsFunc(o.record.accesses, func(e history.Event) bool {
			killed, dead := o.truth.Killed[e.Client]
			return dead && e.F == history.Write && e.Time > killed
		})
	},
	"a connection ended after a kill": func(o *oracle) bool {
		return o.anyGrant(func(g *simulation.Grant) bool {
			killed, dead := o.truth.Killed[g.Worker]
			return g.Ended == simulation.Disconnected && dead && killed <= g.EndedAt
		})
	},
	"a connection ended in a cut": func(o *oracle) bool {
		return o.anyGrant(func(g *simulation.Grant) bool {
			return g.Ended == simulation.Disconnected && meets(o.truth.Cut[g.Worker], simulation.Interval{From: g.EndedAt, To: g.EndedAt})
		})
	},
	"connections ended with a server": func(o *oracle) bool {
		return o.anyGrant(func(g *simulation.Grant) bool {
			return g.Ended == simulation.Disconnected && o.read(g) && meets(o.truth.Away, simulation.Interval{From: g.EndedAt, To: g.EndedAt})
		})
	},
	"a session ran out before its grant was read": func(o *oracle) bool {
		return o.world.Session && o.anyGrant(func(g *simulation.Grant) bool { return g.Ended == simulation.Expired && o.unread(g) })
	},
	"a clock ended a lease before its grant was read": func(o *oracle) bool {
		return o.anyGrant(func(g *simulation.Grant) bool { return g.Ended == simulation.Stepped && o.unread(g) })
	},
	"a lock was taken by another's release": func(o *oracle) bool {
		return o.anyGrant(func(g *simulation.Grant) bool { return g.Ended == simulation.Taken && o.read(g) })
	},
	"a grant was known to be gone": func(o *oracle) bool { return o.results.of(NoExpiredGrant).Total > 0 },
	"a worker held two keys": func(o *oracle) bool {
		return o.twoHolds(func(a, b *attempted) bool { return a.worker == b.worker && a.key != b.key })
	},
	"a worker held a lock twice": func(o *oracle) bool {
		return o.twoHolds(func(a, b *attempted) bool { return a.worker == b.worker && a.key == b.key })
	},
	"a hold of no length lay within another": func(o *oracle) bool {
		return o.twoHolds(func(a, b *attempted) bool {
			return a.worker != b.worker && a.key == b.key && b.answered == b.holdEnd() && a.answered < b.answered
		})
	},
	"an inner acquire without an answer took effect": func(o *oracle) bool {
		return o.world.Reentrant > 1 && slices.ContainsFunc(o.record.grants, func(a *attempted) bool {
			return a.outcome == history.Info && o.truth.Grants[a.id].Order > 0 && len(a.releases) == 0
		})
	},
	"readers shared a lock": func(o *oracle) bool {
		return o.twoHolds(func(a, b *attempted) bool { return a.key == b.key && a.worker != b.worker && a.shared && b.shared })
	},
	"a reader saw data change": func(o *oracle) bool { return o.results.of(RepeatableRead).Total > 0 },
	"a holder wrote again, and stale": func(o *oracle) bool {
		wrote := make(map[string]int)
		for _, v := range o.results.of(NoStaleWrite).Violations {
			wrote[v.Grants[0]]++
		}
		for _, n := range wrote {
			if n > 1 {
				return true
			}
		}
		return false
	},
	"a semaphore lost updates": func(o *oracle) bool { return o.world.Permits > 1 && o.results.Updates.Lost > 0 },
	"one write lost several updates": func(o *oracle) bool {
		return o.results.Updates.LossEvents > 1 && o.results.Updates.Lost > o.results.Updates.LossEvents
	},
	"what was refused took effect":   func(o *oracle) bool { return o.truth.Wrong["applies"] > 0 },
	"a write was stale":              func(o *oracle) bool { return o.results.of(NoStaleWrite).Total > 0 },
	"a right service let two hold":   func(o *oracle) bool { return o.truth.Right() && o.results.Overlaps.Total() > 0 },
	"a service granted twice":        func(o *oracle) bool { return o.truth.Wrong["double"] > 0 && o.results.Overlaps.DoubleGrants > 0 },
	"a service was stuck":            func(o *oracle) bool { return o.results.of(Liveness).Verdict == Violation },
	"a release was wrong":            func(o *oracle) bool { return o.results.of(NoWrongRelease).Total > 0 },
	"a renewal was wrong":            func(o *oracle) bool { return o.results.of(NoWrongRenewal).Total > 0 },
	"a token was wrong":              func(o *oracle) bool { return o.results.of(FencingOrder).Total > 0 },
	"guard fence refused":            func(o *oracle) bool { return o.world.Guard == "fence" && len(o.record.refused) > 0 },
	"guard fence-writes refused":     func(o *oracle) bool { return o.world.Guard == "fence-writes" && len(o.record.refused) > 0 },
	"guard cas refused":              func(o *oracle) bool { return o.world.Guard == "cas" && len(o.record.refused) > 0 },
	"guard match refused":            func(o *oracle) bool { return o.world.Guard == "match" && len(o.record.refused) > 0 },
	"guard ask refused":              func(o *oracle) bool { return o.world.Guard == "ask" && len(o.record.refused) > 0 },
	"answers cannot be put in order": func(o *oracle) bool { return o.results.of(Linearizability).Verdict == Violation },
	"all was valid":                  func(o *oracle) bool { return o.results.Verdict == Valid },
}

func (o *oracle) anyGrant(is func(*simulation.Grant) bool) bool {
	return slices.ContainsFunc(o.truth.Order, is)
}

// read says that a worker learned of a grant; unread says that it did so when the grant was over.
func (o *oracle) read(g *simulation.Grant) bool {
	a := o.record.byID[g.ID]
	return a != nil && a.granted()
}

func (o *oracle) unread(g *simulation.Grant) bool {
	return o.read(g) && g.EndedAt < o.record.byID[g.ID].answered
}

// twoHolds says whether are is true of any two holds of which the second begins during the first.
func (o *oracle) twoHolds(are func(a, b *attempted) bool) bool {
	return slices.ContainsFunc(o.record.grants, func(a *attempted) bool {
		return a.granted() && slices.ContainsFunc(o.record.grants, func(b *attempted) bool {
			return a != b && b.granted() && a.answered <= b.answered && b.answered < a.holdEnd() && are(a, b)
		})
	})
}
