package reports

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/checker"
	"lockcheck/history"
)

// Other pages use runStyle too. Only the report of a run uses reportStyle.
var (
	//go:embed page/style.css
	runStyle string
	//go:embed page/report.css
	reportStyle string
	//go:embed page/copy.js
	copyScript string
	//go:embed page/detail.js
	detailScript string
	//go:embed page/zoom.js
	zoomScript string
)

// Style is the part of the style sheet that other pages use too.
func Style() string { return runStyle }

// Limits of the tables, so that a browser opens the page at once.
const (
	maxFaultRows    = 150
	maxPerProperty  = 25
	maxUnfolded     = 5   // incidents of a property; further incidents are folded, and are not printed
	maxEvidence     = 400 // runes
	maxParameter    = 1000
	maxIncidentText = 600
)

// HTML writes one self-contained page: the verdict, a picture of the most informative moment and of the whole
// run on a true time axis, and the evidence. The page loads nothing, works from a file, can be printed, and
// is complete without script. Its size is bounded, and it says what was left out.
func HTML(w io.Writer, h *history.History, r checker.Results) error {
	rec := newRecord(h, r)
	word := strings.ToUpper(string(Plain(r.Verdict)))
	return WritePage(w, word+": "+clean(h.Header.Lock)+", "+clean(h.Header.Workload), runStyle+reportStyle, copyScript+detailScript+zoomScript,
		g.Raw(symbols),
		html.Header(html.P(html.Style("margin:0"), Span("badge "+string(Plain(r.Verdict)), word)), html.H1(g.Text(Sentence(r))),
			g.Map(warnings(h, rec), func(text string) g.Node { return html.P(html.Class("warning"), g.Text(text)) }),
			html.Dl(html.Class("run"), g.Map(factsOf(h.Header, r), fact.item)),
			html.Dl(html.Class("verdicts"), html.Aria("label", "Verdict by property"), verdictItems(addressed(opinionsOf(r), r)))),
		mainOf(rec, h, r),
		html.Footer(g.Text("lockcheck "+clean(h.Header.Version)+" · run "+clean(h.Header.Run)+" · started "+clean(h.Header.Started))))
}

// mainOf is the page between its header and its footer.
func mainOf(rec *record, h *history.History, r checker.Results) g.Node {
	if r.Application != nil && h.Header.Application != nil {
		return applicationMain(rec, h, r)
	}
	shown, drawn := newCloseUps(rec, r)
	return html.Main(
		situationSection(rec, r, shown, drawn),
		remediesSection(adviceFor(h.Header, r), false),
		wholeRun(rec, h, r, shown, drawn),
		findingsSection(r),
		Section("In figures", html.Dl(html.Class("figures"), g.Map(figures(r), fact.item))),
		rec.faultsSection(h.Header, r.Faults),
		incidentsSection(r, shown, drawn && !h.Excerpt),
		commandSection(h.Header))
}

// name is the property, linked to its incidents.
func (o Opinion) name() g.Node { return linked(o.To, g.Text(o.Property)) }

// notJudged marks a property that does not affect the verdict.
func (o Opinion) notJudged() g.Node {
	return g.If(!o.Required, g.Group{g.Text(" "), Soft("(not judged)")})
}

// verdictItems groups findings that follow each other with the same verdict.
func verdictItems(findings []Opinion) g.Node {
	alike := func(a, b Opinion) bool { return a.Word == b.Word && a.Class == b.Class }
	return g.Map(chunks(findings, alike), func(of []Opinion) g.Node {
		var names g.Group
		for i, f := range of {
			names = append(names, g.If(i > 0, g.Text(", ")), f.name(), f.notJudged())
		}
		return html.Div(html.Dt(html.Class("word "+of[0].Class), g.Text(of[0].Word)), html.Dd(names))
	})
}

