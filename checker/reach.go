package checker

import (
	"slices"

	"lockcheck/history"
)

// reaches returns the servers that a worker was told of. Servers of different
// roles, such as data servers and Sentinels, are taken for equals: the history does
// not tell them apart.
func (r *run) reaches(worker string) []string {
	if servers := r.header.Reaches[worker]; len(servers) > 0 {
		return servers
	}
	return r.header.Servers
}

// cutOffs returns when a worker was cut off from its lock service: when no
// majority of its servers was left that it could reach and that ran. With a
// majority it can still do all that a healthy one can.
func (r *run) cutOffs(worker string) []span {
	away := make(map[string][]span)
	for i := range r.faults {
		f := &r.faults[i]
		for _, server := range f.takes(worker) {
			away[server] = append(away[server], f.away())
		}
	}
	servers := r.reaches(worker)
	var groups [][]span
	for _, server := range servers {
		groups = append(groups, united(away[server]))
	}
	return togetherAtLeast(max(1, (len(servers)+1)/2), groups)
}

// separates says whether the fault keeps nodes apart. Of one that only loses or delays
// packets it is not known which: the worker may have been out of reach all the time,
// and what happened then is not put down to its service.
func (f *fault) separates() bool { return f.does(history.Cuts) || f.does(history.Disturbs) }

// takes returns the processes that the fault puts out of reach of a worker.
func (f *fault) takes(worker string) []string {
	switch {
	case !f.Applied:
	case f.separates() && f.involves(worker):
		return f.across(worker)
	case hitsProcesses(f.Kind) && f.certainTo != 0:
		return f.Targets
	}
	return nil
}

// away is when the fault kept processes out of reach. A server that was about to
// go on or to come up again may have done so already, and granted the lock.
func (f *fault) away() span {
	if hitsProcesses(f.Kind) {
		return span{f.certainFrom, f.certainTo}
	}
	return span{f.Begin, f.End}
}

// endure computes what the faults did to a worker: when it was cut off, when it could
// not renew a session because it was stopped, dead or cut off, and when it was stopped.
func (r *run) endure(w *actor) {
	w.cutOffs = r.cutOffs(w.name)
	silent := slices.Clone(w.cutOffs)
	for i := range r.faults {
		f := &r.faults[i]
		if !f.Applied || !hitsProcesses(f.Kind) || !slices.Contains(f.Targets, w.name) {
			continue
		}
		silent = append(silent, span{f.Begin, f.End})
		if f.does(history.Ends) && w.killed == 0 {
			w.killed = f.Begin
		}
		if f.does(history.Stops) {
			w.stops = append(w.stops, span{f.Begin, f.End})
		}
	}
	w.silences, w.stops = united(silent), united(w.stops)
}
