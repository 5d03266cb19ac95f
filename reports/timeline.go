package reports

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/history"
)

// picture is a timeline ready to be drawn by the template. Horizontal places
// are percentages of the plot and vertical ones pixels, so that the page can be
// any width without bending the time axis or scaling the text.
type picture struct {
	ID, Title, Desc string
	Height          int
	Axis            int     // y of the time axis
	From, Seconds   float64 // of the axis, in seconds since the beginning
	Lanes           []lane
	Shapes          []shape
	Marks           []mark
	Labels          []label
	Ticks           []tick
	Notes           []string // what was left out or merged
}

type lane struct {
	Y, H, Text int
	Label      string
	Odd        bool
}

// shape is a rectangle.
type shape struct {
	Class, X, W, Title string
	Y, H               int
}

// mark is a sign at one moment, drawn from a definition in the page.
type mark struct{ Sign, X, Y, Title string }

type label struct {
	Class, X, Text, Anchor string
	Y                      int
}

type tick struct{ X, Text, Anchor string }

// Limits that keep a page small however long the run was.
const (
	maxLanes       = 40
	maxCloseLanes  = 12
	maxBlocks      = 1500 // holds drawn in one picture, after merging
	maxAlone       = 300  // holds of those that are never merged
	maxMarks       = 300
	maxWaits       = 300
	maxFaultShapes = 300
)

// canvas places things in a picture.
type canvas struct {
	picture
	rec      *record
	from, to int64
	rows     map[string]row // worker to its lane
	key      string         // the only one drawn; empty for all
}

// row is the vertical layout of one lane.
type row struct {
	top, height, bar, thick int
	above, below            *shelf
}

// shelf keeps labels on one line from running into each other.
type shelf struct {
	y     int
	taken [][2]float64
}

// runeShare is the width of a character in percent of the plot at the narrowest
// width that the page is meant for.
const runeShare = 1.15

// put returns the place of a text near x, or false if there is no room.
func (s *shelf) put(x float64, text string) (anchor string, ok bool) {
	w := float64(utf8.RuneCountInString(text))*runeShare + 1
	anchor, from := "start", x
	if x+w > 100 {
		anchor, from = "end", x-w
	}
	for _, t := range s.taken {
		if from < t[1] && from+w > t[0] {
			return "", false
		}
	}
	s.taken = append(s.taken, [2]float64{from, from + w})
	return anchor, true
}

func newCanvas(rec *record, from, to int64) *canvas {
	c := &canvas{rec: rec, from: from, to: to, rows: map[string]row{}}
	c.From, c.Seconds = float64(from-rec.begin)/1e9, float64(to-from)/1e9
	return c
}

// pos is a time as a percentage of the plot, kept inside it.
func (c *canvas) pos(t int64) float64 {
	return min(100, max(0, 100*float64(t-c.from)/float64(c.to-c.from)))
}

func percent(f float64) string { return trimmed(f, 3) }

func (c *canvas) shows(from, to int64) bool { return from <= c.to && to >= c.from }

// rect draws a stretch of time.
func (c *canvas) rect(class string, from, to int64, y, h int, title string) {
	x := c.pos(from)
	c.Shapes = append(c.Shapes, shape{class, percent(x), percent(c.pos(to) - x), title, y, h})
}

// note writes a label on a shelf where there is room.
func (c *canvas) note(s *shelf, class string, t int64, text string) {
	if s == nil {
		return
	}
	x := c.pos(t)
	if anchor, ok := s.put(x, text); ok {
		c.Labels = append(c.Labels, label{class, percent(x), text, anchor, s.y})
	}
}

// sign draws a mark at a moment of a worker.
func (c *canvas) sign(sign, worker string, t int64, title string) {
	r, ok := c.rows[worker]
	if !ok || !c.shows(t, t) || len(c.Marks) >= maxMarks {
		return
	}
	c.Marks = append(c.Marks, mark{sign, percent(c.pos(t)), strconv.Itoa(r.bar + r.thick/2), title})
}

