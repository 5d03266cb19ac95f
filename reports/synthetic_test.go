package reports

import (
	"encoding/json"
	"fmt"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

const (
	ms    = int64(time.Millisecond)
	s     = int64(time.Second)
	epoch = 8_412 * s // a monotonic clock does not start at zero
)

// story builds a history and its results together. Workers take turns. Now and then, the holder is paused
// past its lease while another worker goes on.
type story struct {
	h       history.History
	r       checker.Results
	now     int64
	op      int64
	element int64
	seq     int64
	token   uint64
	guarded bool
	missing map[int64]bool
}

func newStory(guard string) *story {
	st := &story{now: epoch, guarded: guard == "fence", missing: map[int64]bool{}}
	st.h.Header = history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Run: "20250301T101500Z-4f1c", Started: "2025-03-01T10:15:00Z", Version: "0.1.0",
		Lock: "redis", Workload: "set", Guard: guard, Workers: []string{"w1", "w2", "w3", "w4", "w5"}, Servers: []string{"n1"},
		Lease: 2 * time.Second, Grace: 100 * time.Millisecond, Tokens: true, Faults: []string{"pause", "partition", "clock"}, MinOps: 100, Seed: 42,
		Parameters: map[string]string{"section": "20ms..60ms", "time-limit": "60s", "rate": "50", "keys": "4"},
		Versions:   map[string]string{"redis": "7.4.2", "go-redis": "v9.7.0"},
		Images:     map[string]string{"redis:7.4.2": "sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9"},
		Command:    []string{"lockcheck", "test", "redis", "-w", "set", "--nemesis", "pause,partition,clock", "--seed", "42"},
	}
	st.r = checker.Results{Schema: checker.Schema, Begin: epoch}
	return st
}

func (st *story) emit(e history.Event) {
	e.Index = int64(len(st.h.Events))
	st.h.Events = append(st.h.Events, e)
}

func (st *story) phase(name string) {
	st.emit(history.Event{Time: st.now, Process: history.Harness, Type: history.Info, F: history.Phase, Note: name})
}

func (st *story) key() string { return fmt.Sprintf("k%d", st.op/40%4) }

// grant gives a worker the lock at st.now, after a wait.
func (st *story) grant(worker, key string, waited int64) checker.Hold {
	st.op++
	st.token++
	st.r.Operations.Acquired++
	h := checker.Hold{
		Key: key, Worker: worker, Grant: fmt.Sprintf("%s-%d", worker, st.op), Token: st.token,
		Invoked: st.now - waited, Start: st.now, Deadline: st.now + 2*s, LeaseEnd: st.now + 2*s, Ended: checker.EndedByRelease,
	}
	st.emit(history.Event{Time: h.Invoked, Process: worker, Type: history.Invoke, F: history.Acquire, Key: key, Op: st.op, Grant: h.Grant})
	st.emit(history.Event{Time: h.Start, Process: worker, Type: history.OK, F: history.Acquire, Key: key, Op: st.op, Grant: h.Grant, Token: h.Token, Until: h.Deadline})
	return h
}

func (st *story) busy(worker, key string, from, to int64) {
	st.op++
	st.r.Operations.Busy++
	st.emit(history.Event{Time: from, Process: worker, Type: history.Invoke, F: history.Acquire, Key: key, Op: st.op})
	st.emit(history.Event{Time: to, Process: worker, Type: history.Fail, F: history.Acquire, Key: key, Op: st.op, Error: "busy"})
}

func (st *story) access(h checker.Hold, t int64, f history.Function, ok bool) int64 {
	st.seq++
	e := history.Event{Time: t, Process: history.Resource, Type: history.OK, F: f, Key: h.Key, Client: h.Worker, Grant: h.Grant, Token: h.Token, Seq: st.seq}
	if f == history.Write {
		st.element++
		e.Element = st.element
	}
	switch {
	case !ok:
		e.Type, e.Error = history.Fail, "token lower than the highest seen"
		if f == history.Write {
			st.r.Fence.RefusedWrites++
		} else {
			st.r.Fence.RefusedReads++
		}
	case f == history.Write:
		st.r.Updates.Acknowledged++
	}
	st.emit(e)
	return e.Element
}

func (st *story) end(h checker.Hold, t int64, how checker.HoldEnd) {
	h.End, h.Ended = t, how
	st.r.Holds = append(st.r.Holds, h)
	st.emit(history.Event{Time: t, Process: h.Worker, Type: history.Invoke, F: history.Release, Key: h.Key, Grant: h.Grant})
	st.r.Operations.Released++
}

// undisturbed lets workers take turns for n holds of the given length.
func (st *story) undisturbed(n int, section int64) {
	for range n {
		w := st.h.Header.Workers[int(st.op)%len(st.h.Header.Workers)]
		h := st.grant(w, st.key(), section/4)
		st.access(h, st.now+section/3, history.Read, true)
		st.access(h, st.now+2*section/3, history.Write, true)
		st.end(h, st.now+section, checker.EndedByRelease)
		st.now += section + section/3
	}
}

