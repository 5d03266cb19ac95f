package runs

import (
	"cmp"
	"io"
	"math"
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/reports"
)

// excerpt reads a history again and keeps the events that its page can show.
func excerpt(file io.ReadSeeker, h *history.History, r checker.Results) error {
	x := excerpts{shown: reports.Shown(h, r), open: make(map[spanID]history.Event)}
	if len(x.shown) == 0 {
		return nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	reader, err := history.NewReader(file)
	if err != nil {
		return err
	}
	if err := reader.Each(func(e *history.Event) error {
		x.add(e)
		return nil
	}); err != nil {
		return err
	}
	h.Events = x.end()
	return nil
}

// excerpts gathers the events within some stretches of time, and both ends of calls and of claims at the
// service that reach into these stretches.
type excerpts struct {
	shown []reports.Stretch
	open  map[spanID]history.Event // calls and claims that began and have not ended
	kept  []history.Event
}

// spanID identifies a call or a claim.
type spanID struct {
	process string
	op      int64
	key     string
	token   uint64
}

func (x *excerpts) add(e *history.Event) {
	id := spanID{process: e.Process, op: e.Op}
	begins, ends := e.Type == history.Invoke, e.Type != history.Invoke && e.Op != 0
	switch {
	case e.Process == history.Service:
		id = spanID{process: e.Process, key: e.Key, token: e.Token}
		begins, ends = e.F == history.Claimed, e.F == history.Dropped
	case e.Process == history.Resource: // the resource's events name the calls of workers
		begins, ends = false, false
	}
	begun, known := x.open[id]
	switch {
	case begins && !known:
		x.open[id] = *e
	case ends && known:
		delete(x.open, id)
		if x.meets(begun.Time, e.Time) {
			x.kept = append(x.kept, begun, *e)
		}
	case !begins && (always(e) || x.meets(e.Time, e.Time)):
		x.kept = append(x.kept, *e)
	}
}

// always says whether an event is kept whatever its time. Such events are few.
func always(e *history.Event) bool {
	return e.Process == history.Harness || e.Process == history.Nemesis || e.F == history.Unobserved
}

func (x *excerpts) meets(from, to int64) bool {
	return slices.ContainsFunc(x.shown, func(s reports.Stretch) bool { return from <= s.To && to >= s.From })
}

// end returns the kept events, in their order.
func (x *excerpts) end() []history.Event {
	for _, e := range x.open {
		if x.meets(e.Time, math.MaxInt64) {
			x.kept = append(x.kept, e)
		}
	}
	slices.SortFunc(x.kept, func(a, b history.Event) int { return cmp.Compare(a.Index, b.Index) })
	return x.kept
}
