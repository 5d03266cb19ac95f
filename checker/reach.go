package checker

import (
	"math"
	"slices"
	"strings"

	"lockcheck/history"
)

// reaches returns the servers that a worker was told of. Servers of different roles, such as data servers and
// Sentinels, count as equals, because the history does not tell them apart.
func (r *run) reaches(worker string) []string {
	if servers := r.header.Reaches[worker]; len(servers) > 0 {
		return servers
	}
	return r.header.Servers
}

// joined encodes a list of servers as one map key.
func joined(servers []string) string { return strings.Join(servers, "\x00") }

// separates says whether the fault keeps nodes apart. A fault that only loses or delays packets may have done
// so: the worker may have been out of reach all the time, and what happened then is not attributed to its
// service.
func (f *fault) separates() bool { return f.does(history.Cuts) || f.does(history.Disturbs) }

// putsOutOfReach returns the processes that the fault puts out of reach of a worker.
func (f *fault) putsOutOfReach(worker string) []string {
	switch {
	case !f.Applied:
	case f.separates() && f.involves(worker):
		return f.across(worker)
	case hitsProcesses(f.Kind) && f.certainTo != 0:
		return f.Targets
	}
	return nil
}

// outOfReach is when the fault kept processes out of reach. While a server is being resumed or restarted it may
// already run, and may have granted the lock.
func (f *fault) outOfReach() span {
	if hitsProcesses(f.Kind) {
		return span{f.certainFrom, f.certainTo}
	}
	return span{f.Begin, f.End}
}

// distances are what the faults put out of reach of workers, and when.
type distances struct {
	down  map[string][]span            // servers that were down for all workers
	apart map[string]map[string][]span // by worker, servers that only it could not reach
	cuts  map[string][]span            // caches, by reached servers, when a majority of them was down
}

// distances scans all faults once. Most faults of servers are the same for all workers, of which there can be
// thousands.
func (r *run) distances() distances {
	d := distances{make(map[string][]span), make(map[string]map[string][]span), make(map[string][]span)}
	for i := range r.faults {
		f := &r.faults[i]
		if !f.Applied {
			continue
		}
		mixed := hitsProcesses(f.Kind) && f.separates() && f.onWorkers(r.workers)
		if hitsProcesses(f.Kind) && !mixed {
			for _, server := range f.putsOutOfReach("") {
				d.down[server] = append(d.down[server], f.outOfReach())
			}
			continue
		}
		involved := slices.Concat(f.Targets, f.Peers)
		if mixed && !f.onlyWorkers(r.workers) { // the other workers lose the targets that are servers
			involved = r.header.Workers
		}
		for _, worker := range involved {
			for _, server := range f.putsOutOfReach(worker) {
				d.separate(worker, server, f.outOfReach())
			}
		}
	}
	for server, spans := range d.down {
		d.down[server] = united(spans)
	}
	return d
}

func (d distances) separate(worker, server string, away span) {
	if d.apart[worker] == nil {
		d.apart[worker] = make(map[string][]span)
	}
	d.apart[worker][server] = append(d.apart[worker][server], away)
}

// cutOffs returns when a worker was cut off from its lock service, that is when no majority of its servers
// was running and in its reach. With a majority the service can still do everything.
func (d distances) cutOffs(worker string, servers []string) spans {
	least := max(1, (len(servers)+1)/2)
	name := joined(servers)
	common, known := d.cuts[name]
	if !known {
		var groups [][]span
		for _, server := range servers {
			groups = append(groups, d.down[server])
		}
		common = togetherAtLeast(least, groups)
		d.cuts[name] = common
	}
	var own, cuts []span
	apart := make([][]span, len(servers))
	for i, server := range servers {
		apart[i] = united(d.apart[worker][server])
		own = append(own, apart[i]...)
	}
	// Outside these spans the worker reached the same servers as all others.
	for _, s := range united(own) {
		var groups [][]span
		for i, server := range servers {
			groups = append(groups, united(append(within(s, apart[i]), within(s, d.down[server])...)))
		}
		cuts = append(cuts, togetherAtLeast(least, groups)...)
	}
	return newSpans(common, cuts)
}

// within returns the parts of spans, which are in order and disjoint, that lie in s.
func within(s span, spans []span) []span {
	var cut []span
	for _, other := range meeting(spans, s.from, s.to) {
		cut = append(cut, span{max(s.from, other.from), min(s.to, other.to)})
	}
	return cut
}

