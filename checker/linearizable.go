package checker

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"lockcheck/history"
)

// The model judges the lock service: can these answers have come from one mutex that knows its owner? It
// follows the rules of docs/verdicts.md:
//
//  1. Failure is informative. A busy answer that names the holder is legal only
//     while that grant holds the lock. A busy answer without a name is left out.
//  2. A grant that nobody witnessed is left out. An acquire of unknown outcome
//     counts only if its grant was seen as a holder, or its clean-up release
//     succeeded. An acquire that failed for certain is left out with everything
//     that names it: a lock that asks several servers may show such a grant for a
//     moment at some of them. Leaving out a grant with everything that names it
//     can hide an error but never create one: take its steps out of a legal order
//     and a legal order remains. A reentrant lock is different: what its holder is
//     given again later depends on whether an unanswered acquire took effect. For
//     a reentrant lock such steps stay, and may have an effect or none.
//  3. What the service does by itself is a synthetic end of a grant. It is legal
//     only while that grant holds the lock, from grantEnd.unreleased to the end of
//     the history. It exists only for grants without an acknowledged release. A
//     grant of unknown outcome may end from the start, because no worker was told
//     that it has it.
//  4. Each key is a partition of its own.
//
// A client must report as Holder only what the lock as a whole answered: for a lock with a quorum, a grant
// that a majority named.
type stepKind uint8

const (
	stepAcquire stepKind = iota
	stepBusy             // refused because grant holds the lock
	stepRelease
	stepNotHeld // the release was refused: grant is not the holder
	stepEnd     // the service ended grant by itself

	// Steps of an acquire that may never have taken effect. Each acts like its certain counterpart if that is
	// legal, and otherwise has no effect.
	stepPerhapsAcquire
	stepPerhapsEnd
)

// step is one operation of the model, with the closed interval in which it took effect, ns.
type step struct {
	kind      stepKind
	open      bool // its end is not known: ret is after the end of the history
	shared    bool // of an acquire
	key       key
	grant     grant
	worker    worker
	token     uint64 // of an acquire, 0 if unknown
	resumed   bool   // the acquire may get the highest token again
	next      grant  // what its worker asked for at the very time of the answer, of an acquire of a reentrant lock
	call, ret int64
}

