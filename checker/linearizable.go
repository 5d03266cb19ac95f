package checker

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"lockcheck/history"
)

// The model judges the lock service: may these answers have come from one mutex
// that knows its owner? It follows the rules of docs/verdicts.md:
//
//  1. Failure is informative. A busy answer that names the holder is legal only
//     while that grant holds the lock; one that does not is left out.
//  2. What had no witness is left out. An acquire of unknown outcome counts only
//     if its grant was seen as a holder, or its clean-up release succeeded. An
//     acquire that failed for certain is left out with all that was seen of it:
//     a lock that asks several servers may show such a grant for a moment at
//     some of them. Leaving out a grant with everything that names it can hide
//     an error but never make one: take its steps out of a legal order and a
//     legal order remains.
//  3. What the service does by itself is a synthetic end of a grant, legal only
//     while that grant holds the lock, from attempt.serviceEnd to the end of the
//     history. It exists only for grants without an acknowledged release. A
//     grant of unknown outcome may end from the start: nobody was promised it.
//  4. Each key is a partition of its own.
//
// A client must report as Holder only what the lock as a whole answered: of a
// lock with a quorum, a grant that a majority named.
type stepKind int

const (
	stepAcquire stepKind = iota
	stepBusy             // refused in favour of grant
	stepRelease
	stepNotHeld // the release was refused: grant is not the holder
	stepEnd     // the service ended grant by itself
)

// step is one operation of the model, with the closed interval in which it took
// effect, ns.
type step struct {
	kind      stepKind
	grant     string
	token     uint64 // of an acquire, 0 if unknown
	worker    string
	call, ret int64
	open      bool // its end is not known: ret is that of the history
}

// steps returns the operations of a key. It is false if the history of that key
// contradicts the schema: porcupine does not reject malformed input but gives
// wrong answers.
func (r *run) steps(attempts []*attempt) ([]step, bool) {
	seen := witnessed(r, attempts)
	var steps []step
	for _, a := range attempts {
		if a.malformed {
			return nil, false
		}
		if a.acquire == nil {
			continue
		}
		if h := r.byGrant[a.acquire.holder]; h != nil && a.busy() && h.modelled(seen) {
			steps = append(steps, step{kind: stepBusy, grant: h.grant, worker: a.worker, call: a.acquire.invoke, ret: a.acquire.done})
		}
		if a.modelled(seen) {
			steps = append(steps, r.stepsOf(a)...)
		}
	}
	return steps, !slices.ContainsFunc(steps, func(s step) bool { return s.ret < s.call })
}

// busy says whether the attempt was refused in favour of a grant that it names.
func (a *attempt) busy() bool { return a.acquire.failed() && a.acquire.holder != "" }

// witnessed returns the grants that somebody was refused in favour of.
func witnessed(r *run, attempts []*attempt) map[string]bool {
	seen := make(map[string]bool)
	for _, a := range attempts {
		if a.acquire == nil || !a.busy() {
			continue
		}
		if h := r.byGrant[a.acquire.holder]; h != nil && h.key == a.key {
			seen[h.grant] = true
		}
	}
	return seen
}

func (a *attempt) modelled(seen map[string]bool) bool {
	if a.acquire == nil || a.acquire.failed() {
		return false
	}
	return a.granted() || seen[a.grant] || a.released() != nil
}

// stepsOf returns the life of one grant.
func (r *run) stepsOf(a *attempt) []step {
	forever := r.end + 1
	acquire := step{kind: stepAcquire, grant: a.grant, token: a.acquire.token, worker: a.worker, call: a.acquire.invoke, ret: a.acquire.done}
	if !a.granted() {
		acquire.ret, acquire.open = forever, true
	}
	steps := []step{acquire}
	if c := a.released(); c != nil {
		steps = append(steps, step{kind: stepRelease, grant: a.grant, worker: a.worker, call: c.invoke, ret: c.done})
	} else if end := r.mayEnd(a); end <= r.end {
		steps = append(steps, step{kind: stepEnd, grant: a.grant, worker: a.worker, call: end, ret: forever, open: true})
	}
	for _, c := range a.releases {
		// Of an acquire that was never answered this says nothing: it may have
		// arrived only after its clean-up.
		if c.failed() && a.granted() && c.invoke > a.acquire.done {
			steps = append(steps, step{kind: stepNotHeld, grant: a.grant, worker: a.worker, call: c.invoke, ret: c.done})
		}
	}
	return steps
}

