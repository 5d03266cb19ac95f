package reports

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
)

// LoadSchema is the version of the form of profile.json, see DocumentSchema.
const LoadSchema = 1

// LoadProfile is what locks cost by the number of their workers.
type LoadProfile struct {
	Schema  int           `json:"schema"`
	Began   time.Time     `json:"began"`
	Time    time.Duration `json:"time_ns"` // of each run
	Think   string        `json:"think"`
	Section string        `json:"section"`
	Points  []LoadPoint   `json:"points"` // in the order of their runs
}

// LoadPoint is what was measured with a number of workers.
type LoadPoint struct {
	Lock    string          `json:"lock"`
	Alone   bool            `json:"alone"` // each worker has a lock of its own
	Workers int             `json:"workers"`
	Verdict checker.Verdict `json:"verdict"`
	Holds   int64           `json:"holds"`
	// PerSecond is the holds a second of all workers together.
	PerSecond float64 `json:"per_second"`
	// How long a grant took from the first attempt: median and higher percentiles; 0 if there
	// was none.
	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	// Fairness is Jain's index of the grants of the workers: 1 if all got the same, 1/workers
	// if one got all; 0 if nobody got any.
	Fairness float64 `json:"fairness"`
	// Bypassed is the share of the grants that came before that of a worker who had asked
	// earlier, of those that could; nil if none could.
	Bypassed *float64 `json:"bypassed,omitempty"`
}

// Name is such as "redis, 4 workers, contended".
func (p LoadPoint) Name() string {
	return clean(p.Lock) + ", " + many(int64(p.Workers), "worker") + ", " + p.how()
}

func (p LoadPoint) how() string {
	if p.Alone {
		return "alone"
	}
	return "contended"
}

// Sound says whether nothing but the load explains the figures. Of one worker nothing can be
// decided: it overlaps with nobody.
func (p LoadPoint) Sound() bool {
	return p.Verdict == checker.Valid || p.Workers == 1 && p.Verdict == checker.Undecided
}

// Text has the figures.
func (p LoadPoint) Text() string {
	text := fmt.Sprintf("%s, p50 %s, p99 %s, fairness %.2f", many(int64(math.Round(p.PerSecond)), "hold")+"/s", length(p.P50), length(p.P99), p.Fairness)
	if !p.Sound() {
		text += "; the run is " + string(plain(p.Verdict))
	}
	return text
}

// LoadJSON writes a profile for programs.
func LoadJSON(w io.Writer, p LoadProfile) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(p)
}

