package reports

import "strconv"

// picture is a timeline ready to be drawn. Horizontal positions are percentages of the plot and vertical ones
// pixels. So the page can have any width without distorting the time axis or scaling the text.
type picture struct {
	ID, Title, Desc string
	Height          int
	Top, Axis       int     // y of the top of the plot, and of the time axis
	From, Seconds   float64 // of the axis, in seconds since the beginning
	Strips          []strip
	Tints           []shape // drawn below everything else as one layer, so that overlapping tints are not darker
	Shapes          []shape
	Marks           []mark
	Labels          []label
	Ticks           []tick
	Levels          []level
	Paths           []stroke
	Arrows          []arrow
	Attempt         string   // explains the name of a hold that is named after its attempt
	Noun            string   // what rows stand for; "" for workers
	Notes           []string // what was left out or merged
}

type strip struct {
	Y, H, Text int
	Label      string
	Odd        bool
}

type shape struct {
	Class, X, W, Title string
	Y, H               int
	To                 string // address on the page; "" for none
	// Parts are the parts of a shape that stands for several. For each part it has the time since the end of
	// the previous part and the part's length, in µs, base 36. The first part begins at Begin, in µs. Each is
	// the text for one part.
	Begin       int64
	Parts, Each string
}

// mark is a symbol at one moment. The page defines the symbol.
type mark struct {
	Symbol, X, Y, Title string
	To                  string // address on the page; "" for none
}

type label struct {
	Class, X, Text, Anchor string
	Y                      int
}

type tick struct{ X, Text, Anchor string }

// level is a line of equal value, named next to the plot.
type level struct {
	Y, Text int
	Label   string
}

// stroke is a path whose x is in thousandths of the plot.
type stroke struct{ Class, D string }

// Limits that keep a page small, however long the run was.
const (
	maxStrips      = 40
	maxCloseStrips = 12
	maxBlocks      = 1500    // holds drawn in one picture, after merging
	maxParts       = 100_000 // holds that a zoom can draw separately
	maxAlone       = 300     // holds that are never merged
	maxMarks       = 300
	maxWaits       = 300
	maxFaultShapes = 300
)

type canvas struct {
	picture
	rec      *record
	from, to int64
	rows     map[string]row // worker → row
	key      string         // the only key that is drawn; "" for all keys
	zoomed   bool           // the page can zoom into the picture
	parts    int            // holds and claims in shapes that stand for several
}

type row struct {
	top, height, bar, thick int
	lease, claim            int // thin bars below
	above, below, under     *shelf
}

func newCanvas(rec *record, from, to int64) *canvas {
	c := &canvas{rec: rec, from: from, to: to, rows: map[string]row{}}
	c.Top = 20
	c.From, c.Seconds = float64(from-rec.begin)/1e9, float64(to-from)/1e9
	return c
}

// pos is a time as a percentage of the plot, limited to 0–100.
func (c *canvas) pos(t int64) float64 {
	return min(100, max(0, 100*float64(t-c.from)/float64(c.to-c.from)))
}

// percent is exact enough for a zoom into a thousandth of the picture.
func percent(f float64) string { return Trimmed(f, 6) }

func (c *canvas) shows(from, to int64) bool { return from <= c.to && to >= c.from }

func (c *canvas) drawn(key string) bool { return c.key == "" || c.key == key }

func (c *canvas) strip(worker string, r row) {
	c.rows[worker] = r
	c.Strips = append(c.Strips, strip{r.top, r.height, r.bar + r.thick/2 + 4, shorten(clean(worker), 10), len(c.Strips)%2 == 1})
}

// stack adds several rows with one name.
func (c *canvas) stack(name string, rows, top, height int) {
	for i := range rows {
		c.Strips = append(c.Strips, strip{top + i*height, height, top + i*height + 20, name, len(c.Strips)%2 == 1})
		name = ""
	}
}

// rect draws a span of time.
func (c *canvas) rect(class string, from, to int64, y, h int, title string) {
	c.Shapes = append(c.Shapes, c.stretch(class, from, to, y, h, title))
}

func (c *canvas) stretch(class string, from, to int64, y, h int, title string) shape {
	x := c.pos(from)
	return shape{Class: class, X: percent(x), W: percent(c.pos(to) - x), Title: title, Y: y, H: h}
}

// note writes a label after a moment, if there is space on its shelf.
func (c *canvas) note(s *shelf, class string, t int64, text string) {
	c.label(s, class, t, text, false)
}

// label writes a label after a moment, or before it.
func (c *canvas) label(s *shelf, class string, t int64, text string, before bool) {
	if s == nil {
		return
	}
	if anchor, ok := s.reserveLabel(c.pos(t), text, before); ok {
		c.write(s, class, t, text, anchor)
	}
}

func (c *canvas) write(s *shelf, class string, t int64, text, anchor string) {
	c.Labels = append(c.Labels, label{class, percent(c.pos(t)), text, anchor, s.y})
}

// symbol draws a mark at a moment of a worker.
func (c *canvas) symbol(symbol string, a access, title string) {
	t := a.time
	r, ok := c.rows[a.worker]
	if !ok || !c.shows(t, t) || len(c.Marks) >= maxMarks {
		return
	}
	c.Marks = append(c.Marks, mark{symbol, percent(c.pos(t)), strconv.Itoa(r.bar + r.thick/2), title, c.rec.linkOf(symbol, a)})
}

// leftOut notes how many of something are not drawn.
func (c *canvas) leftOut(n int, noun, rest string) {
	if n > 0 {
		c.Notes = append(c.Notes, Many(n, noun)+rest)
	}
}

func (c *canvas) describe(title string) {
	c.Title = title
	c.Desc = "One row for each of " + Many(int64(len(c.rows)), "worker") + ", time from left to right. " +
		strconv.Itoa(len(c.rec.overlaps)) + " listed overlaps, " + strconv.Itoa(len(c.rec.lost)) + " listed lost updates and " +
		strconv.Itoa(len(c.rec.stale)) + " listed stale writes in the run; the tables on this page say the same in words."
}
