package application

import (
	"lockcheck/checker"
	"lockcheck/history"
)

// view is what a client knows of a key.
type view struct {
	version int64
	event   *history.Event // the read, or the client's own write
}

// viewOf is whose view of which key.
type viewOf struct{ client, key string }

// overwrites finds writes that replaced a version whose client had seen only an older one.
type overwrites struct {
	*run
	views  map[viewOf]view
	writes map[string][]*history.Event // by key; the n-th made version n+1
	found  checker.Incidents
	judged int64 // values that a client replaced that had read the key, or named the version
	blind  int64 // values that a client replaced that had not
}

// noLostUpdate judges that no client that has read a key replaces a value of the key that it has not seen. The resource
// applies one access after the other, so times do not matter. A replica counts as one reader: each of its threads is taken
// to know what any of them has read. Updates lost between threads of a replica can go unseen. With a working lock around
// reading and writing nothing is reported, and everything reported was overwritten.
func noLostUpdate(r *run) checker.Finding {
	f := checker.Finding{Property: checker.NoLostUpdate}
	if !r.app.Resource {
		because(&f, checker.NotApplicable, checker.Fact{Kind: FactNoResource})
		return f
	}
	o := overwrites{run: r, views: make(map[viewOf]view), writes: make(map[string][]*history.Event)}
	refused := int64(0)
	for _, e := range r.accesses {
		switch {
		case e.Type == history.Fail:
			refused++
		case e.F == history.Read:
			o.views[viewOf{e.Client, e.Key}] = view{e.Version, e}
		default:
			o.write(e)
		}
	}
	f = o.found.Finding(checker.NoLostUpdate)
	switch {
	case o.found.Total() > 0:
		because(&f, checker.Violation, checker.Fact{Kind: FactOverwritten, N: o.found.Total(), Of: o.judged})
	case o.judged == 0:
		because(&f, checker.NotApplicable, checker.Fact{Kind: FactNothingReplaced})
	default:
		because(&f, checker.Valid, checker.Fact{Kind: FactReplacedSeen, N: o.judged})
	}
	if o.blind > 0 {
		because(&f, f.Verdict, checker.Fact{Kind: FactReplacedBlind, N: o.blind})
	}
	if refused > 0 {
		because(&f, f.Verdict, checker.Fact{Kind: FactRefused, N: refused})
	}
	return f
}

func (o *overwrites) write(e *history.Event) {
	id := viewOf{e.Client, e.Key}
	seen, known := o.views[id]
	known = known && !o.startedBetween(e.Client, seen.event, e)
	o.writes[e.Key] = append(o.writes[e.Key], e)
	replaced := e.Version - 1
	if e.ID != "" {
		// Appending a line overwrites nothing, and does not show the client what others wrote before.
		if known && seen.version == replaced {
			o.views[id] = view{e.Version, e}
		}
		return
	}
	o.views[id] = view{e.Version, e}
	switch {
	case replaced == 0:
	case e.Base != 0:
		o.judged++ // the resource itself has compared the versions
	case !known || e.Note == history.AnyVersion:
		o.blind++
	case seen.version < replaced:
		o.judged++
		o.lost(seen, e)
	default:
		o.judged++
	}
}

// startedBetween reports whether a client's program may have been started between two accesses. The program of the second
// access then knows nothing of the first.
func (r *run) startedBetween(client string, first, second *history.Event) bool {
	for _, s := range r.starts[client] {
		if s.Time >= first.From && s.From <= second.Time {
			return true
		}
	}
	return false
}

// lost describes a write over a version that its client had not seen.
func (o *overwrites) lost(seen view, e *history.Event) {
	unseen := o.writes[e.Key][seen.version] // the first of them
	faults := o.inForce(seen.event.From, e.Time)
	o.found.Add(e.Key, e.Time, "", func() checker.Incident {
		return checker.Incident{
			Kind: KindOverwritten, Key: e.Key, From: e.Time, Workers: []string{e.Client, unseen.Client}, Faults: ids(faults),
			Figures: checker.IncidentFigures{Holder: stateOf(e.Client, faults), N: e.Version - 1 - seen.version, Next: e.Version},
			Overwrite: &checker.Overwrite{
				Seen: seen.version, SeenAt: seen.event.Time, Wrote: seen.event.F == history.Write, Unseen: unseen.Version, UnseenAt: unseen.Time, Appended: unseen.ID,
			},
		}
	})
}