// LoadMarkdown writes a profile as Markdown, with its curves next to it.
func LoadMarkdown(w io.Writer, p LoadProfile) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# What locks cost\n\nEach run lasts %s, with %s between two holds of a worker and %s in the critical section. Begun %s.\n\n", length(p.Time),
		p.Think, p.Section, p.Began.UTC().Format(time.RFC1123))
	b.WriteString("*Alone*: each worker has a lock of its own. *Contended*: all want the same one. Times are from the first attempt to the grant. " +
		"*Fairness* is Jain's index of how often each worker got the lock: 1 if all got it equally often. *Bypassed*: the share of grants " +
		"that came before that of a worker who had asked earlier. No *verdict* (–): one worker overlaps with nobody, so that there is nothing to tell. All run on one machine, whose processors they share.\n\n![Curves](profile.svg)\n\n")
	head := []string{"lock", "workers", "", "holds a second", "p50", "p99", "p99.9", "fairness", "bypassed", "verdict"}
	markdownRow(&b, head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, point := range p.Points {
		bypassed := "–"
		if point.Bypassed != nil {
			bypassed = inPercent(*point.Bypassed) + " %"
		}
		verdict := string(plain(point.Verdict))
		if point.Sound() && point.Verdict != checker.Valid {
			verdict = "–"
		}
		markdownRow(&b, []string{
			point.Lock, fmt.Sprint(point.Workers), point.how(), grouped(int64(math.Round(point.PerSecond))),
			length(point.P50), length(point.P99), length(point.P999), fmt.Sprintf("%.2f", point.Fairness), bypassed, verdict,
		})
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Sizes of the curves, in pixels.
const (
	loadWidth  = 640
	loadLeft   = 78
	loadRight  = 150 // for the names of the curves
	loadHeight = 220
	loadPanel  = loadHeight + 76
)

// loadColours tell curves apart on light and on dark ground.
var loadColours = [...]string{"#1f77b4", "#d95f02", "#2a9d5c", "#c2389a", "#8c6d1f", "#6a5acd", "#008b8b", "#b22222"}

const loadStyle = `svg{background:#fff}text{font:12px system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#333}.t{font-weight:600;font-size:13px}` +
	`.f{fill:none;stroke:#999}.l{fill:none;stroke-width:2}.e{text-anchor:end}.m{text-anchor:middle}@media (prefers-color-scheme:dark){svg{background:#14181e}text{fill:#ddd}}`

// curve is one line of a chart.
type curve struct {
	name string
	at   []LoadPoint // by workers
}

// loadChart is a chart of one figure.
type loadChart struct {
	title string
	value func(LoadPoint) float64
	text  func(float64) string
	share bool // drawn from 0 to 1, not by logarithms
}

func loadCharts() []loadChart {
	seconds := func(v float64) string { return length(time.Duration(v)) }
	return []loadChart{
		{"Holds a second", func(p LoadPoint) float64 { return p.PerSecond }, func(v float64) string { return trimmed(v, 1) }, false},
		{"Time to the grant, median", func(p LoadPoint) float64 { return float64(p.P50) }, seconds, false},
		{"Time to the grant, 99th percentile", func(p LoadPoint) float64 { return float64(p.P99) }, seconds, false},
		{"Time to the grant, 99.9th percentile", func(p LoadPoint) float64 { return float64(p.P999) }, seconds, false},
		{"Fairness (Jain's index)", func(p LoadPoint) float64 { return p.Fairness }, func(v float64) string { return trimmed(v, 2) }, true},
	}
}

// LoadChart draws the curves of a profile as one picture: workers to the right, axes by
// logarithms but for shares.
func LoadChart(w io.Writer, p LoadProfile) error {
	var b strings.Builder
	charts := loadCharts()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="What locks cost, by the number of workers"><style>%[3]s</style>`+"\n",
		loadWidth, 2*len(charts)*loadPanel, loadStyle)
	top := 30
	for _, alone := range []bool{true, false} {
		for _, c := range charts {
			c.draw(&b, p.curves(alone), alone, top)
			top += loadPanel
		}
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// curves are one a lock, in the order of the points.
func (p LoadProfile) curves(alone bool) []curve {
	var all []curve
	for _, point := range p.Points {
		if point.Alone != alone {
			continue
		}
		i := slices.IndexFunc(all, func(c curve) bool { return c.name == point.Lock })
		if i < 0 {
			all, i = append(all, curve{name: point.Lock}), len(all)
		}
		all[i].at = append(all[i].at, point)
	}
	return all
}

func (c loadChart) draw(b *strings.Builder, curves []curve, alone bool, top int) {
	x, y := loadScales(curves, c.value)
	if c.share {
		y = loadScale{high: 1, linear: true}
	}
	width := loadWidth - loadLeft - loadRight
	place := func(p LoadPoint) (string, string) {
		return trimmed(loadLeft+float64(width)*x.along(float64(p.Workers)), 1), trimmed(float64(top)+loadHeight*(1-y.along(c.value(p))), 1)
	}
	fmt.Fprintf(b, `<text class="t" x="%d" y="%d">%s, %s</text><rect class="f" x="%d" y="%d" width="%d" height="%d"/>`+"\n",
		loadLeft, top-10, html.EscapeString(c.title), LoadPoint{Alone: alone}.how(), loadLeft, top, width, loadHeight)
	for i, line := range curves {
		colour := loadColours[i%len(loadColours)]
		var path strings.Builder
		for _, p := range line.at {
			if c.value(p) <= 0 {
				continue
			}
			px, py := place(p)
			command := " L"
			if path.Len() == 0 {
				command = "M"
			}
			path.WriteString(command + px + " " + py)
			fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3" fill="%s"><title>%s: %s</title></circle>`+"\n", px, py, colour, html.EscapeString(p.Name()), html.EscapeString(c.text(c.value(p))))
		}
		if path.Len() > 0 {
			fmt.Fprintf(b, `<path class="l" stroke="%s" d="%s"/>`+"\n", colour, path.String())
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" style="fill:%s">%s</text>`+"\n", loadWidth-loadRight+8, top+14+16*i, colour, html.EscapeString(clean(line.name)))
	}
	for i := range 5 {
		share := float64(i) / 4
		fmt.Fprintf(b, `<text class="e" x="%d" y="%s">%s</text>`+"\n", loadLeft-6, trimmed(float64(top)+loadHeight*(1-share)+4, 1), c.text(y.value(share)))
	}
	if len(curves) > 0 {
		for _, p := range curves[0].at {
			px, _ := place(p)
			fmt.Fprintf(b, `<text class="m" x="%s" y="%d">%d</text>`+"\n", px, top+loadHeight+16, p.Workers)
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">workers</text>`+"\n", loadLeft, top+loadHeight+34)
}

// loadScale is an axis, by logarithms unless it is linear.
type loadScale struct {
	low, high float64
	linear    bool
}

// loadScales have space for all points.
func loadScales(curves []curve, value func(LoadPoint) float64) (x, y loadScale) {
	for _, line := range curves {
		for _, p := range line.at {
			x.take(float64(p.Workers))
			y.take(value(p))
		}
	}
	return x, y
}

func (s *loadScale) take(v float64) {
	if v <= 0 {
		return
	}
	if s.low == 0 {
		s.low, s.high = v, v
	}
	s.low, s.high = min(s.low, v), max(s.high, v)
}

// along is where a value lies, from 0 to 1.
func (s loadScale) along(v float64) float64 {
	if s.linear {
		return (v - s.low) / (s.high - s.low)
	}
	if s.high <= s.low || v <= 0 {
		return 0.5
	}
	return math.Log(v/s.low) / math.Log(s.high/s.low)
}

// value is the inverse of along.
func (s loadScale) value(share float64) float64 {
	if s.linear {
		return s.low + share*(s.high-s.low)
	}
	if s.high <= s.low {
		return s.low
	}
	return s.low * math.Pow(s.high/s.low, share)
}