// closeUp draws a scene with every detail.
func closeUp(rec *record, s scene) picture {
	c := newCanvas(rec, s.from, s.to)
	c.ID, c.key = "closeup", s.key
	top := 26
	for _, w := range c.actors(s) {
		c.lane(w, row{top: top, height: 66, bar: top + 21, thick: 20,
			above: &shelf{y: top + 15}, below: &shelf{y: top + 58}})
		top += 66
	}
	c.harm(true)
	c.overlaps(&shelf{y: 16})
	c.waiting()
	list := c.blocks()
	// The first to be drawn gets the room for its label.
	slices.SortStableFunc(list, func(a, b block) int { return one(s.cast[b.Grant]) - one(s.cast[a.Grant]) })
	for _, b := range list {
		c.hold(b)
	}
	c.signs(s)
	top = c.faultRows(top)
	c.axis(top)
	c.describe("Close-up of the run from " + at(s.from, rec.begin) + " to " + at(s.to, rec.begin))
	return c.picture
}

// actors is the workers with anything to show in a scene; its cast always is.
func (c *canvas) actors(s scene) []string {
	cast, present := map[string]bool{}, map[string]bool{}
	for _, h := range c.rec.holds {
		if s.cast[h.Grant] {
			cast[h.Worker] = true
		}
		if c.drawn(h.Key) && c.shows(h.Invoked, h.End) {
			present[h.Worker] = true
		}
	}
	for _, w := range c.rec.waits {
		if c.drawn(w.key) && c.shows(w.from, w.to) {
			present[w.worker] = true
		}
	}
	room := maxCloseLanes - len(cast)
	var out []string
	left := 0
	for _, w := range c.rec.workers {
		switch {
		case cast[w]:
			out = append(out, w)
		case present[w] && room > 0:
			room--
			out = append(out, w)
		case present[w]:
			left++
		}
	}
	if left > 0 {
		c.Notes = append(c.Notes, many(int64(left), "more worker")+" that took no part in this left out.")
	}
	return out
}

func (c *canvas) drawn(key string) bool { return c.key == "" || c.key == key }

func (c *canvas) lane(worker string, r row) {
	c.rows[worker] = r
	c.Lanes = append(c.Lanes, lane{r.top, r.height, r.bar + r.thick/2 + 4, shorten(clean(worker), 10), len(c.Lanes)%2 == 1})
}

// harm shades the lanes of workers that a fault hit while it was in force.
func (c *canvas) harm(labelled bool) {
	n := 0
	for _, f := range c.rec.faults {
		if !f.Applied || !c.shows(f.Begin, f.End) {
			continue
		}
		for _, t := range f.Targets {
			r, ok := c.rows[t]
			if !ok {
				continue
			}
			from, to := c.rec.force(f)
			if n++; n > maxFaultShapes {
				return
			}
			class := "harm"
			if slices.Contains(c.rec.dead(f), t) {
				class, to = "harm dead", c.rec.end
			}
			c.rect(class, from, to, r.top+1, r.height-2, clean(f.Kind)+" of "+clean(t)+" ("+clean(f.ID)+")")
			if labelled {
				c.note(r.below, "l-harm", max(from, c.from), harmWord(f))
			}
		}
	}
}

func harmWord(f checker.FaultCoverage) string {
	switch f.Kind {
	case history.Pause:
		return "paused"
	case history.Freeze:
		return "frozen"
	case history.Partition:
		return shorten("cut from "+strings.Join(cleanAll(f.Peers), ", "), 40)
	case history.Kill:
		return "killed"
	}
	return shorten(clean(f.Kind), 20)
}

// overlaps tints the time in which two workers held the same key, over all the
// lanes between theirs.
func (c *canvas) overlaps(s *shelf) {
	for _, i := range c.rec.overlaps {
		if !c.drawn(i.Key) || !c.shows(i.From, i.To) || i.To == 0 {
			continue
		}
		top, bottom := math.MaxInt, 0
		for _, w := range i.Workers {
			if r, ok := c.rows[w]; ok {
				top, bottom = min(top, r.top), max(bottom, r.top+r.height)
			}
		}
		if bottom == 0 {
			continue
		}
		d := length(time.Duration(i.To - i.From))
		class := cmp.Or(clean(i.Class), "overlap")
		c.rect("overlap", i.From, i.To, top, bottom-top, strings.Join(cleanAll(i.Workers), " and ")+" both hold the lock for "+d+": "+class)
		c.note(s, "l-overlap", max(i.From, c.from), "both hold it: "+d)
	}
}