func (st *story) fault(f checker.FaultCoverage, resourceWrite int64, stages map[history.Stage]string) {
	f.Begin, f.End = f.Begin-resourceWrite, f.End+resourceWrite
	st.r.Faults = append(st.r.Faults, f)
	if !f.Applied {
		f.Begin = st.now
	}
	times := map[history.Stage]int64{
		history.Requested: f.Begin, history.Applied: f.Begin + resourceWrite, history.Proven: f.Begin + 2*resourceWrite,
		history.Healed: f.End - resourceWrite, history.ProvenHealed: f.End, history.Skipped: f.Begin, history.Unproven: f.Begin + 2*resourceWrite,
	}
	for _, stage := range []history.Stage{history.Requested, history.Skipped, history.Applied, history.Proven, history.Unproven, history.Healed, history.ProvenHealed} {
		text, ok := stages[stage]
		if !ok {
			continue
		}
		st.emit(history.Event{Time: times[stage], Process: history.Nemesis, Type: history.Info, F: history.FaultPhase,
			Fault: &history.Fault{ID: f.ID, Kind: f.Kind, Stage: stage, Targets: f.Targets, Role: f.Role, Peers: f.Peers, Evidence: text}})
	}
}

// outlast pauses a holder past its lease. Another worker gets the lock and writes, and the first wakes up and
// writes too.
func (st *story) outlast(id, first, second string, loses bool) {
	key := st.key()
	a := st.grant(first, key, 12*ms)
	st.access(a, st.now+15*ms, history.Read, true)
	paused := st.now + 30*ms
	for i, w := range st.h.Header.Workers {
		for t := paused + int64(i)*70*ms; t < a.Deadline-150*ms; t += 400 * ms {
			if w != first {
				st.busy(w, key, t, t+220*ms)
			}
		}
	}
	st.now = a.Deadline + 90*ms
	b := st.grant(second, key, 260*ms)
	st.access(b, st.now+60*ms, history.Read, true)
	wrote := st.access(b, st.now+200*ms, history.Write, true)
	wakes := st.now + 320*ms
	stale := st.access(a, wakes+20*ms, history.Write, !st.guarded)
	st.end(a, wakes+45*ms, checker.EndedAtRelease)
	st.end(b, wakes+200*ms, checker.EndedByRelease)
	st.fault(checker.FaultCoverage{ID: id, Kind: "pause", Role: "holder", Targets: []string{first}, Applied: true, Proven: true, Exercised: true, Outlasted: true, Healed: true,
		Begin: paused, End: wakes}, 4*ms, map[history.Stage]string{
		history.Requested: "", history.Applied: "", history.Proven: "/proc/4711/stat: state T (stopped)", history.Healed: "", history.ProvenHealed: "/proc/4711/stat: state S (sleeping)"})
	workers, grants := []string{first, second}, []string{a.Grant, b.Grant}
	st.add(checker.MutualExclusion, checker.Incident{Key: key, From: b.Start, To: wakes + 45*ms, Class: "use after expiry", Workers: workers, Grants: grants, Faults: []string{id},
		What: first + " still acted as the holder when " + second + " was granted the lock; both held it for 365 ms"})
	st.r.Overlaps.UsesAfterExpiry++
	st.r.Overlaps.EarlierPaused++
	st.r.Overlaps.Longest = 365 * time.Millisecond
	if !st.guarded {
		st.add(checker.NoStaleWrite, checker.Incident{Key: key, From: wakes + 20*ms, Element: stale, Workers: workers, Grants: grants, Faults: []string{id},
			What: fmt.Sprintf("%s wrote element %d with token %d after %s had worked with token %d", first, stale, a.Token, second, b.Token)})
	}
	if loses && !st.guarded {
		st.missing[wrote] = true
		st.r.Updates.Lost++
		st.add(checker.NoLostUpdate, checker.Incident{Key: key, From: st.now + 200*ms, To: wakes + 20*ms, Element: wrote, Class: checker.ClassLost, Workers: []string{second, first}, Grants: []string{b.Grant, a.Grant}, Faults: []string{id},
			What: fmt.Sprintf("update %d of %s was overwritten 140 ms later by %s", wrote, second, first)})
	}
	st.now = wakes + 260*ms
}

// add adds an incident to the finding of its property.
func (st *story) add(p checker.Property, i checker.Incident) {
	for n := range st.r.Findings {
		if st.r.Findings[n].Property == p {
			f := &st.r.Findings[n]
			if f.Total++; len(f.Violations) < checker.MaxListed {
				f.Violations = append(f.Violations, i)
			}
			return
		}
	}
	st.r.Findings = append(st.r.Findings, checker.Finding{Property: p, Verdict: checker.Violation, Violations: []checker.Incident{i}, Total: 1})
}

