package reports

import (
	"bytes"
	_ "embed"
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

//go:embed report.html.tmpl
var pageText string

// Limits of the tables, so that the page stays one that a browser opens at once.
const (
	maxFaultRows    = 150
	maxPerProperty  = 25
	maxEvidence     = 400 // runes
	maxParameter    = 1000
	maxIncidentText = 600
)

// HTML writes one self-contained page: the verdict, a picture of the most
// telling moment and of the whole run on a true time axis, and the evidence.
// It loads nothing, works from a file, prints, and is complete without script.
// The size is bounded: what had to be left out is said in its place.
func HTML(w io.Writer, h *history.History, r checker.Results) error {
	t, err := template.New("report").Parse(pageText)
	if err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newPage(h, r)); err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

type page struct {
	Title, Word, Class, Sentence, Judged string
	Run                                  []fact
	Warnings                             []string
	Findings                             []findingRow
	Scene                                *sceneView
	Overview                             *picture
	Figures                              []fact
	Coverage                             []coverageRow
	Faults                               []faultRow
	FaultsLeft                           int
	Incidents                            []incidentRow
	IncidentsLeft                        string
	Tables                               []factTable
	Command                              string
	Started, ID, Version                 string
}

type findingRow struct {
	Property, Word, Class, Summary string
	Required                       bool
}

type sceneView struct {
	Title, Intro string
	Picture      picture
	Steps        []step
	StepsLeft    int
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

type incidentRow struct {
	At, Property, Class, What, Faults string
	Why, Cause                        string
	Who                               []string
}

type factTable struct {
	Title string
	Facts []fact
}

func newPage(h *history.History, r checker.Results) page {
	rec := newRecord(h, r)
	v := plain(r.Verdict)
	p := page{
		Title:    strings.ToUpper(string(v)) + ": " + clean(h.Header.Lock) + ", " + clean(h.Header.Workload),
		Word:     strings.ToUpper(string(v)),
		Class:    string(v),
		Sentence: sentence(r),
		Judged:   judged(r),
		Run:      facts(h.Header),
		Warnings: warnings(h, rec),
		Findings: findingRows(r),
		Figures:  figures(r),
		Command:  shorten(commandLine(h.Header.Command), maxParameter),
		Started:  clean(h.Header.Started),
		ID:       clean(h.Header.Run),
		Version:  clean(h.Header.Version),
		Tables: []factTable{
			{"Parameters", pairs(h.Header.Parameters)},
			{"Versions", pairs(h.Header.Versions)},
			{"Images", pairs(h.Header.Images)},
		},
	}
	p.pictures(rec, r)
	for _, c := range coverages(h.Header, r.Faults) {
		p.Coverage = append(p.Coverage, coverageRow{c.kind, c.line(), c.notCounted()})
	}
	shown := min(len(r.Faults), maxFaultRows)
	for _, f := range r.Faults[:shown] {
		p.Faults = append(p.Faults, rec.faultRow(f))
	}
	p.FaultsLeft = len(r.Faults) - shown
	p.incidents(r)
	return p
}

// warnings is what a reader must know before trusting the rest.
func warnings(h *history.History, rec *record) []string {
	var out []string
	for _, e := range rec.phases {
		if e.Note == history.PhaseBroken {
			out = append(out, "The run itself failed at "+at(e.Time, rec.begin)+": "+shorten(clean(e.Error), maxEvidence))
		}
	}
	if h.Truncated > 0 {
		out = append(out, "The history was cut off in the middle of line "+strconv.Itoa(h.Truncated)+"; that line is left out.")
	}
	return out
}

func findingRows(r checker.Results) []findingRow {
	var out []findingRow
	for _, f := range ordered(r.Findings) {
		class := wordOf(f)
		if rank(f) == 3 {
			class = "tolerated"
		}
		out = append(out, findingRow{clean(string(f.Property)), wordOf(f), strings.ReplaceAll(class, "/", ""), clean(f.Summary), f.Required})
	}
	return out
}

func (p *page) pictures(rec *record, r checker.Results) {
	if len(rec.holds) == 0 {
		return
	}
	s, ok := rec.scene(r)
	whole := overview(rec, s, ok)
	p.Overview = &whole
	if !ok {
		return
	}
	view := sceneView{Picture: closeUp(rec, s)}
	view.Title, view.Intro = s.headline(rec)
	view.Steps, view.StepsLeft = rec.steps(s)
	p.Scene = &view
}

func (s scene) headline(rec *record) (title, intro string) {
	if s.harmless && s.key == "" {
		return "How the lock was used", "Nothing was violated, and no fault mattered. These are the first holds of the run."
	}
	if s.harmless {
		return "A closer look at a fault", "Nothing was violated. This is the first fault that mattered, and what the workers did meanwhile."
	}
	title = "The counterexample"
	if rank(s.Finding) == 4 {
		title = "What the guard made harmless"
	} else if rank(s.Finding) == 3 {
		title = "Seen, but not judged"
	}
	intro = "At " + at(s.Incident.From, rec.begin) + ": " + shorten(clean(s.Incident.What), maxIncidentText)
	if s.Incident.Why != "" {
		intro += ". Why: " + shorten(clean(s.Incident.Why), maxIncidentText) + " (" + clean(s.Incident.Cause) + ")."
	}
	return title, intro
}

// figures is the counts, with the two kinds of overlap kept apart.
func figures(r checker.Results) []fact {
	o, u := r.Operations, r.Updates
	lost := grouped(u.Lost) + " of " + grouped(u.Acknowledged)
	if u.Acknowledged > 0 {
		lost += " (95 % interval " + trimmed(100*u.LostLow, 2) + " % to " + trimmed(100*u.LostHigh, 2) + " %)"
	}
	out := []fact{
		{"acquired", grouped(o.Acquired)},
		{"refused as busy", grouped(o.Busy)},
		{"acquires failed otherwise", grouped(o.AcquireFailed)},
		{"acquires with unknown outcome", grouped(o.Unknown)},
		{"released", grouped(o.Released)},
		{"gone at release", grouped(o.GoneAtRelease)},
		{"told that the lock is lost", grouped(o.Lost)},
		{"acknowledged updates lost", lost},
		{"duplicated / phantom updates", grouped(u.Duplicated) + " / " + grouped(u.Phantom)},
		{"overlaps by a broken promise", grouped(r.Overlaps.BrokenPromises)},
		{"overlaps by an outlived lease", grouped(r.Overlaps.OutlivedLeases)},
	}
	if r.Overlaps.Total() > 0 {
		out = append(out,
			fact{"earlier holder healthy / paused / cut off", fmt.Sprintf("%d / %d / %d",
				r.Overlaps.EarlierHealthy, r.Overlaps.EarlierPaused, r.Overlaps.EarlierCutOff)},
			fact{"longest overlap", length(r.Overlaps.Longest)})
	}
	return append(out,
		fact{"accesses refused by the guard", fmt.Sprintf("%s, %s", many(r.Fence.RefusedReads, "read"), many(r.Fence.RefusedWrites, "write"))},
		fact{"length of the run", length(time.Duration(r.End - r.Begin))})
}

func (rec *record) faultRow(f checker.FaultCoverage) faultRow {
	row := faultRow{ID: clean(f.ID), Name: faultName(f), Role: clean(f.Role), Counts: counts(f)}
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

func (p *page) incidents(r checker.Results) {
	var capped []string
	for _, f := range ordered(r.Findings) {
		list := tellingFirst(r, f)
		shown := min(len(list), maxPerProperty)
		for _, i := range list[:shown] {
			p.Incidents = append(p.Incidents, incidentRow{
				At:       at(i.From, r.Begin),
				Property: clean(string(f.Property)),
				Class:    clean(i.Class),
				What:     shorten(clean(i.What), maxIncidentText),
				Why:      shorten(clean(i.Why), maxIncidentText),
				Cause:    clean(i.Cause),
				Who:      who(i),
				Faults:   shorten(strings.Join(cleanAll(i.Faults), ", "), maxEvidence),
			})
		}
		if total := max(f.Total, len(list)); total > shown {
			capped = append(capped, fmt.Sprintf("%s: %d of %s", clean(string(f.Property)), shown, grouped(int64(total))))
		}
	}
	p.IncidentsLeft = strings.Join(capped, "; ")
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

// commandLine is a command that can be pasted into a shell.
func commandLine(args []string) string {
	var out []string
	for _, a := range args {
		a = printable(a)
		if a == "" || strings.ContainsAny(a, " \t\"'`$\\&|;<>()*?[]#~!{}") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, a)
	}
	return strings.Join(out, " ")
}
