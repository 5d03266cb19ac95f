package present

import (
	"cmp"
	"fmt"
	"maps"
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

func times[N int | int64](n N) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// length writes a duration in a unit of its magnitude. Seconds have at most three decimals, because readers
// compare no more.
func length(d time.Duration) string {
	unit, name := time.Second, "s"
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		unit, name = time.Microsecond, "µs"
	case d < time.Second:
		unit, name = time.Millisecond, "ms"
	}
	decimals := 1
	if unit == time.Second {
		decimals = 3
	}
	s := strconv.FormatFloat(float64(d)/float64(unit), 'f', decimals, 64)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") + " " + name
}

// at writes a time of the history's clock as the time since the beginning of the run.
func (p presenter) at(t int64) string { return length(time.Duration(max(0, t-p.results.Begin))) }

// sentence adds a capital and a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// joined joins the parts that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "; ")
}

// listed names at most three of the names.
func listed(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// causes says what caused violations, the most frequent cause first.
func causes(counts map[string]int64) string {
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	var parts []string
	for _, name := range names {
		if len(names) > 1 {
			name += fmt.Sprintf(" (%d)", counts[name])
		}
		parts = append(parts, name)
	}
	if len(parts) == 0 {
		return ""
	}
	return "cause: " + strings.Join(parts, ", ")
}

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "somebody"
}