// finish completes the findings to one per property.
func (st *story) finish(v checker.Verdict, sentence string) (*history.History, checker.Results) {
	st.now += 2 * s
	st.r.End = st.now
	st.r.Verdict, st.r.Sentence = v, sentence
	st.r.Required = []checker.Property{checker.NoStaleWrite, checker.NoLostUpdate, checker.Liveness, checker.Assumptions}
	if !st.guarded {
		st.r.Required = append([]checker.Property{checker.MutualExclusion}, st.r.Required...)
	}
	summaries := map[checker.Property]string{
		checker.MutualExclusion: "no two workers held the same lock at once, in 481 holds",
		checker.NoWrongRelease:  "no release took another worker's lock away",
		checker.NoStaleWrite:    "no write came after an access of a later grant",
		checker.NoLostUpdate:    "all acknowledged updates are in the final state",
		checker.FencingOrder:    "tokens rose with every grant",
		checker.Linearizability: "porcupine agrees in 12 ms: the lock service never granted twice",
		checker.Liveness:        "every lock could be acquired again within 2.1 s; limit 2.1 s",
		checker.FaultEvidence:   "see the faults below",
		checker.Assumptions:     "all clocks agree, and every access was within a hold",
	}
	var out []checker.Finding
	for _, p := range []checker.Property{checker.MutualExclusion, checker.NoWrongRelease, checker.NoStaleWrite, checker.NoLostUpdate, checker.FencingOrder,
		checker.Linearizability, checker.Liveness, checker.FaultEvidence, checker.Assumptions} {
		f := checker.Finding{Property: p, Verdict: checker.Valid, Summary: summaries[p]}
		for _, g := range st.r.Findings {
			if g.Property == p {
				f = g
				f.Summary = fmt.Sprintf("%d found: 0 by a double grant, %d by a use after expiry; the earlier holder was paused each time", g.Total, g.Total)
			}
		}
		for _, q := range st.r.Required {
			f.Required = f.Required || p == q
		}
		f.Tolerated = f.Verdict == checker.Violation && st.guarded
		out = append(out, f)
	}
	st.r.Findings = out
	var final []int64
	for e := int64(1); e <= st.element; e++ {
		if !st.missing[e] {
			final = append(final, e)
		}
	}
	value, err := json.Marshal(final)
	if err != nil {
		panic(err)
	}
	st.emit(history.Event{Time: st.now, Process: history.Resource, Type: history.OK, F: history.Final, Key: "k0", Value: value})
	st.phase(history.PhaseEnd)
	return &st.h, st.r
}

// realistic is a minute with three outlasted pauses, a cut, and faults that do not count.
func realistic(guard string) (*history.History, checker.Results) {
	st := newStory(guard)
	st.now += 300 * ms
	st.phase(history.PhaseReady)
	st.undisturbed(60, 45*ms)
	st.outlast("f1", "w2", "w4", true)
	st.undisturbed(120, 30*ms)
	st.outlast("f2", "w1", "w3", true)
	st.fault(checker.FaultCoverage{ID: "f3", Kind: "partition", Targets: []string{"w5"}, Peers: []string{"n1"}, Applied: true, Proven: true, Exercised: true, Healed: true,
		Begin: st.now, End: st.now + 4*s}, 20*ms, map[history.Stage]string{
		history.Requested: "", history.Applied: "", history.Proven: "a probe to n1:6379 timed out after 1 s; 3 packets dropped", history.Healed: "41 packets dropped in all", history.ProvenHealed: "a probe to n1:6379 answered in 2 ms"})
	st.undisturbed(100, 40*ms)
	st.fault(checker.FaultCoverage{ID: "f4", Kind: "pause", Role: "holder", Targets: []string{"w3"}, Applied: true, Proven: true, Healed: true, Reason: "it hit the worker outside its critical section",
		Begin: st.now, End: st.now + 2*s}, 5*ms, map[history.Stage]string{
		history.Requested: "", history.Applied: "", history.Proven: "/proc/4713/stat: state T (stopped)", history.Healed: "", history.ProvenHealed: "/proc/4713/stat: state S (sleeping)"})
	st.undisturbed(150, 40*ms)
	st.outlast("f5", "w5", "w1", false)
	st.fault(checker.FaultCoverage{ID: "f6", Kind: "clock", Targets: []string{"n1"}, Reason: "this image has no libfaketime"}, 0,
		map[history.Stage]string{history.Requested: "", history.Skipped: "this image has no libfaketime"})
	st.phase(history.PhaseRecovery)
	st.undisturbed(100, 50*ms)
	st.phase(history.PhaseFinal)
	st.r.Updates.LostLow, st.r.Updates.LostHigh = 0.001, 0.0135
	if guard == "fence" {
		return st.finish(checker.Valid, "Workers overlapped 3 times, and the fence made that harmless: it refused 3 stale accesses, and none of 533 acknowledged updates is lost.")
	}
	return st.finish(checker.Violation, "Two workers held the lock at the same time 3 times, each time after a pause outlasted the lease; 2 of 536 acknowledged updates are lost.")
}
