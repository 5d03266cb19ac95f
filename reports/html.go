package reports

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// pageFiles are the page by its sections: report.html.tmpl is the whole.
//
//go:embed page
var pageFiles embed.FS

// Limits of the tables, so that the page stays one that a browser opens at once.
const (
	maxFaultRows    = 150
	maxPerProperty  = 25
	maxUnfolded     = 5   // of those; the others are folded, and not on paper
	maxEvidence     = 400 // runes
	maxParameter    = 1000
	maxIncidentText = 600
)

// HTML writes one self-contained page: the verdict, a picture of the most
// telling moment and of the whole run on a true time axis, and the evidence.
// It loads nothing, works from a file, prints, and is complete without script.
// The size is bounded: what had to be left out is said in its place.
func HTML(w io.Writer, h *history.History, r checker.Results) error {
	t, err := template.New("report.html.tmpl").ParseFS(pageFiles, "page/*")
	if err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	return writeWhole(w, t, newPage(h, r))
}

//go:embed page/style.css
var runStyle string

// Style is the style sheet of the page, as far as it is of use to other pages.
func Style() string { return runStyle }

type page struct {
	Title, Word, Class, Sentence, Judged string
	Run                                  []fact
	Warnings                             []string
	Verdicts                             []verdictRow
	Findings                             []Opinion
	Situation                            *situationView
	Overview                             *picture
	Charts                               []picture
	Latencies                            []latencyRow
	Undrawn                              string // why there is no picture
	Figures                              []fact
	Coverage                             []coverageRow
	Faults                               []faultRow
	FaultsLeft                           int
	Incidents                            []incidentGroup
	CloseUps                             []closeUpView
	Remedies                             []remedyView
	Tables                               []factTable
	Command                              string
	Started, ID, Version                 string
}

// verdictRow is the properties with one verdict.
type verdictRow struct {
	Word, Class string
	Properties  []Opinion
}

type situationView struct {
	Title     string
	Intro     []fact
	Picture   *picture // nil where the history has no events
	Steps     []step
	StepsLeft []string
}

type coverageRow struct {
	Kind, Line string
	Reasons    []string
}

type faultRow struct {
	ID, Name, Role, Why string
	Counts              bool
	Times               []string // requested, applied, proven, healed, proven healed
	Evidence            []fact
}

// incidentGroup is the incidents of one property, those that tell most first.
type incidentGroup struct {
	ID, Property, Count string
	Parts               []incidentPart
}

// incidentPart is a table of incidents; Fold is what it is folded under, if it is.
type incidentPart struct {
	Caption, Fold string
	Rows          []incidentRow
}

type incidentRow struct {
	ID                      string
	From, Seconds           float64 // of what to show of the run, since its beginning
	At, Class, What, Faults string
	Why, Cause              string
	CloseUp                 string // address on the page; "" for none
	Who                     []string
}

type factTable struct {
	Title string
	Facts []fact
}

func newPage(h *history.History, r checker.Results) page {
	rec := newRecord(h, r)
	v := Plain(r.Verdict)
	p := page{
		Title:    strings.ToUpper(string(v)) + ": " + clean(h.Header.Lock) + ", " + clean(h.Header.Workload),
		Word:     strings.ToUpper(string(v)),
		Class:    string(v),
		Judged:   judged(r),
		Run:      factsOf(h.Header, r),
		Warnings: warnings(h, rec),
		Findings: linked(opinionsOf(r), r),
		Verdicts: verdictRows(linked(opinionsOf(r), r)),
		Figures:  figures(r),
		Command:  shorten(CommandLine(again(h.Header)), maxParameter),
		Started:  clean(h.Header.Started),
		ID:       clean(h.Header.Run),
		Version:  clean(h.Header.Version),
		Tables: []factTable{
			{"Parameters", pairs(h.Header.Parameters)},
			{"Versions", pairs(h.Header.Versions)},
			{"Images", pairs(h.Header.Images)},
		},
	}
	p.Sentence = Sentence(r)
	shown := p.pictures(h, rec, r)
	for _, c := range coverages(h.Header, r.Faults) {
		p.Coverage = append(p.Coverage, coverageRow{c.name, c.line(), c.notCounted()})
	}
	listed := min(len(r.Faults), maxFaultRows)
	for _, f := range r.Faults[:listed] {
		p.Faults = append(p.Faults, rec.faultRow(f))
	}
	p.FaultsLeft = len(r.Faults) - listed
	p.Incidents, p.CloseUps = incidentGroups(r, shown), shown.views()
	p.Remedies = remedyViews(h.Header, r)
	return p
}

// warnings is what a reader must know before trusting the rest.
func warnings(h *history.History, rec *record) []string {
	var out []string
	for _, e := range rec.phases {
		if e.Note == history.PhaseBroken {
			out = append(out, "The run itself failed at "+at(e.Time, rec.begin)+": "+shorten(clean(e.Error), maxEvidence))
		}
		if e.Note == history.PhaseRecovered && e.Error != "" && rec.faulted() {
			out = append(out, "After the last fault: "+shorten(clean(e.Error), maxEvidence)+".")
		}
	}
	if h.Truncated > 0 {
		out = append(out, "The history was cut off in the middle of line "+strconv.Itoa(h.Truncated)+"; that line is left out.")
	}
	return out
}

