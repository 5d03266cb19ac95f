package reports

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"lockcheck/checker"
)

// SweepSchema is the version of the form of sweep.json, see DocumentSchema.
const SweepSchema = 1

// Sweep is what became of a lock over its lease, the length of pauses of its holders, and
// the length of their critical sections.
type Sweep struct {
	Schema           int           `json:"schema"`
	Lock             string        `json:"lock"`
	Renew            bool          `json:"renew,omitempty"`
	CheckBeforeWrite bool          `json:"check_before_write,omitempty"`
	TTL              string        `json:"ttl"` // what it was swept over: a value, or both ends
	Pause            string        `json:"pause"`
	Section          string        `json:"section"`
	Rule             SweepRule     `json:"rule"`
	Began            time.Time     `json:"began"`
	Took             time.Duration `json:"took_ns"` // of all trials, one after the other
	// Points by section, lease and pause.
	Points []SweepPoint `json:"points"`
}

// SweepRule is how long a lease must be in theory: so many pauses and sections.
type SweepRule struct {
	Pauses   float64 `json:"pauses"`
	Sections float64 `json:"sections"`
}

func (r SweepRule) lease(pause, section time.Duration) time.Duration {
	return time.Duration(r.Pauses*float64(pause) + r.Sections*float64(section))
}

// String is such as "lease = pause + section".
func (r SweepRule) String() string {
	if r.Sections > 0 {
		return "lease = pause + section"
	}
	return "lease = " + trimmed(r.Pauses, 2) + " × pause"
}

// SweepPoint is what was measured with one lease, pause and section.
type SweepPoint struct {
	TTL     time.Duration `json:"ttl_ns"`
	Pause   time.Duration `json:"pause_ns"`
	Section time.Duration `json:"section_ns"`
	// Unsupported says why there cannot be a trial; "" if there can.
	Unsupported string `json:"unsupported,omitempty"`
	// Runs are the folders of the trials, relative to that of the sweep; Failed is how many
	// others told nothing.
	Runs   []string `json:"runs,omitempty"`
	Failed int      `json:"failed,omitempty"`
	// Pauses that were proven and met a holder; Incidents of them led to overlapping
	// holders. Low and High bound their share: 95 % Wilson interval, over pauses.
	Pauses       int64   `json:"pauses"`
	Incidents    int64   `json:"incidents"`
	Low          float64 `json:"low"`
	High         float64 `json:"high"`
	Acknowledged int64   `json:"acknowledged"`
	Lost         int64   `json:"lost"`
	checker.LossInterval
	// Availability is the share of the time of the pauses in which the lock was granted at
	// all, see checker.Measures; nil if there was none.
	Availability *float64 `json:"availability,omitempty"`
}

// share of the pauses that led to overlapping holders; false if none met a holder.
func (p SweepPoint) share() (float64, bool) {
	return float64(p.Incidents) / float64(p.Pauses), p.Pauses > 0
}

func (p SweepPoint) availability() (float64, bool) {
	if p.Availability == nil {
		return 0, false
	}
	return *p.Availability, true
}

// SweepJSON writes a sweep for programs.
func SweepJSON(w io.Writer, s Sweep) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

func (s Sweep) title() string { return "Where " + clean(s.Lock) + " keeps workers apart" }

// how the lock was used.
func (s Sweep) how() string {
	how := "Lease " + s.TTL + ", pauses of " + s.Pause + ", critical sections of " + s.Section
	switch {
	case s.Renew && s.CheckBeforeWrite:
		return how + ", the lease renewed each third of it, and the deadline looked at before the write."
	case s.Renew:
		return how + ", the lease renewed each third of it."
	case s.CheckBeforeWrite:
		return how + ", the deadline looked at before the write."
	}
	return how + "."
}

// summary is how much was measured, and how it compares with the rule.
func (s Sweep) summary() string {
	var points, trials, pauses, unmeasured, unsupported int64
	for _, p := range s.Points {
		switch {
		case p.Unsupported != "":
			unsupported++
		case p.Pauses == 0:
			unmeasured++
		default:
			points++
		}
		trials += int64(len(p.Runs) + p.Failed)
		pauses += p.Pauses
	}
	text := fmt.Sprintf("%s met a holder, in %s at %s.", many(pauses, "pause"), many(trials, "trial"), many(points, "point"))
	if unmeasured > 0 {
		text += " At " + many(unmeasured, "point") + " nothing is known."
	}
	if unsupported > 0 {
		text += " " + many(unsupported, "point") + " not supported."
	}
	return text
}