func (r *run) mayEnd(a *attempt) int64 {
	if !a.granted() {
		return a.acquire.invoke
	}
	return max(a.serviceEnd(r.header.Lease), a.acquire.invoke)
}

// lockState is the state of the model: the grant that holds the lock, "" if it
// is free, and the highest token so far.
type lockState struct {
	holder  string
	highest uint64
}

// mutex is the owner-aware mutex; with tokens also the fenced one: a token must
// exceed the highest seen, an unknown token is accepted and changes nothing
// (after Jepsen's Hazelcast suite).
func mutex(fenced bool) porcupine.Model {
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			return apply(state.(lockState), input.(step), fenced)
		},
		DescribeOperation: func(input, _ any) string { return input.(step).String() },
		DescribeState: func(state any) string {
			if s := state.(lockState); s.holder != "" {
				return "held by " + s.holder
			}
			return "free"
		},
	}
}

func apply(s lockState, o step, fenced bool) (bool, lockState) {
	switch o.kind {
	case stepAcquire:
		if s.holder != "" || fenced && o.token != 0 && o.token <= s.highest {
			return false, s
		}
		return true, lockState{o.grant, max(s.highest, o.token)}
	case stepBusy:
		return s.holder == o.grant, s
	case stepNotHeld:
		return s.holder != o.grant, s
	}
	return s.holder == o.grant, lockState{"", s.highest}
}

func (s step) String() string {
	text := ""
	switch s.kind {
	case stepAcquire:
		text = "acquire " + s.grant
		if s.token != 0 {
			text += fmt.Sprintf(" (token %d)", s.token)
		}
	case stepBusy:
		text = "busy: " + s.grant
	case stepRelease:
		text = "release " + s.grant
	case stepNotHeld:
		text = "not held: " + s.grant
	case stepEnd:
		text = "end of " + s.grant + " by itself"
	}
	if s.open && s.kind == stepAcquire {
		text += " (no answer)"
	}
	return text
}

// operations converts steps for porcupine. Operations of one client must not
// overlap: what stays open gets a client of its own.
func operations(key string, steps []step, clients map[string]int) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, len(steps))
	for _, s := range steps {
		name := s.worker
		if s.open {
			name = fmt.Sprintf("%s %s %d", s.worker, s.grant, s.kind)
		}
		id, ok := clients[name]
		if !ok {
			id = len(clients)
			clients[name] = id
		}
		ops = append(ops, porcupine.Operation{ClientId: id, Input: s, Call: s.call, Return: s.ret, Metadata: key})
	}
	return ops
}

