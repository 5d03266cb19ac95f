package reports

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"lockcheck/checker"
)

// situation is the part of a run that a close-up shows.
type situation struct {
	example
	from, to        int64
	key             string          // the only key that is drawn; "" for all keys
	cast            map[string]bool // grants that play a part
	core            map[string]bool // the grants of the cast that the incident names
	nothingViolated bool            // there is no incident to show
	ofFault         bool            // a fault is shown instead
	runFailed       bool            // the run itself failed
}

// isStretch says whether the incident is about a time span in which no worker held the lock.
func (s situation) isStretch() bool {
	return !s.nothingViolated && len(s.core) == 0 && s.Incident.To > s.Incident.From
}

// situation chooses what to show close up: the most informative incident of the costliest violation,
// otherwise the end of a failed run, a fault that mattered, or the beginning. It is false if there are no
// holds.
func (rec *record) situation(r checker.Results) (s situation, ok bool) {
	if len(rec.holds) == 0 {
		return situation{}, false
	}
	s, ok = rec.situationOfIncident(r)
	if !ok {
		s = rec.situationWithout(r)
		s.Finding = firstViolated(r)
	}
	s.runFailed = failed(r)
	return s, true
}

// firstViolated is the finding of the costliest violation; a valid finding if there is none.
func firstViolated(r checker.Results) checker.Finding {
	for _, f := range byCost(r.Findings) {
		if Plain(f.Verdict) == checker.Violation {
			return f
		}
	}
	return checker.Finding{Verdict: checker.Valid}
}

func failed(r checker.Results) bool { return Plain(r.Verdict) == checker.Broken }

// situationOfIncident prefers an incident with known holds over an incident of the same rank that is about a
// time span. It is false if there are no incidents.
func (rec *record) situationOfIncident(r checker.Results) (situation, bool) {
	var other *example
	for _, e := range examples(r, byCost(r.Findings), len(r.Findings)) {
		if other != nil && rank(e.Finding) > rank(other.Finding) {
			break
		}
		if s, ok := rec.situationOf(e); ok {
			return s, true
		}
		if other == nil {
			other = &e
		}
	}
	if other == nil {
		return situation{}, false
	}
	return rec.situationOfTime(*other), true
}

// situationWithout chooses what to show if there are no incidents.
func (rec *record) situationWithout(r checker.Results) situation {
	const most = 12 // holds
	if failed(r) {
		return rec.situationOfHolds(rec.holds[max(0, len(rec.holds)-most):])
	}
	for _, want := range []func(checker.FaultCoverage) bool{
		func(f checker.FaultCoverage) bool { return f.Counts() && f.Outlasted },
		checker.FaultCoverage.Counts,
	} {
		if i := slices.IndexFunc(rec.faults, want); i >= 0 {
			s := rec.situationOfFault(rec.faults[i])
			s.ofFault = true
			return s
		}
	}
	return rec.situationOfHolds(rec.holds[:min(len(rec.holds), most)])
}

func (rec *record) situationOfHolds(holds []checker.Hold) situation {
	last := holds[len(holds)-1]
	return situation{from: holds[0].Invoked, to: last.End, cast: map[string]bool{}, nothingViolated: true}.framed(rec)
}

// situationOfTime frames the time of an incident together with the last hold before it and the first hold
// after it.
func (rec *record) situationOfTime(e example) situation {
	i := e.Incident
	s := situation{example: e, key: i.Key, cast: map[string]bool{}, from: i.From, to: max(i.From, i.To)}
	concerns := func(h checker.Hold) bool { return i.Key == "" || h.Key == i.Key }
	var before, after *checker.Hold
	for n := range rec.holds { // sorted by start
		switch h := &rec.holds[n]; {
		case !concerns(*h):
		case h.Start <= i.From:
			before = h
		case h.Start >= i.To && after == nil:
			after = h
		}
	}
	for _, h := range []*checker.Hold{before, after} {
		if h != nil {
			s.include(*h)
		}
	}
	return s.framed(rec)
}