// steps yields the operations of a key. Steps of a history that contradicts its schema must not be judged:
// porcupine does not reject malformed input but gives wrong answers.
func (r *run) steps(k *keyed) iter.Seq[step] {
	return func(yield func(step) bool) {
		for _, a := range k.attempts {
			if b := r.refusedFor(a); b != nil && !yield(r.refusal(a, b)) {
				return
			}
			if !a.modelled() && !r.mayHaveTakenEffect(a) {
				continue
			}
			for s := range r.stepsOf(a) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// wellFormed says whether the operations of a key can be judged.
func (r *run) wellFormed(k *keyed) bool {
	if slices.ContainsFunc(k.attempts, func(a *attempt) bool { return a.malformed }) {
		return false
	}
	for s := range r.steps(k) {
		if s.ret < s.call {
			return false
		}
	}
	return true
}

// refusedFor returns the attempt whose grant was named as the holder when another attempt was refused. It is
// nil if the attempt was not refused, or if the named grant is not in the model.
func (r *run) refusedFor(a *attempt) *attempt {
	if !a.asked || !a.namesHolder() {
		return nil
	}
	if h := r.attempt(a.holder); h != nil && h.modelled() {
		return h
	}
	return nil
}

func (r *run) refusal(a, holder *attempt) step {
	return step{kind: stepBusy, key: a.key, grant: holder.grant, worker: a.worker, call: a.acquire.invoke, ret: a.acquire.done}
}

// namesHolder says whether the attempt was refused and the answer names the grant that holds the lock.
func (a *attempt) namesHolder() bool { return a.acquire.failed() && a.holder != 0 }

func (a *attempt) modelled() bool {
	if !a.asked || a.acquire.failed() {
		return false
	}
	return a.granted() || a.witnessed || a.released() != nil
}

// mayHaveTakenEffect says that an acquire of unknown outcome and without a witness matters: its worker was granted the
// same reentrant lock later.
func (r *run) mayHaveTakenEffect(a *attempt) bool {
	if r.header.Reentrant <= 1 || !a.asked || !a.acquire.unknown() || a.modelled() {
		return false
	}
	return r.byWorker[a.worker].lastGrant(a.key) > a.acquire.invoke
}

// stepsOf yields the steps of one grant.
func (r *run) stepsOf(a *attempt) iter.Seq[step] {
	return func(yield func(step) bool) {
		forever := r.end + 1
		s := step{kind: stepAcquire, key: a.key, grant: a.grant, token: a.token, shared: a.shared, resumed: a.timesResumed() > 0, worker: a.worker, call: a.acquire.invoke, ret: a.acquire.done}
		end := stepEnd
		if s.next = r.askedAtOnce(a); !a.granted() {
			s.ret, s.open = forever, true
		}
		if r.mayHaveTakenEffect(a) {
			s.kind, end = stepPerhapsAcquire, stepPerhapsEnd
		}
		if !yield(s) {
			return
		}
		if c := a.released(); c != nil {
			if !yield(step{kind: stepRelease, key: a.key, grant: a.grant, worker: a.worker, call: c.invoke, ret: c.done}) {
				return
			}
		} else if at := r.modelEnd(a); at <= r.end {
			if !yield(step{kind: end, key: a.key, grant: a.grant, worker: a.worker, call: at, ret: forever, open: true}) {
				return
			}
		}
		for c := range a.releases {
			// For an acquire that was never answered a failed release says nothing, because the acquire may
			// have arrived only after its clean-up.
			if c.failed() && a.granted() && c.invoke > a.acquire.done &&
				!yield(step{kind: stepNotHeld, key: a.key, grant: a.grant, worker: a.worker, call: c.invoke, ret: c.done}) {
				return
			}
		}
	}
}

// askedAtOnce is the grant that the worker of another asked for at the time of its answer, 0 if there is none. Porcupine
// takes operations that meet in a time for concurrent, but a worker makes one after another.
func (r *run) askedAtOnce(a *attempt) grant {
	if r.header.Reentrant <= 1 || !a.granted() || a.acquire.invoke == a.acquire.done {
		return 0
	}
	for b := range r.byWorker[a.worker].between(a.acquire.done, a.acquire.done) {
		if b.key == a.key && b.acquire.invoke == a.acquire.done {
			return b.grant
		}
	}
	return 0
}

// modelEnd is the time from which the model lets a grant end by itself. The grant of an attempt without a
// known outcome may end as soon as it begins.
func (r *run) modelEnd(a *attempt) int64 {
	if !a.granted() {
		return a.acquire.invoke
	}
	return max(r.endOf(a).unreleased(), a.acquire.invoke)
}

// lockState is the state of the model: the grant that holds the lock, 0 if it is free, and the highest token
// so far.
type lockState struct {
	holder  grant
	highest uint64
}

// mutex is the owner-aware mutex; with tokens it is also fenced. A token must exceed the highest seen; an
// unknown token is accepted and changes nothing (after Jepsen's Hazelcast suite).
func (r *run) mutex() porcupine.Model {
	if !exclusive(r.header) {
		return r.shared()
	}
	fenced := r.header.Tokens
	return porcupine.Model{
		Partition: partition,
		Init:      func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			return apply(state.(lockState), input.(step), fenced)
		},
		DescribeOperation: func(input, _ any) string { return r.stepText(input.(step)) },
		DescribeState: func(state any) string {
			if s := state.(lockState); s.holder != 0 {
				return "held by " + r.name(s.holder)
			}
			return "free"
		},
	}
}

func apply(s lockState, o step, fenced bool) (bool, lockState) {
	switch o.kind {
	case stepAcquire:
		stale := o.token < s.highest || o.token == s.highest && !o.resumed
		if s.holder != 0 || fenced && o.token != 0 && stale {
			return false, s
		}
		return true, lockState{o.grant, max(s.highest, o.token)}
	case stepBusy:
		return s.holder == o.grant, s
	case stepNotHeld:
		return s.holder != o.grant, s
	}
	return s.holder == o.grant, lockState{0, s.highest}
}

func (r *run) stepText(s step) string {
	text, grant := "", r.name(s.grant)
	switch s.kind {
	case stepAcquire:
		text = "acquire " + grant
		if s.shared {
			text += ", shared"
		}
		if s.token != 0 {
			text += fmt.Sprintf(" (token %d)", s.token)
		}
	case stepBusy:
		text = "busy: " + grant
	case stepRelease:
		text = "release " + grant
	case stepNotHeld:
		text = "not held: " + grant
	case stepEnd:
		text = "end of " + grant + " by itself"
	case stepPerhapsAcquire:
		text = "acquire " + grant + ", perhaps"
	case stepPerhapsEnd:
		text = "end of " + grant + ", if it ever began"
	}
	if s.open && s.kind == stepAcquire {
		text += " (no answer)"
	}
	return text
}

// client identifies a row on porcupine's page, whose operations must follow each other. An operation without
// an end overlaps with the operations after it, so it gets a client of its own.
type client struct {
	worker worker
	grant  grant
	kind   stepKind
}

func (r *run) operations(k *keyed, clients map[client]int) []porcupine.Operation {
	var ops []porcupine.Operation
	for s := range r.steps(k) {
		who := client{worker: s.worker}
		if s.open {
			who = client{s.worker, s.grant, s.kind}
		}
		id, ok := clients[who]
		if !ok {
			id = len(clients)
			clients[who] = id
		}
		ops = append(ops, porcupine.Operation{ClientId: id, Input: s, Call: s.call, Return: s.ret, Metadata: k.name})
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

// opinion is what porcupine says of each key, and which answers explain it.
type opinion struct {
	results   map[string]porcupine.CheckResult
	conflicts incidents // all conflicts in the order of grants
	tokens    incidents // tokens that did not increase
	doubts    incidents // tokens that did not increase, unless the lock was granted to two workers at once
	malformed []string  // keys that were not judged
	tooLong   []string  // keys that porcupine was not asked about
	steps     int
	unordered bool // a key may be held several times at once, so grants have no order
}

// maxSteps is the number of steps of a key above which porcupine is not asked. Porcupine remembers a set of
// steps for each state that it has seen, so its memory grows with the square of the number of steps.
const maxSteps = 5000

// maxAsked limits the steps that porcupine is asked about for all keys. For a history of millions of steps
// porcupine needs a minute to confirm what the order of grants decides in seconds.
const maxAsked = 300_000

// secondOpinion asks porcupine, one key after the other, because all keys at once would need the memory of
// all. A key may use half of the remaining time and tries, so that one hard key does not prevent the answer
// about the others.
func secondOpinion(r *run, limit time.Duration) opinion {
	o := opinion{results: make(map[string]porcupine.CheckResult), unordered: !exclusive(r.header)}
	until := time.Now().Add(limit)
	model := r.mutex()
	asked, tries := 0, maxTries
	for _, key := range r.keys {
		k := r.byKey[key]
		if len(k.attempts) == 0 {
			continue
		}
		if !r.wellFormed(k) {
			o.malformed = append(o.malformed, k.name)
			r.tokensOutOfOrder(k, &o)
			continue
		}
		steps := o.findConflicts(r, k)
		o.steps += steps
		if steps > maxSteps || asked+steps > maxAsked {
			o.tooLong = append(o.tooLong, k.name)
			continue
		}
		asked += steps
		// Porcupine would take zero for "no limit".
		share := max(time.Until(until)/2, time.Millisecond)
		e := newEffort(tries/2, steps)
		answer, more := e.result(porcupine.CheckOperationsTimeout(e.bound(model), r.operations(k, make(map[client]int)), share))
		o.results[k.name] = answer
		tries -= more
	}
	return o
}

func (o opinion) keysWith(result porcupine.CheckResult) []string {
	var keys []string
	for _, key := range sortedKeys(o.results) {
		if o.results[key] == result {
			keys = append(keys, key)
		}
	}
	return keys
}

// decided returns the keys that are not linearizable, and the silent keys, about which porcupine gave no
// answer. Only the order of grants can say that a silent key is linearizable. A conflict is proof without
// porcupine. If porcupine accepts a key with a conflict, that is a disagreement, which breaks the run.
func (o opinion) decided() (illegal, silent []string) {
	silent = slices.Sorted(slices.Values(append(o.keysWith(porcupine.Unknown), o.tooLong...)))
	illegal = o.keysWith(porcupine.Illegal)
	for _, key := range silent {
		if o.conflicts.keys[key] {
			illegal = append(illegal, key)
		}
	}
	slices.Sort(illegal)
	return illegal, silent
}

func linearizability(o opinion) judged {
	illegal, silent := o.decided()
	j := judge(Linearizability, o.conflicts)
	alone := []Fact{{Kind: FactSilent, Keys: silent}}
	if len(silent) == 0 {
		alone = nil
	}
	switch {
	case len(illegal) > 0:
		j.Total = max(j.Total, len(illegal))
		j.because(Violation, Fact{Kind: FactNotLinearizable, Keys: illegal})
		j.because(Violation, alone...)
	case len(o.malformed) > 0:
		j.because(Undecided, Fact{Kind: FactContradictory, Keys: o.malformed})
	case o.steps == 0:
		j.because(Undecided, Fact{Kind: FactNoAnswers})
	case o.unordered && len(silent) > 0:
		j.because(Undecided, alone[0], Fact{Kind: FactUnordered})
	default:
		j.because(Valid, Fact{Kind: FactLinearizable, N: int64(o.steps), Of: int64(len(o.results) + len(o.tooLong))})
		j.because(Valid, alone...)
	}
	return j
}

// maxDrawn limits the keys on porcupine's page, because porcupine checks all of them at once.
const maxDrawn = 8

// Visualize writes porcupine's page, a self-contained HTML file. It shows the keys that are not linearizable
// or were not decided within limit, or else the first keys. Fault windows are annotations. A limit of zero
// means DefaultPorcupineLimit. The error is that of w.
func Visualize(h *history.History, w io.Writer, limit time.Duration) error {
	if limit <= 0 {
		limit = DefaultPorcupineLimit
	}
	r := newRun(h)
	o := secondOpinion(r, limit)
	drawn := append(o.keysWith(porcupine.Illegal), o.keysWith(porcupine.Unknown)...)
	if len(drawn) == 0 {
		drawn = o.keysWith(porcupine.Ok)
	}
	model := r.mutex()
	clients := make(map[client]int)
	bounded := make(map[key]porcupine.Model)
	var ops []porcupine.Operation
	for _, name := range drawn[:min(len(drawn), maxDrawn)] {
		if len(ops) > maxSteps/2 {
			break
		}
		key := r.names.Of(name)
		steps := r.operations(r.byKey[key], clients)
		bounded[key] = newEffort(maxTries/maxDrawn, len(steps)).bound(model)
		ops = append(ops, steps...)
	}
	looked := model
	looked.Step = func(state, input, output any) (bool, any) {
		return bounded[input.(step).key].Step(state, input, output)
	}
	// The partial order that porcupine reached is also legal in the unbounded model, which draws it.
	_, info := porcupine.CheckOperationsVerbose(looked, ops, limit)
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
