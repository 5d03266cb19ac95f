package reports

import (
	"fmt"
	"io"
)

// maxFits is how many locks a terminal shows for each need.
const maxFits = 5

// GuideTerminal writes the needs of a guide, the locks that come first for each, and with which
// command all of it is read: its tables do not fit a terminal.
func GuideTerminal(w io.Writer, g Guide, o TerminalOptions) error {
	t := newTerminal(o)
	t.hang("", "", fmt.Sprintf("Which lock to choose, from %s of %s. A run shows that a lock can break, never that it cannot. "+
		"Each line has a lock, its guard, in how many runs it held, and the failure rate that these runs cannot rule out.", many(g.Runs, "run"), g.days()))
	for _, need := range g.Needs {
		t.blank()
		t.line(t.paint(bold, clean(need.Need)))
		for _, fit := range need.Fits[:min(maxFits, len(need.Fits))] {
			cells := fit.Cells()
			t.line("  " + pad(clean(fit.Lock), 20) + " " + pad(clean(fit.Guard), 9) + pad("held in "+cells[2], 36) + cells[3])
		}
		t.hang("    ", "  ", need.rest())
	}
	t.blank()
	t.hang("", "", "The whole guide says why locks are ruled out and shows each lock under each fault, as a web page or as Markdown:")
	for _, command := range []string{"lockcheck guide --html guide.html", "lockcheck guide > guide.md"} {
		t.line("  " + o.CommandLine(command))
	}
	_, err := w.Write(t.out.Bytes())
	return err
}

// rest counts the locks that are not shown for a need.
func (n GuideNeed) rest() string {
	text := fmt.Sprintf("%s ruled out, %d not shown either way", many(int64(len(n.Out)), "lock"), len(n.Open))
	switch more := len(n.Fits) - maxFits; {
	case len(n.Fits) == 0:
		return "no lock is known to meet this; " + text
	case more > 0:
		return fmt.Sprintf("and %d more; %s", more, text)
	}
	return text
}
