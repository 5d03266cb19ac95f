package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"lockcheck/reports"
)

//go:embed pages
var content embed.FS

// handler answers requests for the pages of a store.
type handler struct {
	store *Store
	pages *pages
}

// pages is what all pages are made of.
type pages struct {
	templates *template.Template
	sheet     []byte
}

func newPages() (*pages, error) {
	templates, err := template.New("").Funcs(template.FuncMap{
		"clean": reports.Clean,
		"size":  sizeOf,
	}).ParseFS(content, "pages/*.html.tmpl")
	if err != nil {
		return nil, err
	}
	shared, err := reports.Style()
	if err != nil {
		return nil, err
	}
	own, err := content.ReadFile("pages/style.css")
	if err != nil {
		return nil, err
	}
	return &pages{templates: templates, sheet: append([]byte(shared), own...)}, nil
}

// sizeOf is a number of bytes for people.
func sizeOf(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	amount, unit := float64(n), ' '
	for _, next := range "kMGT" {
		if amount < 999.5 {
			break
		}
		amount, unit = amount/1000, next
	}
	return fmt.Sprintf("%.3g %cB", amount, unit)
}

// write sends a page, whole or not at all.
func (p *pages) write(w http.ResponseWriter, status int, name string, data any) {
	var page bytes.Buffer
	if err := p.templates.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, "The page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // an error means that nobody reads it any more
}

func (h *handler) style(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(h.pages.sheet)
}

// tell sends a page with nothing but a message.
func (h *handler) tell(w http.ResponseWriter, status int, message string) {
	h.pages.write(w, status, "message", message)
}

func (h *handler) missing(w http.ResponseWriter) {
	h.tell(w, http.StatusNotFound, "There is no such file in a run of this store.")
}