// faulted says whether there was a fault to recover from.
func (rec *record) faulted() bool {
	return slices.ContainsFunc(rec.faults, func(f checker.FaultCoverage) bool { return f.Applied })
}

func opinionsOf(r checker.Results) []Opinion {
	var out []Opinion
	for _, f := range ordered(r.Findings) {
		class := wordOf(f)
		if rank(f) == violatedNotRequired {
			class = "tolerated"
		}
		out = append(out, Opinion{clean(string(f.Property)), wordOf(f), strings.ReplaceAll(class, "/", ""), clean(f.Summary), f.Required, ""})
	}
	return out
}

// linked adds where the incidents of each are.
func linked(rows []Opinion, r checker.Results) []Opinion {
	for n, f := range byCost(r.Findings) {
		for i := range rows {
			if rows[i].Property == clean(string(f.Property)) && len(f.Violations) > 0 {
				rows[i].To = "#" + groupID(n)
			}
		}
	}
	return rows
}

// again is the command that runs a test again: a seed that was drawn by chance is named.
func again(h history.Header) []string {
	command := h.Command
	named := func(a string) bool {
		return a == "--seed" || strings.HasPrefix(a, "--seed=") || a == "--schedule" || strings.HasPrefix(a, "--schedule=")
	}
	if len(command) > 1 && command[1] == "test" && !slices.ContainsFunc(command, named) {
		return append(slices.Clone(command), "--seed", strconv.FormatUint(h.Seed, 10))
	}
	return command
}

// verdictRows gathers findings, which are in the order of their verdicts.
func verdictRows(findings []Opinion) []verdictRow {
	var out []verdictRow
	for _, f := range findings {
		if n := len(out); n == 0 || out[n-1].Word != f.Word || out[n-1].Class != f.Class {
			out = append(out, verdictRow{Word: f.Word, Class: f.Class})
		}
		last := &out[len(out)-1]
		last.Properties = append(last.Properties, f)
	}
	return out
}

// pictures draws what there is to draw, and says why there is nothing. It returns what is
// shown close up.
func (p *page) pictures(h *history.History, rec *record, r checker.Results) closeUps {
	shown, ok := newCloseUps(rec, r)
	if !ok {
		p.undrawn(rec, r)
		return shown
	}
	s := shown.shown[0]
	if h.Excerpt {
		p.Undrawn = "The history is too large to be drawn as a whole: only incidents are, close up. The verdict and the figures are those of all of it."
	} else {
		p.whole(rec, s)
	}
	view, drawn := situationView{}, closeUp(rec, s)
	view.Picture = &drawn
	view.Title, view.Intro = s.headline(rec)
	view.Steps, view.StepsLeft = rec.steps(s)
	p.Situation = &view
	return shown
}

// whole draws the whole run, with the part of it that is shown close up.
func (p *page) whole(rec *record, s situation) {
	drawn := overview(rec, s)
	p.Overview = &drawn
	for _, draw := range []func(*record) (picture, bool){latencyChart, throughputChart} {
		if chart, ok := draw(rec); ok {
			p.Charts = append(p.Charts, chart)
		}
	}
	p.Latencies = latencyRows(rec)
}

// undrawn says why there is no picture, and tells in words what one would show.
func (p *page) undrawn(rec *record, r checker.Results) {
	p.Undrawn = "No hold was recorded, so there is nothing to draw."
	if r.Operations.Acquired > 0 {
		p.Undrawn = "The history is too large to be drawn. The verdict, the figures and the incidents are those of all of it."
	}
	if found := examples(r, byCost(r.Findings), 1); len(found) > 0 {
		view := situationView{}
		view.Title, view.Intro = situation{example: found[0], runFailed: failed(r)}.headline(rec)
		p.Situation = &view
	}
}

