package application

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// justBefore is how long before an invariant was seen to be false faults are named that were over by then, and maxSaid how
// many replicas are named with their last lines.
const (
	justBefore = 5 * time.Second
	maxSaid    = 10
)

// watch judges one invariant.
type watch struct {
	*run
	history.Invariant
	answers []*history.Event
	found   *checker.Incidents
	first   int64 // when it was first seen to be violated, 0 for never
	open    []checker.Fact
}

// invariants judges all of them. Each must have been answered, and answered once more after everything was over: the state
// that faults leave behind is what counts most.
func invariants(r *run) checker.Finding {
	var found checker.Incidents
	var violated, open []checker.Fact
	judged := 0
	for _, i := range r.app.Invariants {
		if !history.Judged(i.Kind) {
			continue
		}
		judged++
		w := watch{run: r, Invariant: i, answers: r.answers[i.Name], found: &found}
		before := found.Total()
		w.judge()
		if n := found.Total() - before; n > 0 {
			violated = append(violated, checker.Fact{Kind: FactViolated, Keys: []string{i.Name}, N: n, At: w.first})
		}
		open = append(open, w.open...)
	}
	f := found.Finding(checker.Invariants)
	facts := append(violated, open...)
	switch {
	case judged == 0:
		because(&f, checker.NotApplicable, checker.Fact{Kind: FactNoInvariants})
		return f
	case len(violated) > 0:
		because(&f, checker.Violation, facts...)
	case len(open) > 0:
		because(&f, checker.Undecided, facts...)
	default:
		because(&f, checker.Valid)
	}
	because(&f, f.Verdict, r.watched()...)
	return f
}

// watched says how well the invariants were watched: how often each was answered, and where an answer is missing.
func (r *run) watched() []checker.Fact {
	var held, asked, unknown, n int64
	var worst checker.InvariantSummary
	for _, s := range r.invariantSummaries() {
		if !history.Judged(s.Kind) {
			continue
		}
		n, held, asked, unknown = n+1, held+s.Held, asked+s.Asked, unknown+s.Unknown
		if s.Gap.Length() > worst.Gap.Length() {
			worst = s
		}
	}
	facts := []checker.Fact{{Kind: FactHeld, N: held, Of: n}}
	if unknown > 0 {
		facts = append(facts, checker.Fact{Kind: FactUnknownAnswers, N: unknown, Of: asked})
	}
	if worst.Name != "" {
		facts = append(facts, checker.Fact{Kind: FactLongestGap, Keys: []string{worst.Name}, At: worst.Gap.From, Length: worst.Gap.Length(), Faults: worst.Gap.Faults})
	}
	return facts
}

func answered(e *history.Event) bool { return e.Type == history.OK || e.Type == history.Fail }

func (w *watch) judge() {
	switch w.Kind {
	case history.InvariantOnce:
		w.once()
	case history.InvariantNever:
		w.episodes(KindNever)
	case history.InvariantAlways:
		w.episodes(KindAlways)
	case history.InvariantKept:
		w.kept()
	case history.InvariantEventually:
		w.eventually()
	}
	if !slices.ContainsFunc(w.answers, answered) {
		w.doubt(checker.Fact{Kind: FactNeverAnswered, Said: mostError(w.answers)})
	} else if w.final() == nil {
		w.doubt(checker.Fact{Kind: FactFinalUnanswered, Said: mostError(w.answers)})
	}
}

func (w *watch) doubt(f checker.Fact) {
	f.Keys = []string{w.Name}
	w.open = append(w.open, f)
}

// mostError is why most questions had no answer: the last one may have failed for another reason, because the run ended.
func mostError(answers []*history.Event) string {
	most, times := "", make(map[string]int)
	for _, e := range answers {
		if e.Type != history.Info {
			continue
		}
		if times[e.Error]++; times[e.Error] > times[most] {
			most = e.Error
		}
	}
	return most
}

// final is the last answer to a question that was asked when the application had come to rest, nil if there is none.
func (w *watch) final() *history.Event {
	rest := w.phase(history.PhaseFinal)
	for _, e := range slices.Backward(w.answers) {
		if rest != 0 && answered(e) && e.From >= rest {
			return e
		}
	}
	return nil
}

// episodes finds times in which one answer after the other violated the invariant.
func (w *watch) episodes(kind checker.IncidentKind) {
	var episode *history.Event
	held, until := int64(0), int64(0)
	end := func() {
		if episode != nil {
			w.violated(kind, episode, held, until, episode.Answer)
		}
		episode = nil
	}
	for _, e := range w.answers {
		switch {
		case e.Type == history.OK:
			end()
			held = e.From
		case e.Type == history.Fail && episode == nil:
			episode, until = e, e.Time
		case e.Type == history.Fail:
			until = e.Time
		}
	}
	end()
}

// once finds each piece of work that was done more than once, which stays so: it counts when an answer has it first. Of
// answers without rows nobody can tell which work they are about, so they count as those of the other kinds do.
func (w *watch) once() {
	seen := make(map[string]bool)
	held, nameless := int64(0), false
	for _, e := range w.answers {
		switch {
		case e.Type == history.OK:
			held, nameless = e.From, false
		case e.Type == history.Fail:
			for _, row := range e.Answer.Rows {
				if !seen[row] {
					seen[row] = true
					w.violated(KindRepeatedWork, e, held, e.Time, &history.Answer{Rows: []string{row}, Columns: e.Answer.Columns, Count: 1})
				}
			}
			if len(e.Answer.Rows) == 0 && !nameless {
				nameless = true
				w.violated(KindRepeatedWork, e, held, e.Time, e.Answer)
			}
			if e.Answer.Count <= int64(len(e.Answer.Rows)) { // all rows are there: what is new in a later answer came after this one
				held = e.From
			}
		}
	}
}

