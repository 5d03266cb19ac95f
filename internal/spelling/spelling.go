// Package spelling suggests what a user may have meant by an unknown name.
package spelling

import (
	"fmt"
	"strings"
)

// UnknownError is the error for a name that does not exist.
type UnknownError struct {
	What, Name string   // What is the kind of thing that Name should name, such as "lock"
	Known      []string // the names that exist
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown %s %q%s", e.What, e.Name, Hint(e.Name, e.Known))
}

// Hint suggests the known name nearest to name, or else lists all known names. The text starts with the
// punctuation that joins it to an error message.
func Hint(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Sprintf(" (there are %s)", strings.Join(known, ", "))
}

// Nearest returns the known name with the smallest edit distance, if that distance is small enough for a typing
// error. Otherwise it returns the known name that begins with name, if there is exactly one; "" for none.
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

// editDistance returns the Levenshtein distance.
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
