package sweep

import (
	"fmt"
	"time"

	"lockcheck/checker"
	"lockcheck/reports"
)

// Schema is the version of the format of sweep.json.
const Schema = 1

// Sweep is how a lock behaved, depending on its lease, the length of pauses of its holders, and the length of
// their critical sections.
type Sweep struct {
	Schema           int           `json:"schema"`
	Lock             string        `json:"lock"`
	Renew            bool          `json:"renew,omitempty"`
	CheckBeforeWrite bool          `json:"check_before_write,omitempty"`
	TTL              string        `json:"ttl"` // the range that was swept, or a single value
	Pause            string        `json:"pause"`
	Section          string        `json:"section"`
	Rule             Rule          `json:"rule"`
	Began            time.Time     `json:"began"`
	Took             time.Duration `json:"took_ns"` // total of all trials
	// Points are sorted by section, lease and pause.
	Points []Measured `json:"points"`
}

// Rule is how long a lease must be in theory, in pauses and sections.
type Rule struct {
	Pauses   float64 `json:"pauses"`
	Sections float64 `json:"sections"`
}

// lease is the shortest lease that keeps workers apart at a point in theory.
func (r Rule) lease(p Point) time.Duration {
	return time.Duration(r.Pauses*float64(p.Pause) + r.Sections*float64(p.Section))
}

// String is, for example, "lease = pause + section".
func (r Rule) String() string {
	if r.Sections > 0 {
		return "lease = pause + section"
	}
	return "lease = " + reports.Trimmed(r.Pauses, 2) + " × pause"
}

// Measured is what was measured at a point.
type Measured struct {
	Point
	// Unsupported says why no trial is possible; "" if one is.
	Unsupported string `json:"unsupported,omitempty"`
	// Runs are the folders of the trials, relative to the sweep's. Failed counts further trials that had no
	// results.
	Runs   []string `json:"runs,omitempty"`
	Failed int      `json:"failed,omitempty"`
	// Pauses counts the pauses that were proven and hit a holder, and Incidents those of them that led to
	// overlapping holders. Low and High are the 95 % Wilson interval of that share, over pauses.
	Pauses       int64   `json:"pauses"`
	Incidents    int64   `json:"incidents"`
	Low          float64 `json:"low"`
	High         float64 `json:"high"`
	Acknowledged int64   `json:"acknowledged"`
	Lost         int64   `json:"lost"`
	checker.LossInterval
	// Availability is the share of the time of the pauses in which the lock was granted at all, see
	// checker.Measures; nil if there were no pauses.
	Availability *float64 `json:"availability,omitempty"`
}

// share is the share of pauses that led to overlapping holders; false if no pause hit a holder.
func (m Measured) share() (float64, bool) {
	return float64(m.Incidents) / float64(m.Pauses), m.Pauses > 0
}

func (m Measured) availability() (float64, bool) {
	if m.Availability == nil {
		return 0, false
	}
	return *m.Availability, true
}

// Page is the sweep with its charts and all points.
func (s Sweep) Page() reports.Page {
	return reports.Page{Title: s.title(), Blocks: []reports.Block{
		reports.Text(s.settings() + " " + s.count()),
		reports.Text(s.againstRule()),
		reports.Picture{Title: s.title(), File: ChartFile, SVG: s.svg()},
		reports.Note("A dot is a measured point; the ground has the colour of the nearest dot. An incident is a pause that was proven, " +
			"hit a holder, and led to overlapping holders. A pause begins when half of the section is over; in a section shorter than 100 ms it begins at once. " +
			"Begun " + s.Began.UTC().Format(time.RFC1123) + "."),
		s.unsupported(),
		s.table(),
	}}
}

func (s Sweep) title() string { return "Where " + s.Lock + " keeps workers apart" }

func (s Sweep) svg() string { return reports.SVG(s.title(), s.charts()) }

func (s Sweep) settings() string {
	text := "Lease " + s.TTL + ", pauses of " + s.Pause + ", critical sections of " + s.Section
	if s.Renew {
		text += ", the lease renewed after each third of it"
	}
	if s.CheckBeforeWrite {
		text += ", the deadline checked before each write"
	}
	return text + "."
}

func (s Sweep) count() string {
	var points, trials, pauses, unknown, unsupported int
	for _, m := range s.Points {
		switch {
		case m.Unsupported != "":
			unsupported++
		case m.Pauses == 0:
			unknown++
		default:
			points++
		}
		trials += len(m.Runs) + m.Failed
		pauses += int(m.Pauses)
	}
	text := fmt.Sprintf("%s hit a holder, in %s at %s.", reports.Many(pauses, "pause"), reports.Many(trials, "trial"), reports.Many(points, "point"))
	if unknown > 0 {
		text += " No pause hit a holder at " + reports.Many(unknown, "more point") + "."
	}
	if unsupported > 0 {
		text += " " + reports.Many(unsupported, "point") + " not supported."
	}
	return text
}

// againstRule compares the points with the line of theory.
func (s Sweep) againstRule() string {
	var below, belowApart, above, aboveOverlapped int
	for _, m := range s.Points {
		share, known := m.share()
		switch {
		case !known:
		case m.TTL < s.Rule.lease(m.Point):
			below++
			if share == 0 {
				belowApart++
			}
		default:
			above++
			if share > 0 {
				aboveOverlapped++
			}
		}
	}
	return fmt.Sprintf("Below the line %s, workers never overlapped at %d of %s. On it or above, they overlapped at %d of %s.",
		s.Rule, belowApart, reports.Many(below, "point"), aboveOverlapped, reports.Many(above, "point"))
}

// unsupported lists why points have no trial, and for how many points.
func (s Sweep) unsupported() reports.List {
	count := make(map[string]int)
	for _, m := range s.Points {
		count[m.Unsupported]++
	}
	delete(count, "")
	var list reports.List
	for _, m := range s.Points {
		if n := count[m.Unsupported]; n > 0 {
			list.Items = append(list.Items, reports.Item{Text: reports.Many(n, "point") + " not supported: " + m.Unsupported})
			delete(count, m.Unsupported)
		}
	}
	return list
}

func (s Sweep) table() reports.Table {
	table := reports.Table{Columns: reports.Columns("section", "lease", "pause", "line", "pauses", "incidents", "of the pauses, 95 % interval", "lost updates", "available", "trials")}
	for _, m := range s.Points {
		if m.Unsupported != "" {
			continue
		}
		line, share, available := "above", "–", "–"
		if m.TTL < s.Rule.lease(m.Point) {
			line = "below"
		}
		incidents := reports.Cell{Text: reports.Grouped(m.Incidents)}
		if of, known := m.share(); known {
			share = fmt.Sprintf("%.2f (%.2f–%.2f)", of, m.Low, m.High)
			incidents.Verdict = checker.Valid
			if of > 0 {
				incidents.Verdict = checker.Violation
			}
		}
		if of, known := m.availability(); known {
			available = fmt.Sprintf("%.0f %%", 100*of)
		}
		var trials reports.Cell
		for i, folder := range m.Runs {
			trials.Links = append(trials.Links, reports.Link{Text: fmt.Sprint(i + 1), Href: folder + "/report.html"})
		}
		cells := reports.Cells(reports.Length(m.Section), reports.Length(m.TTL), reports.Length(m.Pause), line, reports.Grouped(m.Pauses))
		cells = append(cells, incidents)
		cells = append(cells, reports.Cells(share, reports.Grouped(m.Lost)+"/"+reports.Grouped(m.Acknowledged), available)...)
		table.Rows = append(table.Rows, reports.Row{Cells: append(cells, trials)})
	}
	return table
}