// maxCast is how many holds a situation has in addition to its core.
const maxCast = 4

// situationOf frames the holds of an incident together with the first holds of the same key that overlap
// them.
func (rec *record) situationOf(e example) (situation, bool) {
	s := situation{example: e, key: e.Incident.Key, cast: map[string]bool{}, core: map[string]bool{}}
	s.from, s.to = math.MaxInt64, math.MinInt64
	for _, h := range rec.holds {
		if slices.Contains(e.Incident.Grants, h.Grant) {
			s.include(h)
			s.core[h.Grant] = true
		}
	}
	if len(s.cast) == 0 {
		return situation{}, false
	}
	core := s
	core.cast = maps.Clone(s.core)
	for _, h := range rec.otherHolds(s) {
		if len(s.cast) < len(s.core)+maxCast {
			s.include(h)
		}
	}
	if s.to-s.from > 4*(core.to-core.from) {
		s = core
	}
	return s.framed(rec), true
}

// otherHolds lists the other holds of the key that overlap the core of a situation, by start. Without a core it
// lists the whole cast.
func (rec *record) otherHolds(s situation) []checker.Hold {
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for _, h := range rec.holds {
		if s.core[h.Grant] {
			from, to = min(from, h.Start), max(to, h.End)
		}
	}
	var out []checker.Hold
	for _, h := range rec.holds {
		meets := h.Key == s.key && h.Start < to && h.End > from
		if !s.core[h.Grant] && (meets || len(s.core) == 0 && s.cast[h.Grant]) {
			out = append(out, h)
		}
	}
	return out
}

func (s *situation) include(h checker.Hold) {
	s.cast[h.Grant] = true
	s.from, s.to = min(s.from, h.Start), max(s.to, h.End)
}

func (rec *record) situationOfFault(f checker.FaultCoverage) situation {
	if dead := rec.permanentlyEnded(f); len(dead) > 0 {
		return rec.situationOfDeath(f, dead)
	}
	s := situation{from: f.Begin, to: f.End, cast: map[string]bool{}, nothingViolated: true}
	for _, h := range rec.holds {
		if slices.Contains(f.Targets, h.Worker) && h.Start < f.End && h.End > f.Begin {
			s.include(h)
			s.key = h.Key
		}
	}
	s.from, s.to = min(s.from, f.Begin), max(s.to, f.End)
	return s.framed(rec)
}

// situationOfDeath frames the holds that a kill ended and the next hold of the same key.
func (rec *record) situationOfDeath(f checker.FaultCoverage, dead []string) situation {
	s := situation{from: f.Begin, to: f.Begin, cast: map[string]bool{}, nothingViolated: true}
	for _, h := range rec.holds { // sorted by start
		switch {
		case slices.Contains(dead, h.Worker) && h.Ended == checker.EndedWithoutTrace:
			s.include(h)
			s.key = h.Key
		case len(s.cast) > 0 && h.Key == s.key && h.Start > f.Begin:
			s.include(h)
			return s.framed(rec)
		}
	}
	if len(s.cast) == 0 {
		s.to += time.Second.Nanoseconds()
	}
	return s.framed(rec)
}

// framed adds a margin that shows what came before and after.
func (s situation) framed(rec *record) situation {
	margin := max((s.to-s.from)/8, int64(2e6))
	s.from, s.to = max(s.from-margin, rec.begin), min(s.to+margin, rec.end)
	if s.to <= s.from {
		s.to = s.from + 1
	}
	return s
}

// at formats a time as seconds since begin. In a situation of a few ms it has enough decimals to tell moments
// apart.
func (s situation) at(t, begin int64) string {
	if s.to-s.from < 100*time.Millisecond.Nanoseconds() {
		return strconv.FormatFloat(float64(t-begin)/1e9, 'f', 6, 64) + " s"
	}
	return at(t, begin)
}