// held compares the points with the rule, in sentences.
func (s Sweep) held() string {
	var below, belowKept, above, aboveViolated int64
	for _, p := range s.Points {
		share, known := p.share()
		switch {
		case !known:
		case p.TTL < s.Rule.lease(p.Pause, p.Section):
			below++
			if share == 0 {
				belowKept++
			}
		default:
			above++
			if share > 0 {
				aboveViolated++
			}
		}
	}
	return fmt.Sprintf("Of %s with a lease below the line %s, workers were kept apart at %d all the same; of %s on it or above, they were not at %d.",
		many(below, "point"), s.Rule, belowKept, many(above, "point"), aboveViolated)
}

// notSupported lists why there are points without a trial, and how many.
func (s Sweep) notSupported() []string {
	count := make(map[string]int64)
	var reasons []string
	for _, p := range s.Points {
		if p.Unsupported == "" {
			continue
		}
		if count[p.Unsupported]++; count[p.Unsupported] == 1 {
			reasons = append(reasons, p.Unsupported)
		}
	}
	for i, why := range reasons {
		reasons[i] = many(count[why], "point") + " not supported: " + clean(why)
	}
	return reasons
}

var sweepHead = []string{"section", "lease", "pause", "line", "pauses", "incidents", "of the pauses, 95 % interval", "lost updates", "available"}

// cells of the table, without a run.
func (s Sweep) cells(p SweepPoint) []string {
	relation := "above"
	if p.TTL < s.Rule.lease(p.Pause, p.Section) {
		relation = "below"
	}
	cells := []string{length(p.Section), length(p.TTL), length(p.Pause), relation, grouped(p.Pauses), grouped(p.Incidents)}
	if share, known := p.share(); known {
		cells = append(cells, fmt.Sprintf("%.2f (%.2f–%.2f)", share, p.Low, p.High))
	} else {
		cells = append(cells, "–")
	}
	cells = append(cells, grouped(p.Lost)+"/"+grouped(p.Acknowledged))
	if share, known := p.availability(); known {
		return append(cells, fmt.Sprintf("%.0f %%", 100*share))
	}
	return append(cells, "–")
}

// SweepMarkdown writes a sweep as Markdown, with its chart next to it.
func SweepMarkdown(w io.Writer, s Sweep) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s %s %s Begun %s.\n\n![%s](sweep.svg)\n\n%s\n\n", markdown(s.title()), markdown(s.how()), s.summary(),
		markdown(s.held()), s.Began.UTC().Format(time.RFC1123), markdown(s.title()), sweepLegend)
	for _, why := range s.notSupported() {
		fmt.Fprintf(&b, "- %s\n", markdown(why))
	}
	b.WriteString("\n")
	markdownRow(&b, sweepHead)
	b.WriteString("|" + strings.Repeat(" --- |", len(sweepHead)) + "\n")
	for _, p := range s.Points {
		if p.Unsupported == "" {
			markdownRow(&b, s.cells(p))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

const sweepLegend = "A dot is a point that was measured; its ground has the colour of the nearest one. An *incident* is a pause that was proven, " +
	"met a holder, and led to overlapping holders. A pause begins when half of the section is over, in sections shorter than 100 ms at their beginning."

//go:embed sweep.html.tmpl
var sweepText string

type sweepPage struct {
	Title, How, Summary, Held, Legend, Began string
	Chart                                    template.HTML
	NotSupported                             []string
	Head                                     []string
	Rows                                     []sweepRow
}

type sweepRow struct {
	Cells []string
	Class string
	Runs  []runLink
}

// SweepHTML writes one self-contained page.
func SweepHTML(w io.Writer, s Sweep) error {
	t, err := template.New("sweep").Parse(sweepText)
	if err != nil {
		return fmt.Errorf("page of a sweep: %w", err)
	}
	page := sweepPage{
		Title: s.title(), How: s.how(), Summary: s.summary(), Held: s.held(), Legend: strings.ReplaceAll(sweepLegend, "*", ""),
		Began: s.Began.UTC().Format(time.RFC1123), NotSupported: s.notSupported(), Head: sweepHead,
		Chart: template.HTML(sweepSVG(s)), // of numbers, and of text that it escapes
	}
	for _, p := range s.Points {
		if p.Unsupported != "" {
			continue
		}
		row := sweepRow{Cells: s.cells(p), Class: "unknown"}
		if share, known := p.share(); known && share > 0 {
			row.Class = "violated"
		} else if known {
			row.Class = "kept"
		}
		for i, folder := range p.Runs {
			row.Runs = append(row.Runs, runLink{Text: fmt.Sprint(i + 1), Href: printable(folder) + "/report.html"})
		}
		page.Rows = append(page.Rows, row)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("page of a sweep: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
