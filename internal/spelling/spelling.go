// Package spelling tells what somebody may have meant by a name that there is not.
package spelling

import (
	"fmt"
	"strings"
)

// UnknownError is the error for a name that does not exist.
type UnknownError struct {
	What, Name string   // what it was to be a name of, as in "lock"
	Known      []string // the names that there are
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %q%s", e.What, e.Name, Hint(e.Name, e.Known))
}

// Hint names the nearest of the names that there are, or all of them; it begins with the
// punctuation that joins it to what it is said of.
func Hint(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Sprintf(" (there are %s)", strings.Join(known, ", "))
}

// Nearest is the known name with the smallest edit distance, if that is small enough for a
// slip of the finger, or else the only one that begins with it; "" for none.
func Nearest(name string, known []string) string {
	best, least := "", len(name)/2+1
	var longer []string
	for _, candidate := range known {
		if d := editDistance(name, candidate); d < least {
			best, least = candidate, d
		}
		if name != "" && strings.HasPrefix(candidate, name) {
			longer = append(longer, candidate)
		}
	}
	if best == "" && len(longer) == 1 {
		best = longer[0]
	}
	return best
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
