package checker

import (
	"cmp"
	"slices"
	"time"

	"lockcheck/history"
)

// hitsProcesses says whether faults of a kind act on processes, or on their disks, which may stop or end them. Such
// faults are judged differently on workers and on servers.
func hitsProcesses(kind string) bool {
	return history.Does(kind, history.Stops) || history.Does(kind, history.Ends) || history.Does(kind, history.Impairs)
}

// does says whether the fault has an effect on its targets.
func (f *fault) does(effect history.Effect) bool { return history.Does(f.Kind, effect) }

// doesAny says whether the fault has any of some effects.
func (f *fault) doesAny(effects ...history.Effect) bool { return slices.ContainsFunc(effects, f.does) }

// fault is one injected fault, put together from all of its stages.
type fault struct {
	FaultCoverage
	// The fault was certainly in force from certainFrom to certainTo, ns. If certainTo is 0, nothing is
	// certain.
	certainFrom, certainTo int64
	healedAt               int64   // latest time at which it was gone, 0 if it never was
	dropped                *int64  // packets, or operations of a disk
	unhealed               bool    // the nemesis reported that it could not prove the healing
	step                   int64   // of a clock, ns; 0 if it is not known
	speed                  float64 // of a clock; 0 if it is not known
	// deferred is the grant whose write the fault held back.
	deferred grant
	// awaited is when the event happened that the fault waited for, ns. If the history does not name the
	// event, it is the time from which the fault was certainly in force.
	awaited int64
	// caught is the call that was stopped for the fault, nil if none was.
	caught *call
}

// Fault is one injected fault, put together from all of its stages, for checkers in other packages.
type Fault = fault

// Faults puts the events of the nemesis together, in the order in which the faults were requested.
func Faults(events []history.Event) []Fault {
	byID, order := stagesOf(events)
	faults := make([]Fault, 0, len(order))
	for _, id := range order {
		faults = append(faults, *byID[id])
	}
	return faults
}

// Certain is the time in which the fault was certainly in force, in ns; to is 0 if nothing is certain.
func (f *fault) Certain() (from, to int64) { return f.certainFrom, f.certainTo }

// HealedAt is the latest time at which the fault was gone, in ns; 0 if it never was.
func (f *fault) HealedAt() int64 { return f.healedAt }

// Unhealed says that the nemesis has no evidence that the fault is gone.
func (f *fault) Unhealed() bool { return f.unhealed }

// Does says whether the fault has an effect on its targets.
func (f *fault) Does(effect history.Effect) bool { return f.does(effect) }

// Involves says whether a process was a target of the fault, or cut off by it.
func (f *fault) Involves(process string) bool { return f.involves(process) }

// Met says whether a fault of the network hit any packets, or a fault of a disk any operations of its server, by its
// own counters, and if not, why.
func (f *fault) Met() (met bool, missed MissReason) {
	onDisk := f.does(history.Impairs)
	switch {
	case f.dropped != nil && *f.dropped > 0:
		return true, ""
	case f.dropped != nil && onDisk:
		return false, MissNoDisk
	case f.dropped != nil:
		return false, MissNoPacket
	case onDisk:
		return false, MissDisk
	}
	return false, MissPackets
}

func stagesOf(events []history.Event) (byID map[string]*fault, order []string) {
	byID = make(map[string]*fault)
	for _, e := range events {
		if e.F != history.FaultPhase || e.Fault == nil {
			continue
		}
		f := byID[e.Fault.ID]
		if f == nil {
			f = &fault{FaultCoverage: FaultCoverage{ID: e.Fault.ID, Kind: e.Fault.Kind}}
			byID[e.Fault.ID] = f
			order = append(order, e.Fault.ID)
		}
		f.stage(e)
	}
	return byID, order
}

// collectFaults puts the events of the nemesis and the deferred writes of the resource together.
func collectFaults(r *run, events []history.Event) []fault {
	byID, order := stagesOf(events)
	for _, e := range events {
		// The fault is in force from now on, for this grant. Nemesis and resource take and report their times
		// separately.
		if f := byID[e.Note]; e.F == history.Deferred && f != nil {
			f.certainFrom, f.deferred = e.Time, r.names.Of(e.Grant)
		} else if e.F == history.Caught && f != nil && e.Process == f.Actor {
			f.caught = r.openCall(f.Moment, &e)
		}
	}
	faults := make([]fault, 0, len(order))
	for _, id := range order {
		f := byID[id]
		f.makeKillPermanent(r)
		if f.Applied && f.End == 0 {
			f.End = r.end
			if f.Proven && !r.ended() {
				f.certainTo = r.end // the record ends while the fault was in force
			}
		}
		faults = append(faults, *f)
	}
	return faults
}

// makeKillPermanent makes a kill of workers permanent: it is never undone. For all other workers it was over as soon as
// it had happened, and nothing was left to heal.
func (f *fault) makeKillPermanent(r *run) {
	if !f.does(history.Ends) || !f.Applied || !f.onlyWorkers(r.workers) {
		return
	}
	f.healedAt, f.End = f.certainFrom, r.end
	if f.Proven {
		f.certainTo = r.end
	}
}

func (f *fault) stage(e history.Event) {
	d := e.Fault
	if d.Role != "" {
		f.Role = d.Role
	}
	if len(d.Targets) > 0 {
		f.Targets = slices.Clone(d.Targets)
	}
	if len(d.Peers) > 0 {
		f.Peers = slices.Clone(d.Peers)
	}
	f.Moment, f.Actor = cmp.Or(d.Moment, f.Moment), cmp.Or(d.Actor, f.Actor)
	f.Since, f.step = max(f.Since, time.Duration(d.Since)), cmp.Or(d.Step, f.step)
	f.speed = cmp.Or(d.Speed, f.speed)
	if d.Dropped != nil {
		f.dropped = d.Dropped
	}
	if d.Evidence != "" {
		f.Evidence = append(f.Evidence, string(d.Stage)+": "+d.Evidence)
	}
	from, to := cmp.Or(d.From, e.Time), cmp.Or(d.To, e.Time)
	switch d.Stage {
	case history.Applied:
		f.Applied, f.Begin, f.certainFrom, f.awaited = true, from, to, to-d.Since
	case history.Proven:
		f.Proven = true
	case history.Healed:
		f.certainTo, f.End, f.healedAt = from, to, max(f.healedAt, to)
	case history.ProvenHealed:
		if f.doesAny(history.Ends, history.Impairs) {
			to = e.Time // a server is back when it answers, not when its process starts
		}
		f.Healed, f.healedAt = true, max(f.healedAt, to)
	case history.Skipped:
		f.Missed, f.Said = MissSkipped, d.Evidence
	case history.Unproven:
		f.Missed, f.Said = MissUnproven, d.Evidence
	case history.Unhealed:
		f.unhealed = true
		if f.Missed == "" {
			f.Missed, f.Said = MissUnhealed, d.Evidence
		}
	}
}

// involves says whether a process was the target of the fault, or cut off by it.
func (f *fault) involves(process string) bool {
	return slices.Contains(f.Targets, process) ||
		f.separates() && slices.Contains(f.Peers, process)
}

// across returns the processes on the other side of a partition.
func (f *fault) across(process string) []string {
	if slices.Contains(f.Targets, process) {
		return f.Peers
	}
	return f.Targets
}