// waiting draws acquires: thin, because nobody is at risk while they last.
func (c *canvas) waiting() {
	n := 0
	thin := func(class, worker, key string, from, to int64, title string) {
		r, ok := c.rows[worker]
		if !ok || !c.drawn(key) || !c.shows(from, to) || n >= maxWaits {
			return
		}
		n++
		c.rect("wait "+class, from, to, r.bar+r.thick/2-1, 2, title)
	}
	for _, w := range c.rec.waits {
		class, what := "fail", " asks for the lock and is refused"
		if w.outcome == history.Info {
			class, what = "info", " asks for the lock; the outcome is unknown"
		}
		thin(class, w.worker, w.key, w.from, w.to, clean(w.worker)+what)
	}
	for _, h := range c.rec.holds {
		thin("ok", h.Worker, h.Key, h.Invoked, h.Start, clean(h.Worker)+" waits for the lock")
	}
	if n >= maxWaits {
		c.Notes = append(c.Notes, "Only the first "+strconv.Itoa(maxWaits)+" waits are drawn.")
	}
}

// block is one hold, or several of one worker that are too close together to be
// told apart.
type block struct {
	checker.Hold
	n    int
	to   int64
	bold bool // never merged
}

// blocks merges holds until there are few enough. Holds of incidents and those
// that outlived their promise stay on their own: they are what one looks for.
func (c *canvas) blocks() []block {
	var alone []block
	short := map[string][]checker.Hold{}
	total := 0
	for _, h := range c.rec.holds {
		_, ok := c.rows[h.Worker]
		if !ok || !c.drawn(h.Key) || !c.shows(h.Start, h.End) {
			continue
		}
		if (c.rec.involved[h.Grant] || outlived(h)) && len(alone) < maxAlone {
			alone = append(alone, block{h, 1, h.End, true})
			continue
		}
		short[h.Worker] = append(short[h.Worker], h)
		total++
	}
	gap := int64(0)
	merged := mergeAll(short, c.rec.workers, gap)
	for gap = (c.to - c.from) / 4000; len(merged) > maxBlocks; gap = 2*gap + 1 {
		merged = mergeAll(short, c.rec.workers, gap)
	}
	if len(merged) < total {
		c.Notes = append(c.Notes, many(int64(total), "hold")+" drawn as "+many(int64(len(merged)), "block")+
			": neighbours too close together to be told apart at this scale are merged. "+
			"Holds that outlived their promise or belong to a listed incident are drawn one by one, up to "+strconv.Itoa(maxAlone)+" of them.")
	}
	return append(merged, alone...)
}

// mergeAll merges what is less than gap apart, lane by lane; with gap 0 nothing is.
func mergeAll(holds map[string][]checker.Hold, workers []string, gap int64) []block {
	var out []block
	for _, w := range workers {
		first := len(out)
		for _, h := range holds[w] {
			if last := len(out) - 1; gap > 0 && last >= first && h.Start-out[last].to < gap {
				out[last].n++
				out[last].to = max(out[last].to, h.End)
				continue
			}
			out = append(out, block{h, 1, h.End, false})
		}
	}
	return out
}

// hold draws a block: solid as far as the promise goes, hatched beyond.
func (c *canvas) hold(b block) {
	r := c.rows[b.Worker]
	if b.n > 1 {
		c.rect("hold many", b.Start, b.to, r.bar, r.thick, many(int64(b.n), "hold")+" of "+clean(b.Worker))
		return
	}
	promised := min(b.End, max(b.Deadline, b.Start))
	title := clean(b.Worker) + " holds the lock from " + at(b.Start, c.rec.begin) + " to " + at(b.End, c.rec.begin)
	if outlived(b.Hold) {
		title += ", promised until " + at(b.Deadline, c.rec.begin)
	}
	c.rect("hold", b.Start, promised, r.bar, r.thick, title)
	if promised < b.End {
		c.rect("beyond", promised, b.End, r.bar, r.thick, title)
	}
	c.nameHold(b, r, promised)
}

func (c *canvas) nameHold(b block, r row, promised int64) {
	if r.above == nil {
		return
	}
	name := shorten(clean(b.Grant), 16)
	if b.Token != 0 {
		name = "token " + strconv.FormatUint(b.Token, 10)
	}
	c.note(r.above, "l-hold", max(b.Start, c.from), name)
	if promised < b.End && c.shows(promised, b.End) {
		c.note(r.above, "l-beyond", max(promised, c.from), "beyond its promise")
	}
}

