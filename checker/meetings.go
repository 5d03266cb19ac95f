package checker

import (
	"slices"

	"lockcheck/history"
)

// meetings knows which faults were in force while any worker held the lock or had a call to the service open.
type meetings struct {
	holds *visited
	calls []callers
}

// callers are the workers that reach the same servers.
type callers struct {
	servers []string
	workers []*actor
	calls   *visited
}

// meetings scans all holds and calls once, and only if a fault needs it.
func (r *run) meetings() meetings {
	var times []span
	for i := range r.faults {
		f := &r.faults[i]
		if certain, is := f.certain(); is && (f.doesAny(history.Steps, history.Deposes) || hitsProcesses(f.Kind) && !f.onWorkers(r.workers)) {
			times = append(times, certain)
		}
	}
	m := meetings{holds: newVisited(times)}
	if len(times) == 0 {
		return m
	}
	for _, h := range r.holds {
		m.holds.add(h.acquire.done, h.holdEnd)
	}
	m.holds.close()
	m.calls = r.callers()
	for i := range m.calls {
		m.calls[i].indexCalls(newVisited(times), r.end)
	}
	return m
}

// callers groups the workers by the servers that they reach.
func (r *run) callers() []callers {
	var all []callers
	places := make(map[string]int)
	for _, w := range r.byWorker {
		servers := r.reaches(w.name)
		name := joined(servers)
		i, known := places[name]
		if !known {
			i = len(all)
			places[name] = i
			all = append(all, callers{servers: servers})
		}
		all[i].workers = append(all[i].workers, w)
	}
	return all
}

func (c *callers) indexCalls(calls *visited, end int64) {
	for _, w := range c.workers {
		for _, a := range w.attempts {
			for call := range a.calls {
				calls.add(call.invoke, call.doneOr(end))
			}
		}
	}
	calls.close()
	c.calls = calls
}

// metHold says whether any worker held the lock while the fault certainly was in force.
func (m meetings) metHold(f *fault) bool {
	certain, is := f.certain()
	return is && m.holds.overlapped(certain)
}

// metOperation says whether a call to the service was open while the fault certainly was in force.
func (m meetings) metOperation(f *fault) bool {
	certain, is := f.certain()
	return is && slices.ContainsFunc(m.calls, func(c callers) bool { return f.concerns(c.servers) && c.calls.overlapped(certain) })
}

// concerns says whether the fault affects workers that reach some servers. A stopped or dead server does not
// affect workers that do not know it.
func (f *fault) concerns(servers []string) bool {
	return !hitsProcesses(f.Kind) ||
		slices.ContainsFunc(servers, func(server string) bool { return slices.Contains(f.Targets, server) })
}

// certain is when the fault certainly was in force, and false if that is not known.
func (f *fault) certain() (span, bool) { return span{f.certainFrom, f.certainTo}, f.certainTo != 0 }
