package reports

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed hunt.html.tmpl
var huntText string

type huntPage struct {
	Title, Summary, Compared, Legend, Never, Began string
	Finds                                          []huntSection
	SetAside, Unsupported                          []string
	Phases, Moments                                []string
	Span                                           int // columns of each phase
	Rows                                           []huntRow
}

// huntSection is a find on the page.
type huntSection struct {
	Headline  string
	Facts     []string
	File, Run string
}

// HuntHTML writes one self-contained page.
func HuntHTML(w io.Writer, h Hunt) error {
	t, err := template.New("hunt").Parse(huntText)
	if err != nil {
		return fmt.Errorf("page of a hunt: %w", err)
	}
	rows, never := h.coverage()
	page := huntPage{
		Title: h.title(), Summary: h.summary(), Compared: h.compared(), Legend: h.legend(), Began: h.Began.UTC().Format(time.RFC1123),
		SetAside: h.setAside(), Unsupported: cleanAll(h.Unsupported), Phases: h.Phases, Rows: rows, Never: neverMet(never), Span: len(h.Moments),
	}
	for range h.Phases {
		page.Moments = append(page.Moments, h.Moments...)
	}
	for _, f := range h.Finds {
		section := huntSection{Headline: clean(f.Headline), Facts: f.facts(), File: printable(f.File)}
		if f.Run != "" {
			section.Run = printable(f.Run) + "/report.html"
		}
		page.Finds = append(page.Finds, section)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("page of a hunt: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
