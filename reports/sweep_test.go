package reports

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// swept is a sweep in which the line of theory holds at all points but one.
func swept() Sweep {
	available := 0.5
	point := func(ttl, pause time.Duration, pauses, incidents int64) SweepPoint {
		return SweepPoint{TTL: ttl, Pause: pause, Section: time.Second, Pauses: pauses, Incidents: incidents, Availability: &available, Runs: []string{"runs/a"}}
	}
	return Sweep{
		Lock: "redis", TTL: "1s-10s", Pause: "100ms-10s", Section: "1s", Rule: SweepRule{Pauses: 1, Sections: 1},
		Points: []SweepPoint{
			{TTL: time.Millisecond, Pause: time.Second, Section: time.Second, Unsupported: "the lease is too short"},
			point(time.Second, 100*time.Millisecond, 4, 0), point(time.Second, 10*time.Second, 4, 4),
			point(10*time.Second, 100*time.Millisecond, 4, 0), point(10*time.Second, 10*time.Second, 4, 1),
			{TTL: 5 * time.Second, Pause: time.Second, Section: time.Second, Failed: 1},
		},
	}
}

// TestSweepTerminal: a mark for each answer, at most as wide as the terminal.
func TestSweepTerminal(t *testing.T) {
	for _, width := range []int{0, 60, 40} {
		var b strings.Builder
		if err := SweepTerminal(&b, swept(), TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		for _, want := range []string{"section 1 s\n", "10 s  .", " o\n", "1 s   .", " #\n", "pause 100 ms", "– 1 point not supported: the"} {
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

// TestSweepHeld: points are compared with the line.
func TestSweepHeld(t *testing.T) {
	want := "Of 3 points with a lease below the line lease = pause + section, workers were kept apart at 1 all the same; of 1 point on it or above, they were not at 0."
	if got := swept().held(); got != want {
		t.Errorf("%q", got)
	}
}

// TestSweepAxes: what varies is drawn, and a chart is made for each value of the third.
func TestSweepAxes(t *testing.T) {
	s := swept()
	if got := s.axes(); got != (sweepAxes{pauses, leases, sections}) {
		t.Errorf("axes %v", got)
	}
	for i := range s.Points {
		s.Points[i].Section, s.Points[i].Pause = s.Points[i].Pause, time.Second
	}
	if got := s.axes(); got != (sweepAxes{sections, leases, pauses}) {
		t.Errorf("without pauses: %v", got)
	}
	for i := range s.Points {
		s.Points[i].Pause, s.Points[i].TTL = s.Points[i].TTL, time.Second
	}
	if got := s.axes(); got != (sweepAxes{pauses, sections, leases}) {
		t.Errorf("without leases: %v", got)
	}
}

// TestSweepLine: it is where a lease is exactly long enough.
func TestSweepLine(t *testing.T) {
	s := swept()
	y, between := s.onLine(SweepPoint{Pause: time.Second, Section: time.Second}, time.Second, 10*time.Second)
	if !between || (y-2*time.Second).Abs() > time.Millisecond {
		t.Errorf("at %s, %v", y, between)
	}
	if _, between := s.onLine(SweepPoint{Pause: time.Minute, Section: time.Second}, time.Second, 10*time.Second); between {
		t.Error("a line above the chart is in it")
	}
}

// TestSweepChart: the picture is XML, whatever a lock is called, and has a dot a point.
func TestSweepChart(t *testing.T) {
	s := swept()
	s.Lock = `<b>"&`
	var b strings.Builder
	if err := SweepChart(&b, s); err != nil {
		t.Fatal(err)
	}
	dots := dotsOf(t, b.String())
	if dots != 8 {
		t.Errorf("%d dots, want one in each of two charts for four points", dots)
	}
}

// TestSweepPages: points that failed are in the tables, what is not supported is listed.
func TestSweepPages(t *testing.T) {
	for name, write := range map[string]func(io.Writer, Sweep) error{"markdown": SweepMarkdown, "html": SweepHTML, "json": SweepJSON} {
		var b strings.Builder
		if err := write(&b, swept()); err != nil || !strings.Contains(b.String(), "the lease is too short") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

// dotsOf counts the dots of a picture, which must be XML.
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
