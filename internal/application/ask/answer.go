package ask

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockcheck/history"
)

// Bounds of one answer.
const (
	maxRows = 100_000
	maxSize = 16 << 20 // bytes
	// shownRows and shownSize are what is recorded of rows that are only shown.
	shownRows = 20
	shownSize = 1 << 10
)

// recordedPerSecond bounds the bytes that one question adds to the history: at four answers a second, one that
// returns 100,000 rows of 36 bytes would add 860 MB a minute.
const recordedPerSecond = 1 << 20

// pause is how long a question rests after an answer of a size in bytes.
func pause(size int) time.Duration { return time.Duration(size) * time.Second / recordedPerSecond }

var errTooLarge = fmt.Errorf("the answer has more than %d rows, or more than %d MiB", maxRows, maxSize>>20)

// answer collects the rows of one answer.
type answer struct {
	history.Answer
	kind string // of the invariant
	size int    // of the rows that are kept, in bytes
	cut  bool   // there are more rows, and they do not matter
	// fails is that a command said by its exit status that the invariant does not hold. ByStatus is that only the
	// exit status counts.
	byStatus, fails bool
}

// firstRowDecides says of a kind of invariant whether its verdict needs no more than the first row.
func firstRowDecides(kind string) bool {
	return kind != history.InvariantKept && history.Judged(kind)
}

// add takes another row. After errTooLarge there is no need to read on.
func (a *answer) add(row string) error {
	if a.Count == maxRows {
		return errTooLarge
	}
	a.Count++
	if a.kind != history.InvariantKept {
		if len(a.Rows) == shownRows {
			return nil
		}
		row = shortened(row)
	}
	a.Rows, a.size = append(a.Rows, row), a.size+len(row)
	return nil
}

// bounded is the error of an answer whose reading ended with err. An answer that was too large is an answer all the
// same where the rows that were read decide.
func (a *answer) bounded(err error) error {
	if errors.Is(err, errTooLarge) && firstRowDecides(a.kind) && a.Count > 0 {
		a.cut = true
		return nil
	}
	return err
}

// readLines adds each line of a text. A blank line says nothing, so it is no row.
func (a *answer) readLines(from io.Reader) error {
	limited := &io.LimitedReader{R: from, N: maxSize + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxSize+2)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := a.add(lines.Text()); err != nil {
			return err
		}
	}
	if limited.N == 0 {
		return errTooLarge
	}
	return lines.Err()
}

// verdict is the type of the event of a whole answer.
func (a *answer) verdict() history.Type {
	empty := slices.Contains([]string{history.InvariantOnce, history.InvariantNever}, a.kind)
	holds := !firstRowDecides(a.kind) || empty == (a.Count == 0)
	if a.byStatus {
		holds = !a.fails
	}
	if !holds {
		return history.Fail
	}
	a.Columns = nil // only counterexamples need them
	if empty {
		a.Answer = history.Answer{} // a command that says that all is well shows no counterexample
	}
	return history.OK
}

// null is how an absent value of a row is written.
const null = "NULL"

// maxColumns and maxColumnName limit the recorded names of columns: their number, and the bytes of each.
const (
	maxColumns    = 50
	maxColumnName = 64
)

// name records the names of the columns. If one exceeds a limit it records none, because the rest would not fit the rows.
func (a *answer) name(columns []string) {
	tooLong := func(name string) bool { return len(name) > maxColumnName || strings.Contains(name, "\t") }
	if len(columns) <= maxColumns && !slices.ContainsFunc(columns, tooLong) {
		a.Columns = columns
	}
}

// joined makes a row of columns.
func joined(columns []string) string { return strings.Join(columns, "\t") }

// shortened cuts a text that is only shown.
func shortened(text string) string {
	if len(text) <= shownSize {
		return text
	}
	return strings.ToValidUTF8(text[:shownSize], "") + "…"
}
