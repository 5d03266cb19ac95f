package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// comparePage is the content of the page with two runs.
type comparePage struct {
	First, Second row
	SideBySide    reports.SideBySide
	Swapped       string // address of the same with the second run first
}

// compare shows two runs side by side. A list does not know in which order its runs
// are meant: it names both as "run", and the older becomes the first.
func (h *handler) compare(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if chosen := query["run"]; len(chosen) > 0 {
		h.compareChosen(w, r, chosen)
		return
	}
	a, b := query.Get("a"), query.Get("b")
	first, err := h.judged(a)
	if err != nil {
		h.refuse(w, a, err)
		return
	}
	second, err := h.judged(b)
	if err != nil {
		h.refuse(w, b, err)
		return
	}
	h.pages.write(w, http.StatusOK, "compare", comparePage{
		First:      h.newRow(run{Folder: a, Line: reports.NewLine(first)}, false),
		Second:     h.newRow(run{Folder: b, Line: reports.NewLine(second)}, false),
		SideBySide: reports.NewSideBySide(first, second), Swapped: addressOfTwo(b, a),
	})
}

func (h *handler) compareChosen(w http.ResponseWriter, r *http.Request, folders []string) {
	if len(folders) != 2 {
		h.tell(w, http.StatusBadRequest, fmt.Sprintf("Choose two runs to compare, not %d.", len(folders)))
		return
	}
	var runs []run
	for _, folder := range folders {
		document, err := h.judged(folder)
		if err != nil {
			h.refuse(w, folder, err)
			return
		}
		runs = append(runs, run{Folder: folder, Line: reports.NewLine(document)})
	}
	slices.SortFunc(runs, newestFirst)
	http.Redirect(w, r, addressOfTwo(runs[1].Folder, runs[0].Folder), http.StatusSeeOther)
}

// judged reads the results of a run.
func (h *handler) judged(folder string) (reports.Document, error) {
	if !h.store.isRun(folder) {
		return reports.Document{}, errNoRun
	}
	return h.store.document(folder)
}

// errNoRun is the error of a path at which there is no run.
var errNoRun = errors.New("there is no such run in the store")

func (h *handler) refuse(w http.ResponseWriter, folder string, err error) {
	switch {
	case errors.Is(err, errNoRun):
		h.tell(w, http.StatusNotFound, fmt.Sprintf("There is no run %q in the store.", folder))
	case errors.Is(err, fs.ErrNotExist):
		h.tell(w, http.StatusNotFound, fmt.Sprintf("The run %s has no %s yet.", folder, runs.ResultsFile))
	default:
		h.tell(w, http.StatusInternalServerError, fmt.Sprintf("The results of %s cannot be read: %v.", folder, err))
	}
}

func addressOfTwo(first, second string) string {
	return "/compare?" + url.Values{"a": {first}, "b": {second}}.Encode()
}