// situationSection explains the most informative moment in words and, if it can be drawn, in a picture.
func situationSection(rec *record, r checker.Results, shown closeUps, drawn bool) g.Node {
	var s situation
	if found := examples(r, byCost(r.Findings), 1); drawn {
		s = shown.shown[0]
	} else if len(found) > 0 {
		s = situation{example: found[0], runFailed: failed(r)}
	} else {
		return nil
	}
	headline, intro := s.headline(rec)
	content := g.Group{g.Map(intro, func(f fact) g.Node {
		return html.P(g.If(f.Name != "", g.Group{html.B(g.Text(f.Name)), g.Text(" ")}), g.Text(f.Value))
	})}
	if drawn {
		steps, left := rec.steps(s)
		content = append(content, closeUp(rec, s).explained(), g.If(len(steps) > 0, g.Group{
			html.H3(g.Text("Step by step")), html.Ol(html.Class("steps"), g.Map(steps, step.node)), notes(left)}))
	}
	return Section(headline, content)
}

func (s step) node() g.Node {
	return html.Li(Span("time", s.At), html.Span(html.Class("dot "+s.Class), html.Aria("hidden", "true")), html.Span(g.Text(s.Text)))
}

// wholeRun draws the whole run and marks the part that is shown close up, or says why it draws nothing.
func wholeRun(rec *record, h *history.History, r checker.Results, shown closeUps, drawn bool) g.Node {
	switch {
	case !drawn && r.Operations.Acquired > 0:
		return note("The history is too large to be drawn. The verdict, the figures and the incidents are those of all of it.")
	case !drawn:
		return note("No hold was recorded, so there is nothing to draw.")
	case h.Excerpt:
		return note("The history is too large to be drawn as a whole: only incidents are, close up. The verdict and the figures are those of all of it.")
	}
	var charts g.Group
	for _, draw := range []func(*record) (picture, bool){latencyChart, throughputChart} {
		if chart, ok := draw(rec); ok {
			charts = append(charts, html.H3(g.Text(chart.Title)), chart.figure(strings.Join(chart.Notes, " ")))
		}
	}
	return wholeStage(overview(rec, shown.shown[0]), g.Group{html.Div(html.Class("charts"), charts)},
		"One row for each worker; the frame marks the part shown above. Paler blocks stand for several holds.", latencyTable(latencyRows(rec)))
}

// wholeStage shows the picture of a whole run, which can be zoomed together with the charts below it.
func wholeStage(whole picture, below g.Node, caption string, more ...g.Node) g.Node {
	button := func(does, label, text string) g.Node {
		return html.Button(html.Type("button"), html.Data("do", does), g.If(label != "", html.Aria("label", label)), g.Text(text))
	}
	return Section("The whole run", html.ID("run"),
		html.Div(html.Class("tools"), html.Role("group"), html.Aria("label", "Zoom of the time axis"),
			button("in", "Zoom in", "+"), button("out", "Zoom out", "−"), g.Text(" "), button("left", "Earlier", "←"), button("right", "Later", "→"), g.Text(" "), button("all", "", "whole run"), g.Text(" "),
			Soft("or the keys + − ← → 0; drag to move, Ctrl and wheel to zoom; merged holds come apart"), g.Text(" "),
			html.Span(html.Class("soft"), html.Role("status"), html.ID("range"))),
		html.Div(html.ID("stage"), whole.figure(strings.Join(append([]string{caption}, whole.Notes...), " ")), below), g.Group(more))
}

func findingsSection(r checker.Results) g.Node {
	return Section("What was checked", html.Table(html.Class("properties"), html.Caption(g.Text("The verdict rests on: "+judged(r)+".")),
		Heads("Property", "Verdict", "What was found"), html.TBody(g.Map(addressed(opinionsOf(r), r), func(f Opinion) g.Node {
			return html.Tr(RowHead(f.name()), TextCell("word "+f.Class, f.Word), html.Td(g.Text(f.Summary), f.notJudged()))
		}))))
}

