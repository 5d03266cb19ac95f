package checker

// changedReads finds readers that read different data at the end of a shared hold than at its beginning:
// another worker wrote while the readers held the lock, or wrote late. Each hold counts once. A hold with
// only one read tells nothing.
func changedReads(r *run) (found incidents, repeated int) {
	for k := range r.dataKeys {
		first, done := make(map[*attempt]*access), make(map[*attempt]bool)
		var wrote *access
		for i := range k.accesses {
			e := &k.accesses[i]
			a := r.holder(k, e)
			switch {
			case e.refused:
			case e.write:
				wrote = e
			case a == nil || !a.shared || done[a] || e.time > a.holdEnd: // still on its way when the hold ended
			case first[a] == nil:
				first[a] = e
			case first[a].version == e.version:
				repeated++
			case wrote != nil:
				done[a] = true
				repeated++
				found.changed(r, a, first[a], e, wrote)
			}
		}
	}
	return found, repeated
}

func (found *incidents) changed(r *run, a *attempt, first, again, wrote *access) {
	c := r.whyOverwritten(first, wrote)
	found.because(c.class, 1)
	earlier, later := a, r.attempt(wrote.grant)
	if later != nil && later.granted() {
		earlier, later, _ = r.inOrder(a, later)
	}
	r.origins.count(c, earlier)
	found.add(r.name(a.key), again.time, func() Incident {
		i := Incident{
			Kind: KindChangedRead, Figures: IncidentFigures{Version: first.version, Next: again.version},
			Key: r.name(a.key), From: wrote.time, To: again.time, Class: "changed read", Cause: c.class,
			Workers: r.nameAll(a.worker, wrote.client), Grants: r.nameAll(a.grant, wrote.grant), Element: wrote.element,
			Faults: r.inForce(a.acquire.done, again.time),
		}
		if later != nil && later.granted() {
			i.Explanation = r.explain(c, earlier, later)
		}
		return i
	})
}

// repeatableRead judges that nobody writes while readers hold the lock, as far as the data show.
func repeatableRead(r *run) judged {
	found, repeated := changedReads(r)
	j := judge(RepeatableRead, found)
	switch {
	case found.total > 0:
		j.because(Violation, Fact{Kind: FactReadsChanged, N: int64(found.total)})
	case repeated == 0:
		j.because(Undecided, Fact{Kind: FactNoRepeatedRead})
	default:
		j.because(Valid, Fact{Kind: FactReadsRepeated, N: int64(repeated)})
	}
	return j
}
