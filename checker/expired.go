package checker

// expiredGrant is the Incident.Class of expired grants.
const expiredGrant = "expired grant"

// expiredGrants finds grants that the service had already forgotten when they arrived. Example: a waiter
// whose place in the queue was gone is told that it is its turn (github.com/etcd-io/etcd/issues/11456).
func expiredGrants(r *run) incidents {
	var found incidents
	for _, a := range r.holds {
		if !a.expired {
			continue
		}
		key := r.name(a.key)
		found.add(key, a.acquire.done, func() Incident {
			return Incident{
				Kind: KindExpiredGrant, Key: key, From: a.acquire.done, To: a.acquire.done, Class: expiredGrant,
				Workers: r.nameAll(a.worker), Grants: r.nameAll(a.grant),
				Faults: r.inForce(a.acquire.invoke, a.acquire.done),
			}
		})
	}
	return found
}

// noExpiredGrant judges that every grant was in force when it arrived, as far as the client could ask the
// service.
func noExpiredGrant(r *run, found incidents) judged {
	j := judge(NoExpiredGrant, found)
	switch {
	case found.total > 0:
		j.because(Violation, Fact{Kind: FactExpiredGrants, N: int64(found.total)})
	case len(r.holds) == 0:
		j.because(Undecided, Fact{Kind: FactNeverHeld})
	default:
		j.because(Valid, Fact{Kind: FactNoExpiredGrant})
	}
	return j
}