func commandSection(h history.Header) g.Node {
	var tables g.Group
	for _, table := range []struct {
		title string
		facts map[string]string
	}{{"Parameters", h.Parameters}, {"Versions", h.Versions}, {"Images", h.Images}} {
		if len(table.facts) > 0 {
			tables = append(tables, html.Div(html.Table(html.Caption(g.Text(table.title)), html.TBody(g.Map(pairs(table.facts), func(f fact) g.Node {
				return html.Tr(RowHead(g.Text(f.Name)), html.Td(g.Text(f.Value)))
			})))))
		}
	}
	line := shorten(CommandLine(again(h)), maxParameter)
	return Section("How it was run",
		g.If(line != "", g.Group{
			html.Pre(html.Aria("label", "Command line"), html.ID("command"), g.Text(line)),
			html.P(html.Class("tools"), html.Button(html.Type("button"), html.ID("copy"), g.Text("copy the line to run it again")), g.Text(" "),
				html.Span(html.Class("soft"), html.Role("status"), html.ID("copied")))}),
		html.Div(html.Class("columns"), tables))
}

// warnings lists what a reader must know before trusting the rest.
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

// addressed adds the address of each property's incidents.
func addressed(rows []Opinion, r checker.Results) []Opinion {
	for n, f := range byCost(r.Findings) {
		for i := range rows {
			if rows[i].Property == clean(string(f.Property)) && len(f.Violations) > 0 {
				rows[i].To = "#" + groupID(n)
			}
		}
	}
	return rows
}

// again is the command that repeats a test. It names the seed if that was drawn at random.
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

// figures lists the counts. The two kinds of overlap are counted separately.
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

// faultsSection says which faults count, and shows the times and the evidence of each fault.
func (rec *record) faultsSection(h history.Header, faults []checker.FaultCoverage) g.Node {
	listed := min(len(faults), maxFaultRows)
	groups := g.Node(html.P(g.Text("None were asked for.")))
	if all := coverages(h, faults); len(all) > 0 {
		groups = html.Ul(html.Class("plain"), g.Map(all, func(c coverage) g.Node {
			return html.Li(html.B(g.Text(c.name)), g.Text(" \u2003"+c.line()), g.Map(c.notCounted(), func(why string) g.Node { return g.Group{html.Br(), Soft(why)} }))
		}))
	}
	return Section("Faults", groups,
		g.If(listed > 0, Wide("Table of faults", html.Table(
			html.Caption(g.Text("Each fault with its five moments, in seconds since the beginning, and the evidence that was read back from its target.")),
			Heads("Fault", "Requested", "Applied", "Proven", "Healed", "Proven healed", "Counts"), g.Map(faults[:listed], rec.faultRows)))),
		html.P(html.Class("printed note"), g.Text("Their evidence, latencies, versions and the other incidents are on the screen.")),
		g.If(len(faults) > listed, note(strconv.Itoa(len(faults)-listed)+" more faults are in results.json.")))
}

func (rec *record) faultRows(f checker.FaultCoverage) g.Node {
	times, shown := []string{"–", "–", "–", "–", "–"}, g.Group(nil)
	order := []history.Stage{history.Requested, history.Applied, history.Proven, history.Healed, history.ProvenHealed}
	add := func(stage, text string) {
		shown = append(shown, g.Group{g.If(stage != "", g.Group{html.B(g.Text(stage + ":")), g.Text(" ")}), g.Text(evidence(text))})
	}
	for _, e := range rec.stages[f.ID] {
		if i := slices.Index(order, e.Fault.Stage); i >= 0 {
			times[i] = at(e.Time, rec.begin)
		}
		if e.Fault.Evidence != "" {
			add(clean(string(e.Fault.Stage)), e.Fault.Evidence)
		}
	}
	if len(shown) == 0 {
		for _, e := range f.Evidence {
			add("", e)
		}
	}
	shown = shown[:min(len(shown), 8)]
	counts := g.Text("yes")
	if !f.Counts() {
		counts = html.B(g.Text("no"))
		shown = append(g.Group{html.B(g.Text("does not count: " + shorten(whyNot(f), maxEvidence)))}, shown...)
	}
	for i := range shown[min(1, len(shown)):] {
		shown[i+1] = g.Group{g.Text(" · "), shown[i+1]}
	}
	id := clean(f.ID)
	if f.Role != "" {
		id += ", " + clean(f.Role)
	}
	return html.TBody(html.Class("fault"),
		html.Tr(RowHead(g.Text(rec.faultName(f)+" "), Soft(id)), g.Map(times, func(t string) g.Node { return TextCell("time", t) }), html.Td(counts)),
		g.If(len(shown) > 0, html.Tr(html.Class("evidence"), html.Td(html.ColSpan("7"), shown))))
}

