package sweep

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/reports"
)

// swept is a sweep that agrees with the line of theory at all points except one.
func swept() Sweep {
	available := 0.5
	point := func(ttl, pause time.Duration, pauses, incidents int64) Measured {
		return Measured{Point: Point{ttl, pause, time.Second}, Pauses: pauses, Incidents: incidents, Availability: &available, Runs: []string{"runs/a"}}
	}
	return Sweep{
		Lock: "redis", TTL: "1s-10s", Pause: "100ms-10s", Section: "1s", Rule: Rule{Pauses: 1, Sections: 1},
		Points: []Measured{
			{Point: Point{time.Millisecond, time.Second, time.Second}, Unsupported: "the lease is too short"},
			point(time.Second, 100*time.Millisecond, 4, 0), point(time.Second, 10*time.Second, 4, 4),
			point(10*time.Second, 100*time.Millisecond, 4, 0), point(10*time.Second, 10*time.Second, 4, 1),
			{Point: Point{5 * time.Second, time.Second, time.Second}, Failed: 1},
		},
	}
}

// TestSweepTerminal: there is a mark for each kind of answer, and no line is wider than the terminal.
func TestSweepTerminal(t *testing.T) {
	for _, width := range []int{0, 60, 40} {
		var b strings.Builder
		if err := swept().Terminal(width).WriteTerminal(&b, reports.TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for _, want := range []string{"section 1 s\n", "10 s  .", " o\n", "1 s   .", " #\n", "pause 100 ms", "1 point not supported: the"} {
			if !strings.Contains(text, want) {
				t.Errorf("width %d: %q is not in\n%s", width, want, text)
			}
		}
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
	}
}

// TestSweepAgainstRule: points are compared with the line of theory.
func TestSweepAgainstRule(t *testing.T) {
	want := "Below the line lease = pause + section, workers never overlapped at 1 of 3 points. On it or above, they overlapped at 0 of 1 point."
	if got := swept().againstRule(); got != want {
		t.Errorf("%q", got)
	}
}

// TestSweepAxes: the axes are the dimensions that vary, and each value of the third dimension has its own
// chart.
func TestSweepAxes(t *testing.T) {
	s := swept()
	if got := s.dimensions(); got != (dimensions{pause, lease, section}) {
		t.Errorf("axes %v", got)
	}
	for i := range s.Points {
		s.Points[i].Section, s.Points[i].Pause = s.Points[i].Pause, time.Second
	}
	if got := s.dimensions(); got != (dimensions{section, lease, pause}) {
		t.Errorf("without pauses: %v", got)
	}
	for i := range s.Points {
		s.Points[i].Pause, s.Points[i].TTL = s.Points[i].TTL, time.Second
	}
	if got := s.dimensions(); got != (dimensions{pause, section, lease}) {
		t.Errorf("without leases: %v", got)
	}
}

// TestSweepLine: on the line, a lease is exactly long enough.
func TestSweepLine(t *testing.T) {
	s := swept()
	y, between := s.heightOnLine(Point{Pause: time.Second, Section: time.Second}, lease, time.Second, 10*time.Second)
	if !between || (y-2*time.Second).Abs() > time.Millisecond {
		t.Errorf("at %s, %v", y, between)
	}
	if _, between := s.heightOnLine(Point{Pause: time.Minute, Section: time.Second}, lease, time.Second, 10*time.Second); between {
		t.Error("a line above the chart is in it")
	}
}

// TestSweepChart: the picture is valid XML, whatever the lock's name, and has a dot for each point.
func TestSweepChart(t *testing.T) {
	s := swept()
	s.Lock = `<b>"&`
	dots := dotsOf(t, s.svg())
	if dots != 8 {
		t.Errorf("%d dots, want one in each of two charts for four points", dots)
	}
}

// TestSweepPage: failed points are in the table, unsupported points are listed, and every page has the same
// content.
func TestSweepPage(t *testing.T) {
	s := swept()
	table := s.table()
	if len(table.Rows) != 5 || table.Rows[1].Cells[5].Verdict != checker.Violation || table.Rows[0].Cells[5].Verdict != checker.Valid || table.Rows[4].Cells[6].Text != "–" {
		t.Errorf("%+v", table.Rows)
	}
	if list := s.unsupported().Items; len(list) != 1 || list[0].Text != "1 point not supported: the lease is too short" {
		t.Errorf("%+v", list)
	}
	for name, write := range map[string]func(io.Writer) error{"Markdown": s.Page().WriteMarkdown, "HTML": s.Page().WriteHTML} {
		var b strings.Builder
		if err := write(&b); err != nil || !strings.Contains(b.String(), "the lease is too short") || !strings.Contains(b.String(), "runs/a/report.html") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

// dotsOf counts the dots of a picture, which must be valid XML.
func dotsOf(t *testing.T, picture string) (dots int) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return dots
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
		if e, is := token.(xml.StartElement); is && e.Name.Local == "circle" {
			dots++
		}
	}
}

// TestEarlierFiles: a file of an earlier version can be read, and rewriting it loses nothing.
func TestEarlierFiles(t *testing.T) {
	text, err := os.ReadFile("testdata/sweep.json")
	if err != nil {
		t.Fatal(err)
	}
	var s Sweep
	err = json.Unmarshal(text, &s)
	again, marshalErr := json.Marshal(s)
	var before, after any
	if err := errors.Join(err, marshalErr, json.Unmarshal(text, &before), json.Unmarshal(again, &after)); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("%v, written again it is %s", err, again)
	}
	f, err := Open("testdata")
	if err != nil || f.tried(Point{200 * time.Millisecond, time.Second, 200 * time.Millisecond}) != 1 || f.Plan.Steps != 2 {
		t.Errorf("%v, %+v", err, f)
	}
}