// figures is the counts, with the two kinds of overlap kept apart.
func figures(r checker.Results) []fact {
	o, u := r.Operations, r.Updates
	lost := Grouped(u.Lost) + " of " + Grouped(u.Acknowledged)
	if u.Acknowledged > 0 {
		lost += " (" + interval(u.LossInterval) + ")"
	}
	out := []fact{
		{"acquired", Grouped(o.Acquired)},
		{"refused as busy", Grouped(o.Busy)},
		{"acquires failed otherwise", Grouped(o.AcquireFailed)},
		{"acquires with unknown outcome", Grouped(o.Unknown)},
		{"released", Grouped(o.Released)},
		{"gone at release", Grouped(o.GoneAtRelease)},
		{"notified that the lock is lost", Grouped(o.Lost)},
		{"acknowledged updates lost", lost},
		{"duplicated / phantom updates", Grouped(u.Duplicated) + " / " + Grouped(u.Phantom)},
		{"overlaps by a double grant", Grouped(r.Overlaps.DoubleGrants)},
		{"overlaps by a use after expiry", Grouped(r.Overlaps.UsesAfterExpiry)},
	}
	if r.Overlaps.Total() > 0 {
		out = append(out,
			fact{"earlier holder healthy / paused / cut off", fmt.Sprintf("%d / %d / %d",
				r.Overlaps.EarlierHealthy, r.Overlaps.EarlierPaused, r.Overlaps.EarlierCutOff)},
			fact{"longest overlap", Length(r.Overlaps.Longest)})
	}
	refused := fmt.Sprintf("%s, %s", Many(r.Fence.RefusedReads, "read"), Many(r.Fence.RefusedWrites, "write"))
	if n := r.Fence.Unanswered; n > 0 {
		refused += fmt.Sprintf("; %s of them for want of an answer", Grouped(n))
	}
	return append(out,
		fact{"accesses refused by the guard", refused},
		fact{"length of the run", Length(time.Duration(r.End - r.Begin))})
}

func (rec *record) faultRow(f checker.FaultCoverage) faultRow {
	row := faultRow{ID: clean(f.ID), Name: rec.faultName(f), Role: clean(f.Role), Counts: f.Counts()}
	if !row.Counts {
		row.Why = shorten(whyNot(f), maxEvidence)
	}
	row.Times = []string{"–", "–", "–", "–", "–"}
	order := []history.Stage{history.Requested, history.Applied, history.Proven, history.Healed, history.ProvenHealed}
	for _, e := range rec.stages[f.ID] {
		if i := slices.Index(order, e.Fault.Stage); i >= 0 {
			row.Times[i] = at(e.Time, rec.begin)
		}
		if e.Fault.Evidence != "" {
			row.Evidence = append(row.Evidence, fact{clean(string(e.Fault.Stage)), evidence(e.Fault.Evidence)})
		}
	}
	if len(row.Evidence) == 0 {
		for _, e := range f.Evidence[:min(len(f.Evidence), 8)] {
			row.Evidence = append(row.Evidence, fact{"", evidence(e)})
		}
	}
	row.Evidence = row.Evidence[:min(len(row.Evidence), 8)]
	return row
}

func evidence(s string) string { return shorten(clean(s), maxEvidence) }

// incidentGroups lists incidents by property, what cost most first.
func incidentGroups(r checker.Results, shown closeUps) []incidentGroup {
	var out []incidentGroup
	for n, f := range byCost(r.Findings) {
		list := shownIncidents(r, f)
		if len(list) == 0 {
			continue
		}
		total := int64(max(f.Total, len(f.Violations)))
		property := clean(string(f.Property))
		g := incidentGroup{ID: groupID(n), Property: property, Count: Grouped(total)}
		if left := total - int64(len(list)); left > 0 {
			g.Count = fmt.Sprintf("%d of %s; the rest is in the history", len(list), Grouped(total))
		}
		address := func(i checker.Incident) string { return shown.address(f.Property, i) }
		first := list[:min(len(list), maxUnfolded)]
		g.Parts = []incidentPart{{Caption: "Incidents: " + property, Rows: incidentRows(r, n, 0, first, address)}}
		if rest := list[len(first):]; len(rest) > 0 {
			g.Parts = append(g.Parts, incidentPart{
				Caption: "More incidents: " + property, Fold: fmt.Sprintf("%d more", len(rest)), Rows: incidentRows(r, n, len(first), rest, address),
			})
		}
		out = append(out, g)
	}
	return out
}

func incidentRows(r checker.Results, finding, first int, list []checker.Incident, closeUp func(checker.Incident) string) []incidentRow {
	var out []incidentRow
	for n, i := range list {
		margin := max((i.To-i.From)/2, 200e6)
		out = append(out, incidentRow{
			ID:   rowID(finding, first+n),
			From: float64(i.From-margin-r.Begin) / 1e9, Seconds: float64(max(i.To, i.From)-i.From+2*margin) / 1e9,
			At:      at(i.From, r.Begin),
			Class:   clean(i.Class),
			What:    shorten(clean(i.What), maxIncidentText),
			Why:     shorten(clean(i.Why), maxIncidentText),
			Cause:   clean(i.Cause),
			CloseUp: closeUp(i),
			Who:     who(i),
			Faults:  shorten(strings.Join(cleanAll(i.Faults), ", "), maxEvidence),
		})
	}
	return out
}

// who pairs the workers of an incident with their grants.
func who(i checker.Incident) []string {
	var out []string
	for n, w := range i.Workers {
		if n < len(i.Grants) {
			w += " (" + i.Grants[n] + ")"
		}
		out = append(out, shorten(clean(w), 60))
	}
	if i.Key != "" {
		out = append(out, "key "+shorten(clean(i.Key), 60))
	}
	return out[:min(len(out), 8)]
}

// pairs is a map in the order of its keys.
func pairs(m map[string]string) []fact {
	var out []fact
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fact{clean(k), shorten(clean(m[k]), maxParameter)})
	}
	return out
}