func evidence(s string) string { return shorten(clean(s), maxEvidence) }

// incidentsSection lists incidents by property, those that cost most first. With drawn, incidents link to the
// picture of the run.
func incidentsSection(r checker.Results, shown closeUps, drawn bool) g.Node {
	var all g.Group
	for n, f := range byCost(r.Findings) {
		list := shownIncidents(r, f)
		if len(list) == 0 {
			continue
		}
		total := int64(max(f.Total, len(f.Violations)))
		count := Grouped(total)
		if int64(len(list)) < total {
			count = fmt.Sprintf("%d of %s; the rest is in the history", len(list), count)
		}
		var rows []g.Node
		for row, i := range list {
			rows = append(rows, incidentRow(i, r.Begin, rowID(n, row), shown.address(f.Property, i), drawn))
		}
		property, first := clean(string(f.Property)), min(len(list), maxUnfolded)
		all = append(all, html.H3(html.ID(groupID(n)), g.Text(property+" "), Soft("("+count+")")), incidentTable("Incidents: "+property, rows[:first]))
		if first < len(rows) {
			more := fmt.Sprintf("%d more", len(rows)-first)
			all = append(all, html.Details(html.Summary(g.Text(more)), incidentTable("More incidents: "+property, rows[first:])),
				html.P(html.Class("printed note"), g.Text(more+" on the screen.")))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return Section("Incidents", html.ID("incidents"), all, shown.node())
}

func incidentTable(caption string, rows []g.Node) g.Node {
	return Wide(caption, html.Table(html.Class("incidents"), html.Caption(g.Text(caption)), Heads("At", "What happened", "Who", "Faults in force"), html.TBody(rows...)))
}

func incidentRow(i checker.Incident, begin int64, id, closeUp string, drawn bool) g.Node {
	when := g.Text(at(i.From, begin))
	if drawn {
		margin := max((i.To-i.From)/2, 200e6)
		when = html.A(attributes("href", "#run", "data-from", fmt.Sprint(float64(i.From-margin-begin)/1e9),
			"data-seconds", fmt.Sprint(float64(max(i.To, i.From)-i.From+2*margin)/1e9)), when)
	}
	remark := func(s string) g.Node { return g.If(s != "", g.Group{g.Text(" "), Soft("(" + s + ")")}) }
	return html.Tr(html.ID(id), html.Td(html.Class("time"), when, g.If(closeUp != "", g.Group{html.Br(), html.A(Href(closeUp), g.Text("close-up"))})),
		html.Td(g.Text(shorten(clean(i.What), maxIncidentText)), remark(i.Class),
			g.If(i.Why != "", g.Group{html.Br(), Soft("Why:"), g.Text(" " + shorten(clean(i.Why), maxIncidentText))}), remark(i.Cause)),
		html.Td(html.Class("who"), g.Map(who(i), func(name string) g.Node { return g.Group{html.Span(g.Text(name)), g.Text(" ")} })),
		html.Td(g.Text(shorten(strings.Join(cleanAll(i.Faults), ", "), maxEvidence))))
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

// pairs lists the entries of a map in the order of its keys.
func pairs(m map[string]string) []fact {
	var out []fact
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fact{clean(k), shorten(clean(m[k]), maxParameter)})
	}
	return out
}
