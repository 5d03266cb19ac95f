package checker

import (
	"math"
	"slices"

	"lockcheck/internal/stats"
)

// Figure is a number that thresholds for runs can refer to.
type Figure struct {
	Name string
	Unit Unit
	// Counts is the property whose violations the figure counts; "" if it counts none.
	Counts Property
	of     func(Pool) (float64, bool)
}

// Unit says what a Figure counts, and so how it is written.
type Unit int

// Units of figures.
const (
	Number   Unit = iota
	Duration      // in ns; written as a Go duration
	Share         // 0 to 1
)

// Uncounted says whether a property was violated in a way that its Figure does not count. The number of lost
// updates, for example, says nothing of elements that are there twice or came from nowhere.
func (r Results) Uncounted(p Property) bool {
	return p == NoLostUpdate && r.Updates.Duplicated+r.Updates.Phantom+r.Updates.Repeated > 0
}

// Figures lists all figures.
func Figures() []Figure {
	return slices.Concat(counts(), rates(), latencies())
}

// counts are the numbers of events. A figure has no data if the event was impossible.
func counts() []Figure {
	of := func(name string, property Property, count, possible func(Pool) int64) Figure {
		return Figure{Name: name, Counts: property, of: func(p Pool) (float64, bool) { return float64(count(p)), possible(p) > 0 }}
	}
	updates := func(p Pool) int64 { return p.Acknowledged }
	grants := func(p Pool) int64 { return p.Measures.Acquire.N }
	runs := func(p Pool) int64 { return p.Runs }
	return []Figure{
		of("lost", NoLostUpdate, func(p Pool) int64 { return p.Lost }, updates),
		of("overlaps", MutualExclusion, func(p Pool) int64 { return p.Overlaps.Total() }, grants),
		of("double_grants", "", func(p Pool) int64 { return p.Overlaps.DoubleGrants }, grants),
		of("stale_writes", NoStaleWrite, func(p Pool) int64 { return p.StaleWrites }, updates),
		of("repeated", "", func(p Pool) int64 { return p.Repeated }, updates),
		of("refused", "", func(p Pool) int64 { return p.Refused }, runs),
		of("notified", "", func(p Pool) int64 { return p.LossNotifications.Notified }, runs),
		of("ops", "", func(p Pool) int64 { return p.Measures.Work }, runs),
	}
}

// rates are amounts per time, or per another amount.
func rates() []Figure {
	return []Figure{
		{Name: "lost_share", Unit: Share, of: func(p Pool) (float64, bool) {
			return float64(p.Lost) / float64(p.Acknowledged), p.Acknowledged > 0
		}},
		{Name: "throughput", of: func(p Pool) (float64, bool) { return p.Measures.Throughput() }},
		{Name: "refused_per_op", of: func(p Pool) (float64, bool) {
			return float64(p.Refused) / float64(p.Measures.Work), p.Measures.Work > 0
		}},
		{Name: "availability", Unit: Share, of: func(p Pool) (float64, bool) { return p.Measures.Availability() }},
		{Name: "wakes_per_release", of: func(p Pool) (float64, bool) { return p.Measures.WakesPerRelease() }},
	}
}

// latencies are the medians and 99th percentiles of times.
func latencies() []Figure {
	var all []Figure
	for _, l := range []struct {
		name string
		of   func(Pool) stats.Histogram
		// endless is how many of these times never came to an end.
		endless func(Pool) int64
	}{
		{"acquire", func(p Pool) stats.Histogram { return p.Measures.Acquire }, nil},
		{"uncontended", func(p Pool) stats.Histogram { return p.Measures.Uncontended }, nil},
		{"wait", func(p Pool) stats.Histogram { return p.Measures.Wait }, nil},
		{"failover", func(p Pool) stats.Histogram { return p.Measures.Failover }, func(p Pool) int64 { return p.Stuck }},
		{"handover", func(p Pool) stats.Histogram { return p.Measures.Handover }, nil},
		{"notified", func(p Pool) stats.Histogram { return p.Measures.Notified }, nil},
	} {
		for _, q := range []struct {
			suffix string
			share  float64
		}{{"_p50", 0.5}, {"_p99", 0.99}} {
			all = append(all, Figure{Name: l.name + q.suffix, Unit: Duration, of: func(p Pool) (float64, bool) {
				endless := int64(0)
				if l.endless != nil {
					endless = l.endless(p)
				}
				return quantileOf(l.of(p), endless, q.share)
			}})
		}
	}
	return all
}

// quantileOf is a quantile of times of which some never came to an end. It is infinite if it falls among
// these.
func quantileOf(h stats.Histogram, endless int64, q float64) (float64, bool) {
	all := h.N + endless
	if all > 0 && math.Ceil(q*float64(all)) > float64(h.N) {
		return math.Inf(1), true
	}
	if endless > 0 {
		q = math.Ceil(q*float64(all)) / float64(h.N)
	}
	d, known := h.Quantile(q)
	return float64(d), known
}

// FigureByName finds a figure.
func FigureByName(name string) (Figure, bool) {
	all := Figures()
	i := slices.IndexFunc(all, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return all[i], true
}

// Of returns the figure of some runs, and false if they have no data for it.
func (f Figure) Of(p Pool) (float64, bool) { return f.of(p) }
