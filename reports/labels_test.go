package reports

import "testing"

func TestShelf(t *testing.T) {
	const text = "0123456789" // 12.5 wide
	for _, c := range []struct {
		name   string
		x      []float64
		before bool
		anchor string
		ok     bool
	}{
		{"first", []float64{50}, false, "start", true},
		{"before it", []float64{50, 50}, true, "end", true},
		{"next to it", []float64{50, 63}, false, "start", true},
		{"on it", []float64{50, 55}, false, "start", false},
		{"at the end", []float64{99}, false, "end", true},
		{"before the beginning", []float64{1}, true, "start", true},
	} {
		s := &shelf{}
		for _, x := range c.x[:len(c.x)-1] {
			s.reserveLabel(x, text, false)
		}
		if anchor, ok := s.reserveLabel(c.x[len(c.x)-1], text, c.before); anchor != c.anchor || ok != c.ok {
			t.Errorf("%s: %s %v, want %s %v", c.name, anchor, ok, c.anchor, c.ok)
		}
	}
}
