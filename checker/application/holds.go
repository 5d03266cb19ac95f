package application

import (
	"math"
	"slices"

	"lockcheck/checker"
	"lockcheck/history"
)

// holder is who holds a key: a replica, or one of its threads as far as its lines name them.
type holder struct{ replica, client string }

func (h holder) String() string {
	if h.client == "" {
		return h.replica
	}
	return h.replica + "/" + h.client
}

// hold is the time in which a replica held a key by its own lines. A line was printed between From and Time, so the hold
// is certain from the Time of the line that begins it: the replica had been granted the key before it said so.
type hold struct {
	holder
	key   string
	token uint64
	// The hold was granted after since, and said so after from and by start. It certainly lasted until until.
	since, from, start, until int64
	// ended is the line that ended it: that it gives the key back, that it has, that it holds the key once more, or that its
	// program has ended or was started again. It is nil if there is none.
	ended *history.Event
	// over is when it was over at the latest, as far as its lines say; math.MaxInt64 if they do not.
	over int64
	// again: the same holder had the key by its lines. Whether it took the key twice or did not say that it had given
	// the key back, nobody knows, so the time between the two is in neither hold.
	again  bool
	killed bool // by a fault, in the hold
}

// effect is a piece of work that a replica did.
type effect struct {
	holder
	id         string
	from, time int64
	appended   bool  // in the resource; it has not printed it
	hold       *hold // in which it was done, as far as the lines say; nil if it was done in none
}

// holdID tells the open holds of a replica apart.
type holdID struct{ client, key string }

// replay goes through the lines of one replica.
type replay struct {
	*run
	*replica
	open, last map[holdID]*hold // that is open, and the one before
	latest     map[string]*hold // that each thread began
	started    int64            // the program, at the earliest
	deaths     []int64          // when a fault had killed it for certain, in order
}

func (r *run) collectHolds(p *replica) {
	y := replay{run: r, replica: p, open: make(map[holdID]*hold), last: make(map[holdID]*hold), latest: make(map[string]*hold)}
	for i := range r.faults {
		if f := &r.faults[i]; f.Applied && f.Does(history.Ends) && slices.Contains(f.Targets, p.name) {
			dead, _ := f.Certain()
			y.deaths = append(y.deaths, dead)
		}
	}
	slices.Sort(y.deaths)
	for _, e := range p.lines {
		y.line(e)
	}
	y.endAll(nil)
	spans := make([][2]int64, 0, len(p.holds))
	for _, h := range p.holds {
		spans = append(spans, [2]int64{h.from, h.over})
	}
	p.spans = newCovering(spans)
}

func (y *replay) line(e *history.Event) {
	for len(y.deaths) > 0 && y.deaths[0] <= e.From { // what comes now is of the next program, even if nothing says that it began
		y.deaths = y.deaths[1:]
		y.endAll(nil)
	}
	id := holdID{e.Client, e.Key}
	switch e.F {
	case history.Started, history.Ended:
		y.endAll(e)
		if e.F == history.Started {
			y.started = e.From
		}
	case history.Holding:
		y.begin(id, e)
	case history.Releasing, history.Released:
		if h := y.open[id]; h != nil {
			y.end(id, h, e)
		} else if h := y.last[id]; h != nil && h.ended != nil {
			h.over = max(h.over, e.Time) // it had taken the key twice, or only now has given it back
		}
	case history.Did:
		y.did(e)
	}
	if e.Error != "" { // lines are missing from here on
		y.endAll(e)
	}
}

func (y *replay) begin(id holdID, e *history.Event) {
	h := &hold{
		holder: holder{y.name, e.Client}, key: e.Key, token: e.Token,
		since: y.started, from: e.From, start: e.Time, until: e.Time, over: math.MaxInt64,
	}
	if before := y.open[id]; before != nil {
		h.again = y.ends() && (e.Token == 0 || before.token == 0 || e.Token == before.token)
		y.end(id, before, e)
	}
	if before := y.last[id]; before != nil {
		h.since = max(h.since, before.until)
	}
	y.open[id], y.latest[e.Client] = h, h
	y.run.holds, y.replica.holds, y.byKey[h.key] = append(y.run.holds, h), append(y.replica.holds, h), append(y.byKey[h.key], h)
}

// ends says whether the app file describes lines that end holds. Without them nothing is known of a hold but that it began.
func (r *run) ends() bool { return r.says(history.Releasing) || r.says(history.Released) }

// end ends a hold by a line, or by the end of the history. A line that says that the key will be given back is printed in
// the hold, so that the hold lasted until its From. All others come after the end of the hold, and show nothing.
func (y *replay) end(id holdID, h *hold, by *history.Event) {
	delete(y.open, id)
	y.last[id] = h
	h.ended = by
	if by == nil {
		y.killedIn(h, math.MaxInt64)
		return
	}
	switch h.over = by.Time; by.F {
	case history.Releasing:
		h.until = max(h.until, by.From)
	case history.Started:
		y.killedIn(h, by.Time)
	}
}

func (y *replay) endAll(by *history.Event) {
	for id, h := range y.open {
		y.end(id, h, by)
	}
}

// killedIn ends a hold by a fault that killed its replica by a time. That the replica had not said that it would give the key
// back shows nothing: its last lines may have died unread, and it may give keys back without a word when something fails.
// So the hold lasted only until the last line that was printed in it.
func (y *replay) killedIn(h *hold, by int64) {
	for i := range y.faults {
		f := &y.faults[i]
		if f.Applied && f.Does(history.Ends) && slices.Contains(f.Targets, h.replica) && f.Begin >= h.start && f.Begin <= by {
			dead, _ := f.Certain()
			h.killed, h.over = true, min(h.over, max(dead, f.Begin))
			return
		}
	}
}

// did takes a piece of work, which shows that its holder had not given back the key that it said it held. Unless the line
// names another key, that is only the last one of its holder, which may have given those before back without a word.
func (y *replay) did(e *history.Event) {
	d := &effect{holder: holder{y.name, e.Client}, id: e.ID, from: e.From, time: e.Time}
	y.effects = append(y.effects, d)
	if !y.ends() {
		return
	}
	key := e.Key
	if last := y.latest[e.Client]; key == "" && last != nil {
		key = last.key
	}
	if d.hold = y.open[holdID{e.Client, key}]; d.hold != nil {
		d.hold.until = max(d.hold.until, e.From)
	}
}

// openAt says whether a hold was still open when a fault took effect, by the lines of its replica.
func (h *hold) openAt(f *fault) bool {
	in, _ := f.Certain()
	return h.start <= max(in, f.Begin) && h.over >= f.Begin && (h.ended == nil || h.ended.From >= f.Begin)
}

// metBy says whether a fault found its replica in a hold, as far as anybody could know then: the line that ended the hold was
// read only after the fault had taken effect. It may have been printed just before, because a pause stops who reads it as
// well. Where nothing else was printed in between, as by a leader that learns after the pause that it was deposed, its
// From never shows more.
func (h *hold) metBy(f *fault) bool {
	in, _ := f.Certain()
	in = max(in, f.Begin)
	return h.start <= in && (h.ended == nil || h.ended.Time > in)
}

// described are the holds for pictures.
func (r *run) described() []checker.Hold {
	all := make([]checker.Hold, 0, len(r.holds))
	for _, h := range r.holds {
		all = append(all, checker.Hold{Key: h.key, Worker: h.replica, Token: h.token, Start: h.start, End: h.until, Deadline: h.until})
	}
	return all
}