// kept compares the last answer with what had been accepted when the question was asked. If nothing had been accepted,
// nothing shows that work is kept.
func (w *watch) kept() {
	if len(w.accepted) == 0 {
		w.doubt(checker.Fact{Kind: FactNothingAccepted})
	}
	if last, missing := w.lacking(); len(missing) > 0 {
		w.violated(KindNotKept, last, 0, last.Time, &history.Answer{Rows: missing, Count: int64(len(missing))})
	}
}

// lacking returns the last answer, and what it lacks of all that had been accepted when it was asked for.
func (w *watch) lacking() (last *history.Event, missing []string) {
	if last = w.final(); last == nil {
		return nil, nil
	}
	there := make(map[string]bool)
	for _, row := range last.Answer.Rows {
		there[row] = true
		first, _, _ := strings.Cut(row, "\t")
		there[first] = true
	}
	accepted := make(map[string]bool)
	for _, e := range w.accepted {
		if e.Time > last.From || accepted[e.ID] {
			continue
		}
		accepted[e.ID] = true
		if !there[e.ID] {
			missing = append(missing, e.ID)
		}
	}
	return last, missing
}

// eventually judges the answers to what was asked when the time after the last fault was over: before that the invariant
// may be false, and after it no more.
func (w *watch) eventually() {
	healed, facts := w.healed()
	if len(facts) > 0 {
		w.open = append(w.open, checker.Fact{Kind: FactHealUnknown, Keys: []string{w.Name}, Faults: facts})
		return
	}
	due, held, decided := later(healed, w.Within), int64(0), false
	var bad *history.Event
	until := int64(0)
	for _, e := range w.answers {
		switch {
		case e.Type == history.OK && bad == nil:
			held = e.From
		case e.Type == history.Fail && e.From >= due:
			if bad == nil {
				bad = e
			}
			until = e.Time
		}
		decided = decided || answered(e) && e.From >= due
	}
	switch {
	case bad != nil:
		w.add(KindEventually, bad, held, until, bad.Answer, time.Duration(bad.Time-healed))
	// A last answer that it holds is early, and no worse for that: what was to come about has.
	case !decided && w.final() != nil && w.final().Type != history.OK:
		w.doubt(checker.Fact{Kind: FactTooEarly, Limit: w.Within})
	}
}

// healed is when the last fault was over, or the run was ready if there was none; or the ids of faults of which that is
// not known.
func (r *run) healed() (at int64, unknown []string) {
	at = cmp.Or(r.phase(history.PhaseReady), r.begin)
	for _, f := range r.faults {
		switch {
		case !f.Applied:
		case f.over == 0:
			unknown = append(unknown, f.ID)
		default:
			at = max(at, f.over)
		}
	}
	return at, unknown
}

func (w *watch) violated(kind checker.IncidentKind, e *history.Event, held, until int64, a *history.Answer) {
	w.add(kind, e, held, until, a, 0)
}

// add counts an incident that an answer was the first to show.
func (w *watch) add(kind checker.IncidentKind, e *history.Event, held, until int64, a *history.Answer, after time.Duration) {
	if w.first == 0 || e.Time < w.first {
		w.first = e.Time
	}
	w.found.Add(w.Name, e.Time, "", func() checker.Incident {
		s := &checker.Seen{Invariant: w.Kind, Held: held, Rows: slices.Clone(a.Rows[:min(len(a.Rows), checker.MaxSeenRows)]), Columns: a.Columns, Count: a.Count}
		if kind == KindNotKept {
			s.Of = w.acceptedWork()
		} else {
			w.circumstances(s, e.Time)
		}
		i := checker.Incident{Kind: kind, Key: w.Name, From: e.Time, To: until, Seen: s, Figures: checker.IncidentFigures{Length: after}}
		for _, f := range s.Faults {
			i.Faults = append(i.Faults, f.ID)
		}
		return i
	})
}

// circumstances says which faults were in force when an invariant became false, or not long before, what they did to
// replicas, and what each replica had said last.
func (r *run) circumstances(s *checker.Seen, seen int64) {
	from := cmp.Or(s.Held, r.begin)
	faults := r.inForce(from-int64(justBefore), seen)
	for _, f := range faults {
		in := checker.InForce{ID: f.ID, Kind: f.Kind, Targets: f.Targets, From: f.Begin}
		if f.End < seen {
			in.To = f.End
		}
		s.Faults = append(s.Faults, in)
	}
	for _, p := range r.replicas {
		if state := stateOf(p.name, faults); state != checker.HolderHealthy && len(s.Hit) < maxSaid {
			s.Hit = append(s.Hit, checker.Hit{Replica: p.name, State: state})
		}
		n := sort.Search(len(p.shown), func(i int) bool { return p.shown[i].Time > seen })
		if n > 0 && len(s.Said) < maxSaid {
			e := p.shown[n-1]
			said := checker.Said{Replica: p.name, F: e.F, Key: e.Key, ID: e.ID, At: e.Time}
			if e.F == history.Ended {
				said.Exit = e.Note
			}
			s.Said = append(s.Said, said)
		}
	}
	slices.SortStableFunc(s.Said, func(a, b checker.Said) int { return cmp.Compare(a.At, b.At) })
}

// later adds without overflow.
func later(t int64, d time.Duration) int64 {
	if d = max(0, d); t > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return t + int64(d)
}

// acceptedWork is how many pieces of work were accepted.
func (r *run) acceptedWork() int64 {
	seen := make(map[string]bool)
	for _, e := range r.accepted {
		seen[e.ID] = true
	}
	return int64(len(seen))
}