// signs marks what happened to the data in a scene: first what went wrong, so
// that its labels find room.
func (c *canvas) signs(s scene) {
	type named struct {
		access
		sign, text string
		order      int
	}
	var list []named
	for _, a := range c.rec.accesses {
		if !c.drawn(a.key) || !c.shows(a.time, a.time) {
			continue
		}
		sign, text, order := c.rec.signOf(a)
		if order < 3 || s.cast[a.grant] {
			list = append(list, named{a, sign, text, order})
		}
	}
	slices.SortStableFunc(list, func(a, b named) int { return a.order - b.order })
	for _, a := range list {
		r, ok := c.rows[a.worker]
		if !ok {
			continue
		}
		c.sign(a.sign, a.worker, a.time, at(a.time, c.rec.begin)+": "+a.text)
		if a.order < 3 {
			c.note(r.below, "l-"+a.sign, a.time, a.text)
		}
	}
	if left := len(list) - maxMarks; left > 0 {
		c.Notes = append(c.Notes, many(int64(left), "more access")+" left out.")
	}
	// What is drawn last lies on top.
	slices.Reverse(c.Marks)
}

// signOf is the sign of an access, its meaning, and how much it matters.
func (rec *record) signOf(a access) (sign, text string, order int) {
	element := strconv.FormatInt(a.element, 10)
	switch {
	case a.refused && a.write:
		return "refused", "write refused", 2
	case a.refused:
		return "refused", "read refused", 2
	case a.write && rec.lost[a.element]:
		return "lost", element + " lost", 0
	case a.write && rec.stale[a.element]:
		return "stale", element + " stale", 1
	case a.write:
		return "write", "write" + elementOf(a), 3
	}
	return "read", "read", 4
}

// faultRows draws one row for each fault in the window, sharing rows where
// their labels leave room, and returns the y below them.
func (c *canvas) faultRows(top int) int {
	const height = 32
	var rows []*shelf
	left := 0
	for _, f := range c.rec.faults {
		if !f.Applied || !c.shows(f.Begin, f.End) {
			continue
		}
		text := faultName(f)
		if !f.Proven {
			text += " (unproven)"
		}
		i, anchor := place(&rows, top, height, c.pos(f.Begin), c.pos(f.End), text)
		if i < 0 {
			left++
			continue
		}
		c.rect(faultClass(f), f.Begin, f.End, top+i*height+18, 8, text+" ("+clean(f.ID)+")")
		c.Labels = append(c.Labels, label{"l-fault", percent(c.labelX(f, anchor)), text, anchor, rows[i].y})
	}
	if left > 0 {
		c.Notes = append(c.Notes, many(int64(left), "more fault")+" at this time left out of the picture.")
	}
	for i := range rows {
		name := ""
		if i == 0 {
			name = "faults"
		}
		c.Lanes = append(c.Lanes, lane{top + i*height, height, top + i*height + 20, name, len(c.Lanes)%2 == 1})
	}
	return top + len(rows)*height
}

func (c *canvas) labelX(f checker.FaultCoverage, anchor string) float64 {
	if anchor == "end" {
		return c.pos(f.End)
	}
	return c.pos(f.Begin)
}

// place finds a row in which bar and label are free, adding one if need be; the
// row is negative when there are too many.
func place(rows *[]*shelf, top, height int, from, to float64, text string) (int, string) {
	const most = 6
	w := float64(utf8.RuneCountInString(text))*runeShare + 1
	anchor := "start"
	end := max(to, from+w)
	if from+w > 100 {
		anchor, from, end = "end", min(from, to-w), to
	}
	for i, s := range *rows {
		if !slices.ContainsFunc(s.taken, func(t [2]float64) bool { return from < t[1] && end > t[0] }) {
			s.taken = append(s.taken, [2]float64{from, end})
			return i, anchor
		}
	}
	if len(*rows) == most {
		return -1, ""
	}
	*rows = append(*rows, &shelf{y: top + len(*rows)*height + 13, taken: [][2]float64{{from, end}}})
	return len(*rows) - 1, anchor
}

func faultClass(f checker.FaultCoverage) string {
	if !f.Proven {
		return "fault unproven"
	}
	return "fault"
}