func partition(ops []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	index := make(map[any]int)
	for _, op := range ops {
		i, ok := index[op.Metadata]
		if !ok {
			i = len(parts)
			index[op.Metadata] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// opinion is what porcupine says of each key, and which pairs of answers explain it.
type opinion struct {
	results   map[string]porcupine.CheckResult
	conflicts map[string][]Incident
	malformed []string // keys not judged
	steps     int
}

// secondOpinion asks porcupine, one key after the other: all at once would need
// the memory of all at once. A key may use half of the time that is left, so
// that one hard key does not take the answer from the others.
func secondOpinion(r *run, limit time.Duration) opinion {
	o := opinion{results: make(map[string]porcupine.CheckResult), conflicts: make(map[string][]Incident)}
	until := time.Now().Add(limit)
	byKey := r.attemptsByKey()
	for _, key := range sortedKeys(byKey) {
		steps, ok := r.steps(byKey[key])
		if !ok {
			o.malformed = append(o.malformed, key)
			continue
		}
		o.steps += len(steps)
		// Zero would mean without limit to porcupine.
		share := max(time.Until(until)/2, time.Millisecond)
		o.results[key] = porcupine.CheckOperationsTimeout(mutex(r.header.Tokens), operations(key, steps, make(map[string]int)), share)
		if c := conflicts(r, key, steps); len(c) > 0 {
			o.conflicts[key] = c
		}
	}
	return o
}

func (r *run) attemptsByKey() map[string][]*attempt {
	byKey := make(map[string][]*attempt)
	for _, a := range r.attempts {
		byKey[a.key] = append(byKey[a.key], a)
	}
	return byKey
}

func (o opinion) with(result porcupine.CheckResult) []string {
	var keys []string
	for _, key := range sortedKeys(o.results) {
		if o.results[key] == result {
			keys = append(keys, key)
		}
	}
	return keys
}

// decided sorts out the keys that porcupine did not find in order. A conflict is
// proof without it; that it accepts a key with one is a disagreement, which
// breaks the run.
func (o opinion) decided() (illegal, unknown []string) {
	for _, key := range sortedKeys(o.results) {
		switch result := o.results[key]; {
		case result == porcupine.Illegal, result == porcupine.Unknown && len(o.conflicts[key]) > 0:
			illegal = append(illegal, key)
		case result == porcupine.Unknown:
			unknown = append(unknown, key)
		}
	}
	return illegal, unknown
}

func linearizability(o opinion) judged {
	illegal, unknown := o.decided()
	var incidents []Incident
	for _, key := range illegal {
		incidents = append(incidents, o.conflicts[key]...)
	}
	j := judge(Linearizability, incidents)
	switch {
	case len(illegal) > 0:
		j.Verdict, j.Total = Violation, max(j.Total, len(illegal))
		j.clause = "no mutex can have given these answers for " + listed(illegal)
		j.Summary = j.clause
	case len(unknown) > 0:
		j.Verdict, j.Summary = Undecided, "the time was too short for "+listed(unknown)
	case len(o.malformed) > 0:
		j.Verdict, j.Summary = Undecided, "the history contradicts itself for "+listed(o.malformed)
	case o.steps == 0:
		j.Verdict, j.Summary = Undecided, "no answers to judge"
	default:
		j.Summary = count(o.steps, "operation", "operations") + " on " + count(len(o.results), "key", "keys") + ", as from one mutex"
	}
	return j
}

// maxDrawn caps the keys on porcupine's page: it checks all of them at once.
const maxDrawn = 8

// Visualize writes porcupine's page, a self-contained HTML file, for the keys
// that are not linearizable or were not decided within limit; for the first
// ones if there are none such. Fault windows are annotations. A limit of zero is
// DefaultPorcupineLimit. The error is that of w.
func Visualize(h *history.History, w io.Writer, limit time.Duration) error {
	if limit <= 0 {
		limit = DefaultPorcupineLimit
	}
	r := newRun(h)
	o := secondOpinion(r, limit)
	drawn := append(o.with(porcupine.Illegal), o.with(porcupine.Unknown)...)
	if len(drawn) == 0 {
		drawn = o.with(porcupine.Ok)
	}
	drawn = drawn[:min(len(drawn), maxDrawn)]
	byKey, clients := r.attemptsByKey(), make(map[string]int)
	var ops []porcupine.Operation
	for _, key := range drawn {
		steps, _ := r.steps(byKey[key])
		ops = append(ops, operations(key, steps, clients)...)
	}
	model := mutex(r.header.Tokens)
	_, info := porcupine.CheckOperationsVerbose(model, ops, limit)
	info.AddAnnotations(r.annotations())
	return porcupine.Visualize(model, info, w)
}

func (r *run) annotations() []porcupine.Annotation {
	var all []porcupine.Annotation
	for _, f := range r.faults {
		if f.Applied {
			all = append(all, porcupine.Annotation{
				Tag: "faults", Start: f.Begin, End: f.End,
				Description: f.Kind + " " + strings.Join(f.Targets, ", "),
				Details:     f.ID + "\n" + strings.Join(f.Evidence, "\n"),
			})
		}
	}
	return all
}
