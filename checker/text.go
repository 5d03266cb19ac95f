package checker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// count writes a number with its noun.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// dur writes ns with a unit of its size: three decimals of a second are as much
// as a reader compares.
func dur(ns int64) string {
	unit, name := time.Second, "s"
	switch d := time.Duration(ns); {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", ns)
	case d < time.Millisecond:
		unit, name = time.Microsecond, "µs"
	case d < time.Second:
		unit, name = time.Millisecond, "ms"
	}
	decimals := 1
	if unit == time.Second {
		decimals = 3
	}
	s := strconv.FormatFloat(float64(ns)/float64(unit), 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " " + name
}

// sentence joins clauses, with a capital and a full stop.
func sentence(clauses ...string) string {
	s := strings.Join(clauses, "; ")
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// summed joins what there is to say.
func summed(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