// overview draws the whole run.
func overview(rec *record, s scene, hasScene bool) picture {
	c := newCanvas(rec, rec.begin, rec.end)
	c.ID = "overview"
	top := 22
	for n, w := range rec.workers {
		if n == maxLanes {
			c.Notes = append(c.Notes, "Only the first "+strconv.Itoa(maxLanes)+" of "+strconv.Itoa(len(rec.workers))+" workers are drawn.")
			break
		}
		c.lane(w, row{top: top, height: 26, bar: top + 7, thick: 12})
		top += 26
	}
	if hasScene {
		c.rect("window", s.from, s.to, 22, top-22, "the part shown above")
	}
	c.harm(false)
	c.overlaps(nil)
	for _, b := range c.blocks() {
		c.hold(b)
	}
	c.badSigns()
	if len(rec.unlisted) > 0 {
		c.Notes = append(c.Notes, "Not everything that went wrong is marked, only the first incidents of each property ("+strings.Join(rec.unlisted, "; ")+"): an unmarked stretch need not be a sound one.")
	}
	top = c.faultKinds(top)
	c.phases(top)
	c.axis(top)
	c.describe("The whole run of " + length(time.Duration(rec.end-rec.begin)))
	return c.picture
}

// badSigns marks what went wrong with the data, and what the guard refused.
func (c *canvas) badSigns() {
	left := 0
	for _, a := range c.rec.accesses {
		sign, text, order := c.rec.signOf(a)
		if order > 2 {
			continue
		}
		if len(c.Marks) >= maxMarks {
			left++
			continue
		}
		c.sign(sign, a.worker, a.time, at(a.time, c.rec.begin)+": "+clean(a.worker)+", "+text)
	}
	if left > 0 {
		c.Notes = append(c.Notes, many(int64(left), "more mark")+" left out.")
	}
}

// faultKinds draws a row for each kind of fault.
func (c *canvas) faultKinds(top int) int {
	const height, most = 22, 12
	rows := map[string]int{}
	drawn, left := 0, 0
	for _, f := range c.rec.faults {
		if !f.Applied {
			continue
		}
		i, ok := rows[f.Kind]
		if !ok && len(rows) < most {
			i, ok = len(rows), true
			rows[f.Kind] = i
			c.Lanes = append(c.Lanes, lane{top + i*height, height, top + i*height + 15, shorten(clean(f.Kind), 10), len(c.Lanes)%2 == 1})
		}
		if !ok || drawn == maxFaultShapes {
			left++
			continue
		}
		drawn++
		c.rect(faultClass(f), f.Begin, f.End, top+i*height+6, 10, faultName(f)+" ("+clean(f.ID)+")")
	}
	if left > 0 {
		c.Notes = append(c.Notes, many(int64(left), "more fault")+" left out.")
	}
	return top + len(rows)*height
}

// phases marks where the run changed from one phase to the next.
func (c *canvas) phases(bottom int) {
	names := &shelf{y: 15}
	for _, e := range c.rec.phases {
		text := ""
		switch e.Note {
		case history.PhaseReady:
			text = "workers start"
		case history.PhaseQuiet:
			text = "no more faults"
		case history.PhaseFinal:
			text = "final reads"
		case history.PhaseBroken:
			text = "broken"
		default:
			continue
		}
		c.rect("phase", e.Time, e.Time, 20, bottom-20, text+" at "+at(e.Time, c.rec.begin))
		c.note(names, "l-phase", e.Time, text)
	}
}

// axis ends the picture with ticks at round seconds.
func (c *canvas) axis(top int) {
	c.Axis, c.Height = top, top+30
	step := tickStep(c.Seconds)
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	last := c.From + c.Seconds
	for n := int64(math.Ceil(c.From/step - 1e-9)); float64(n)*step <= last+step*1e-6; n++ {
		x := 100 * (float64(n)*step - c.From) / c.Seconds
		anchor := "middle"
		if x < 3 {
			anchor = "start"
		} else if x > 97 {
			anchor = "end"
		}
		c.Ticks = append(c.Ticks, tick{percent(x), strconv.FormatFloat(float64(n)*step, 'f', decimals, 64) + " s", anchor})
	}
}

// tickStep is a round step of which between 4 and 10 fit.
func tickStep(seconds float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(seconds/4)))
	for _, f := range []float64{5, 2} {
		if seconds/(step*f) >= 4 {
			return step * f
		}
	}
	return step
}

func (c *canvas) describe(title string) {
	c.Title = title
	c.Desc = "One lane for each of " + many(int64(len(c.rows)), "worker") + ", time from left to right. " +
		strconv.Itoa(len(c.rec.overlaps)) + " listed overlaps, " + strconv.Itoa(len(c.rec.lost)) + " listed lost updates and " +
		strconv.Itoa(len(c.rec.stale)) + " listed stale writes in the run; the tables on this page say the same in words."
}
