package reports

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestGuideTerminal: a terminal shows the first locks of each need, counts the others, and calls
// the program as its reader does.
func TestGuideTerminal(t *testing.T) {
	fits := func(n int) (all []GuideFit) {
		for i := range n {
			all = append(all, GuideFit{Lock: fmt.Sprintf("lock%d", i+1), Guard: "none"})
		}
		return all
	}
	var b bytes.Buffer
	g := Guide{Needs: []GuideNeed{{Need: "many", Fits: fits(maxFits + 2)}, {Need: "all", Fits: fits(maxFits)}, {Need: "nobody", Out: []string{"lock9"}}}}
	if err := GuideTerminal(&b, g, TerminalOptions{Program: "./lockcheck", Width: 200}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for part, times := range map[string]int{
		"lock5 ": 2, "lock6 ": 0, "and 2 more": 1, "more;": 1, "no lock is known": 1, "1 lock ruled out": 1, "./lockcheck guide --html": 1,
	} {
		if got := strings.Count(text, part); got != times {
			t.Errorf("%q is there %d times, want %d:\n%s", part, got, times, text)
		}
	}
}

// TestCommandLine: only the name of the program is replaced, and only where it is one.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct{ program, line, want string }{
		{"./lockcheck", "lockcheck repro x --lock lockcheck", "./lockcheck repro x --lock lockcheck"},
		{"", "lockcheck repro x", "lockcheck repro x"},
		{"/opt/a b/lockcheck", "lockcheck test", "'/opt/a b/lockcheck' test"},
		{"./lockcheck", "docker ps", "docker ps"},
		{"./lockcheck", "lockchecker x", "lockchecker x"},
	} {
		if got := (TerminalOptions{Program: c.program}).CommandLine(c.line); got != c.want {
			t.Errorf("%q of %q is %q, want %q", c.line, c.program, got, c.want)
		}
	}
}
