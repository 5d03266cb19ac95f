package reports

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockcheck/checker"
	"lockcheck/history"
)

// TestLinks: every link of the page has its target, and pictures and tables link to each other.
func TestLinks(t *testing.T) {
	var rows, back int
	for _, c := range runs() {
		page := pageOf(t, c)
		for _, to := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if !strings.Contains(page, `id="`+to[1]+`"`) {
				t.Errorf("%s: nothing has the id %s", c.name, to[1])
			}
			if strings.HasPrefix(to[1], "incident-") {
				rows++
			}
			if to[1] == "run" {
				back++
			}
		}
	}
	if rows == 0 || back == 0 {
		t.Errorf("%d links to incidents, and %d back", rows, back)
	}
}

// TestArrows: an arrow leads from a write to the update that the write destroyed, if both are in the picture.
func TestArrows(t *testing.T) {
	lost := checker.Incident{From: 10, To: 50, Workers: []string{"w1", "w2"}, Grants: []string{"a", "b"}, Element: 7, Class: checker.ClassLost}
	rec := &record{
		begin: 0, end: 100,
		accesses:    []access{{worker: "w2", grant: "b", time: 50, write: true}, {worker: "w2", grant: "b", time: 60, write: true}},
		overwritten: map[resourceWrite][]checker.Incident{{"b", 50}: {lost}},
	}
	for _, c := range []struct {
		from, to int64
		want     int
	}{{0, 100, 1}, {20, 100, 0}, {0, 40, 0}} {
		canvas := newCanvas(rec, c.from, c.to)
		canvas.strip("w1", row{bar: 10})
		canvas.strip("w2", row{bar: 50})
		canvas.arrows()
		if len(canvas.Arrows) != c.want {
			t.Errorf("%d to %d: %+v", c.from, c.to, canvas.Arrows)
		}
		if c.want == 1 && (canvas.Arrows[0].X1 != "50" || canvas.Arrows[0].X2 != "10" || canvas.Arrows[0].Y1 != 50 || canvas.Arrows[0].Y2 != 10) {
			t.Errorf("it leads elsewhere: %+v", canvas.Arrows[0])
		}
	}
}

// TestAgain: the command names a seed that was drawn at random, and adds nothing else.
func TestAgain(t *testing.T) {
	for _, c := range []struct{ command, want []string }{
		{[]string{"lockcheck", "test", "--guard", "cas"}, []string{"lockcheck", "test", "--guard", "cas", "--seed", "7"}},
		{[]string{"lockcheck", "test", "--seed", "3"}, []string{"lockcheck", "test", "--seed", "3"}},
		{[]string{"lockcheck", "test", "--schedule=x.yaml"}, []string{"lockcheck", "test", "--schedule=x.yaml"}},
		{[]string{"lockcheck", "repro", "redis-orphan"}, []string{"lockcheck", "repro", "redis-orphan"}},
		{nil, nil},
	} {
		if got := again(history.Header{Command: c.command, Seed: 7}); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.command, got, c.want)
		}
	}
}
