package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
)

//go:embed guide.html.tmpl
var guideText string

// GuideHTML writes the guide as one self-contained page: advice, a heat map of which each
// cell leads to its runs, and figures side by side. It is complete without script, which
// sorts tables.
func GuideHTML(w io.Writer, g Guide) error {
	t, err := comparisonTemplate("guide", guideText)
	if err != nil {
		return fmt.Errorf("guide page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newGuidePage(g)); err != nil {
		return fmt.Errorf("guide page: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

type guidePage struct {
	Runs, Days, Silent string
	Faults             []string
	FitTerms, Terms    []guideTerm
	OtherFaults        string
	FitHead            []string
	Needs              []GuideNeed
	Tables             []guideTableView
	Bars               []sideBySideBars
	Details            []guideDetail
}

type guideTableView struct {
	Guard string
	Rows  []guideRowView
}

type guideRowView struct {
	Lock, Note    string
	Cells, Others []guideCellView
}

type guideCellView struct {
	Word, Small, Class, Title, Anchor string
	Rank                              int // to sort by, the worst first
}

// sideBySideBars are the figures of a lock next to those of others.
type sideBySideBars struct {
	Lock, Note              string
	Lost, Acquire, Failover barView
}

type guideDetail struct {
	Anchor, Heading, Text string
	Sentences             []string
	Runs                  []guideRunView
}

type guideRunView struct {
	ID, When, Class, Said, Versions, Line, Report string
	Seed                                          uint64
}

func newGuidePage(g Guide) guidePage {
	p := guidePage{
		Runs: many(g.Runs, "run"), Days: g.days(), Silent: grouped(g.Silent),
		Faults: cleanAll(g.Faults), FitTerms: fitTerms[:], Terms: guideTerms(), OtherFaults: otherFaults, FitHead: guideFitHead, Needs: g.Needs, Bars: guideBars(g.Speeds),
	}
	for _, table := range g.Tables {
		view := guideTableView{Guard: clean(table.Guard)}
		for _, row := range table.Rows {
			r := guideRowView{Lock: clean(row.Lock), Note: clean(row.Note)}
			for _, c := range row.Cells {
				r.Cells = append(r.Cells, c.view(""))
			}
			for _, c := range row.others() {
				r.Others = append(r.Others, c.view(c.Fault))
			}
			if row.tells() {
				view.Rows = append(view.Rows, r)
			}
			for _, c := range slices.Concat(row.Cells, row.Others) {
				if c.hasRuns() {
					p.Details = append(p.Details, c.detail())
				}
			}
		}
		p.Tables = append(p.Tables, view)
	}
	return p
}

// view is the cell of the heat map, with the fault before it if that is not "".
func (c GuideCell) view(fault string) guideCellView {
	word, small := c.text(), ""
	if i := strings.IndexAny(word, "(:;,"); i > 0 {
		word, small = strings.TrimSpace(word[:i]), strings.TrimLeft(word[i:], ":;, ")
	}
	if fault != "" {
		word = clean(fault) + ": " + word
	}
	v := guideCellView{Word: word, Small: small, Title: strings.Join(c.sentences(), " ")}
	states := []string{GuideBroken, GuideAfterExpiry, GuideUnlocked, GuideTokens, GuideStuck, GuideLate, GuideHeld, GuideTooShort, GuideNotTried, GuideNotSupported}
	v.Rank = slices.Index(states, c.State)
	v.Class = map[string]string{GuideBroken: "violation", GuideAfterExpiry: "undecided", GuideUnlocked: "undecided", GuideTokens: "undecided", GuideStuck: "broken", GuideLate: "broken", GuideHeld: "valid"}[c.State]
	if v.Class == "" {
		v.Class = "none"
	}
	if c.hasRuns() {
		v.Anchor = c.anchor()
	}
	return v
}

func (c GuideCell) detail() guideDetail {
	d := guideDetail{Anchor: c.anchor(), Heading: c.heading(), Text: c.text(), Sentences: c.sentences()}
	for _, r := range c.all() {
		d.Runs = append(d.Runs, guideRunView{
			ID: clean(r.ID), When: clean(r.When), Class: string(plain(r.Verdict)), Said: sentenceOf(r), Versions: r.versions(),
			Line: clean(r.Line), Report: r.Report, Seed: r.Seed,
		})
	}
	return d
}

// guideBars draws the figures of all locks on the same scales.
func guideBars(all []GuideSpeed) []sideBySideBars {
	var acquire, failover scale
	for _, s := range all {
		acquire.add(s.AcquireP50)
		failover.add(s.FailoverMax)
	}
	var bars []sideBySideBars
	for _, s := range all {
		if s.empty() {
			continue
		}
		b := sideBySideBars{Lock: clean(s.Lock), Note: clean(s.Note), Lost: lossBar(s.Loss)}
		switch {
		case s.NeedsNoFault:
			b.Lost = barView{Text: losesAnyhow}
		case b.Lost.Text != "":
			b.Lost.Note += "; in " + many(s.Stops, "stop")
		}
		b.Acquire = acquire.bar(s.AcquireP50, s.slowest()+", "+many(s.Acquires, "acquire"))
		note := "no lease"
		if s.Lease > 0 {
			note = "lease " + s.lease()
		}
		if s.Stuck > 0 {
			note += ", never for " + many(s.Stuck, "holder")
		}
		b.Failover = failover.bar(s.FailoverMax, note)
		bars = append(bars, b)
	}
	return bars
}
