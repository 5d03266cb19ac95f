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
	runs, documents, ok := h.judged(w, query.Get("a"), query.Get("b"))
	if !ok {
		return
	}
	h.pages.write(w, http.StatusOK, "compare", comparePage{
		First: h.newRow(runs[0], false), Second: h.newRow(runs[1], false),
		SideBySide: reports.NewSideBySide(documents[0], documents[1]), Swapped: addressOfTwo(runs[1].Folder, runs[0].Folder),
	})
}

func (h *handler) compareChosen(w http.ResponseWriter, r *http.Request, folders []string) {
	if len(folders) != 2 {
		h.tell(w, http.StatusBadRequest, fmt.Sprintf("Choose two runs to compare, not %d.", len(folders)))
		return
	}
	runs, _, ok := h.judged(w, folders...)
	if !ok {
		return
	}
	slices.SortFunc(runs, newestFirst)
	http.Redirect(w, r, addressOfTwo(runs[1].Folder, runs[0].Folder), http.StatusSeeOther)
}

// judged reads the results of runs. If any of them has none, the answer says so.
func (h *handler) judged(w http.ResponseWriter, folders ...string) (all []run, documents []reports.Document, ok bool) {
	for _, folder := range folders {
		if !h.store.isRun(folder) {
			h.tell(w, http.StatusNotFound, fmt.Sprintf("There is no run %q in the store.", folder))
			return nil, nil, false
		}
		document, err := h.store.document(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			h.tell(w, http.StatusNotFound, fmt.Sprintf("The run %s has no %s yet.", folder, runs.ResultsFile))
			return nil, nil, false
		case err != nil:
			h.tell(w, http.StatusInternalServerError, fmt.Sprintf("The results of %s cannot be read: %v.", folder, err))
			return nil, nil, false
		}
		all, documents = append(all, run{Folder: folder, Line: reports.NewLine(document)}), append(documents, document)
	}
	return all, documents, true
}

func addressOfTwo(first, second string) string {
	return "/compare?" + url.Values{"a": {first}, "b": {second}}.Encode()
}