// applyFaults computes what the faults did to the workers: when each was cut off, when it was stopped, when
// it died, and when the service may have given it up because of that.
func (r *run) applyFaults() {
	d := r.distances()
	silent := make(map[*actor][]span)
	var servers []span // when connections ended with a server
	for i := range r.faults {
		f := &r.faults[i]
		if !f.Applied || !hitsProcesses(f.Kind) {
			continue
		}
		switch {
		case !r.onServers(f):
		case f.does(history.Ends):
			servers = append(servers, span{f.Begin, max(f.Begin, f.certainFrom)})
		case f.does(history.Impairs): // the server may have ended at any time until it was back
			servers = append(servers, span{f.Begin, max(f.End, f.healedAt)})
		}
		for w := range r.workersOf(f) {
			silent[w] = append(silent[w], span{f.Begin, f.End})
			if f.does(history.Ends) && (w.killed == 0 || f.Begin < w.killed) {
				w.killed = f.Begin
			}
			if f.does(history.Stops) {
				w.stops = append(w.stops, span{f.Begin, f.End})
			}
		}
	}
	lapses := lapses{run: r, servers: servers, common: make(map[string][]span)}
	for _, w := range r.byWorker {
		reached := r.reaches(w.name)
		w.cutOffs, w.stops = d.cutOffs(w.name, reached), united(w.stops)
		w.lapses = lapses.of(w, joined(reached), silent[w])
		r.findOverdue(w)
	}
}

// lapses computes when the service may have given workers up.
type lapses struct {
	*run
	servers []span
	common  map[string][]span // caches, by reached servers, the lapses that workers have in common
}

// of returns the lapses of a worker; silent is when it was stopped or dead.
func (l *lapses) of(w *actor, servers string, silent []span) spans {
	var of func(cuts []span) []span
	var own []span
	switch {
	case l.header.Session:
		// A session is silent during a cut and during a stop that follows it.
		own = newSpans(w.cutOffs.common, append(silent, w.cutOffs.own...)).own
		of = func(cuts []span) []span { return longerThan(int64(l.header.Lease/2), cuts) }
		own = of(own)
	case connected(l.header):
		of = func(cuts []span) []span { return united(append(l.severed(cuts), l.servers...)) }
		own = l.severed(w.cutOffs.own)
		if w.killed != 0 {
			own = append(own, span{w.killed, max(w.killed, l.end)})
		}
	default:
		return spans{}
	}
	common, known := l.common[servers]
	if !known {
		common = of(w.cutOffs.common)
		l.common[servers] = common
	}
	return newSpans(common, own)
}

// longerThan returns what is left of spans after the first part ns of each.
func longerThan(part int64, spans []span) []span {
	var rest []span
	for _, s := range spans {
		if s.length() > part {
			rest = append(rest, span{s.from + part, s.to})
		}
	}
	return rest
}

// connected says that a lock without a lease lasts as long as the connection of its holder. Grace is then how
// long the server takes to notice that a connection is gone. A lock that nothing ends has no grace.
func connected(h history.Header) bool {
	return h.Lease == 0 && h.Grace > 0 && h.Imported == ""
}

// severed returns when the connections of cut-off workers may have ended, and with them the grants from
// before the end of the span. A cut is not noticed before half the time that the server may take, but then
// the connection may have been lost from the beginning of the cut. Connections also end with a killed process
// or with a server. The kernel of a stopped worker keeps its connections.
func (r *run) severed(cuts []span) []span {
	var ends []span
	for _, s := range cuts {
		if s.length() > int64(r.header.Grace/2) {
			ends = append(ends, s)
		}
	}
	return ends
}

// lapse is the earliest time at which the service may have ended a grant because it gave up the session or
// the connection of its worker; math.MaxInt64 if it had no reason to. A lapse before the grant was asked for
// did not end this grant.
func (r *run) lapse(a *attempt) int64 {
	asked, lapse := a.acquire.invoke, int64(math.MaxInt64)
	if first, is := r.byWorker[a.worker].lapses.first(asked, math.MaxInt64); is {
		lapse = first.from
	}
	if session, is := r.overdue(a); is {
		lapse = min(lapse, session.from)
	}
	return max(lapse, asked)
}
