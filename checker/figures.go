package checker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"lockcheck/internal/stats"
)

// Figure is a number that runs can be held to.
type Figure struct {
	Name, Summary string
	Unit          Unit
	// Counts is the property whose violations it counts; "" for one that counts none.
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

// Uncounted says whether a property was violated in a way that the Figure which counts its
// violations does not tell of: what is lost says nothing of elements that are there twice
// or came from nowhere.
func (r Results) Uncounted(p Property) bool {
	return p == NoLostUpdate && r.Updates.Duplicated+r.Updates.Phantom+r.Updates.Repeated > 0
}

// Figures lists all of them.
func Figures() []Figure {
	return slices.Concat(counts(), rates(), latencies())
}

// counts are those of what happened. Where it could not have, there are no data.
func counts() []Figure {
	of := func(name, summary string, property Property, count, possible func(Pool) int64) Figure {
		return Figure{Name: name, Summary: summary, Counts: property, of: func(p Pool) (float64, bool) { return float64(count(p)), possible(p) > 0 }}
	}
	updates := func(p Pool) int64 { return p.Acknowledged }
	grants := func(p Pool) int64 { return p.Measures.Acquire.N }
	runs := func(p Pool) int64 { return p.Runs }
	return []Figure{
		of("lost", "acknowledged updates that are lost", NoLostUpdate, func(p Pool) int64 { return p.Lost }, updates),
		of("overlaps", "overlapping holders of both kinds", MutualExclusion, func(p Pool) int64 { return p.Overlaps.Total() }, grants),
		of("double_grants", "overlaps in which the service granted the lock twice", "", func(p Pool) int64 { return p.Overlaps.DoubleGrants }, grants),
		of("stale_writes", "writes accepted from a holder that was replaced, or without the lock", NoStaleWrite, func(p Pool) int64 { return p.StaleWrites }, updates),
		of("repeated", "jobs that were done again", "", func(p Pool) int64 { return p.Repeated }, updates),
		of("refused", "accesses that the guard refused", "", func(p Pool) int64 { return p.Refused }, runs),
		of("notified", "replaced holders that learned of it before they released", "", func(p Pool) int64 { return p.LossNotifications.Notified }, runs),
		of("ops", "updates, or holds if nothing is updated", "", func(p Pool) int64 { return p.Measures.Work }, runs),
	}
}

// rates are those of how much there was in a time, or of something else.
func rates() []Figure {
	return []Figure{
		{Name: "lost_share", Summary: "share of the acknowledged updates that are lost", Unit: Share, of: func(p Pool) (float64, bool) {
			return float64(p.Lost) / float64(p.Acknowledged), p.Acknowledged > 0
		}},
		{Name: "throughput", Summary: "updates, or holds, a second", of: func(p Pool) (float64, bool) { return p.Measures.Throughput() }},
		{Name: "refused_per_op", Summary: "accesses that the guard refused, by updates", of: func(p Pool) (float64, bool) {
			return float64(p.Refused) / float64(p.Measures.Work), p.Measures.Work > 0
		}},
		{Name: "availability", Summary: "share of the time of faults without an outage", Unit: Share, of: func(p Pool) (float64, bool) { return p.Measures.Availability() }},
		{Name: "wakes_per_release", Summary: "waiters that a release woke up", of: func(p Pool) (float64, bool) { return p.Measures.WakesPerRelease() }},
	}
}

// latencies are the medians of times, and what 99 of 100 of them do not exceed.
func latencies() []Figure {
	var all []Figure
	for _, l := range []struct {
		name, summary string
		of            func(Pool) stats.Histogram
		// endless is how many of these times never came to an end.
		endless func(Pool) int64
	}{
		{"acquire", "time of the attempt that was granted", func(p Pool) stats.Histogram { return p.Measures.Acquire }, nil},
		{"uncontended", "time to acquire what nobody else wants", func(p Pool) stats.Histogram { return p.Measures.Uncontended }, nil},
		{"wait", "time from the first attempt to the grant", func(p Pool) stats.Histogram { return p.Measures.Wait }, nil},
		{"failover", "time from the fault that stopped, cut off or ended a holder to the next grant", func(p Pool) stats.Histogram { return p.Measures.Failover }, func(p Pool) int64 { return p.Stuck }},
		{"notified", "time from the next grant until the replaced holder learned of it", func(p Pool) stats.Histogram { return p.Measures.Notified }, nil},
	} {
		for _, q := range []struct {
			suffix, summary string
			share           float64
		}{{"_p50", "median ", 0.5}, {"_p99", "99th percentile of the ", 0.99}} {
			all = append(all, Figure{Name: l.name + q.suffix, Summary: q.summary + l.summary, Unit: Duration, of: func(p Pool) (float64, bool) {
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

// quantileOf is a quantile of times of which some never came to an end: infinite where it
// is one of these.
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

// Text writes a value of the figure.
func (f Figure) Text(value float64) string {
	if math.IsInf(value, 1) {
		return "never"
	}
	switch f.Unit {
	case Duration:
		unit := 10 * time.Microsecond
		if value >= float64(time.Second) {
			unit = 10 * time.Millisecond
		}
		return time.Duration(value).Round(unit).String()
	case Share:
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}

// Parse reads a value that the figure is to be compared with.
func (f Figure) Parse(text string) (float64, error) {
	if f.Unit == Duration {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%s makes no sense: write a length of time, as in 3s or 500ms", text)
		}
		return float64(d), nil
	}
	bound, err := strconv.ParseFloat(text, 64)
	switch {
	case f.Unit == Share && !(err == nil && bound >= 0 && bound <= 1):
		return 0, fmt.Errorf("%s makes no sense: write a share from 0 to 1, as in 0.95", text)
	case err != nil || !(bound >= 0) || math.IsInf(bound, 0):
		return 0, fmt.Errorf("%s makes no sense: write a number that is not negative", text)
	}
	return bound, nil
}
