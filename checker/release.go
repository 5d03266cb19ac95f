package checker

import "fmt"

// wrongReleases finds releases that succeeded although another process held the
// lock by then. The other one must have been granted the lock after the one
// that is released, have begun its hold before the release was sent and end it
// after the release was answered. What it can still be is a grant that was dead
// before the released one began (its answer came late): that is excluded.
func wrongReleases(r *run) []Incident {
	byKey := r.holdsByKey()
	var found []Incident
	for _, a := range r.attempts {
		c := a.released()
		if c == nil {
			continue
		}
		for _, other := range byKey[a.key] {
			if other.Worker != a.worker && r.wronged(a, c, other) {
				found = append(found, r.wrongRelease(a, c, other))
			}
		}
	}
	return found
}

func (r *run) wronged(a *attempt, c *call, other Hold) bool {
	if other.Start >= c.invoke || other.End <= c.done {
		return false
	}
	served := r.byGrant[other.Grant].serviceEnd(r.header.Lease)
	if a.granted() {
		return a.acquire.done < other.Start && served > a.acquire.done
	}
	// An acquire of unknown outcome may have taken effect at any time up to its
	// release: only if the other one certainly lasted beyond is this wrong.
	return served > c.done
}

func (r *run) wrongRelease(a *attempt, c *call, other Hold) Incident {
	return Incident{
		Key: a.key, From: c.invoke, To: c.done, Class: "wrong release",
		What: fmt.Sprintf("the release of %s by %s succeeded although %s had held it for %s",
			a.key, a.worker, other.Worker, dur(c.invoke-other.Start)),
		Workers: []string{a.worker, other.Worker},
		Grants:  []string{a.grant, other.Grant},
		Faults:  r.inForce(other.Start, c.done),
	}
}

func noWrongRelease(r *run, found []Incident) judged {
	j := judge(NoWrongRelease, found)
	released := 0
	for _, a := range r.attempts {
		if a.released() != nil {
			released++
		}
	}
	switch {
	case len(found) > 0:
		j.clause = count(len(found), "release succeeded", "releases succeeded") + " although another worker held the lock"
		j.Summary = j.clause
	case released == 0:
		j.Verdict, j.Summary = Undecided, "no release was acknowledged"
	default:
		j.Summary = count(released, "release", "releases") + ", none while another worker held the lock"
	}
	return j
}
