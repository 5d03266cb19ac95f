// Package reports tells people and machines what a run found: on the terminal,
// as JSON for programs, as JUnit for CI, and as a self-contained HTML page with
// a picture of the violation on a true time axis. A report only presents; it
// takes every verdict from package checker and never forms one of its own.
// Text from the run is untrusted everywhere: a lock's name or a server's error
// must not be able to steer a terminal, break an XML file or run in a page.
package reports

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/history"
)

// clean makes text from outside fit for one line: control and format
// characters (escape sequences, bidirectional overrides) would let it rewrite
// what stands around it.
func clean(s string) string { return strings.Join(strings.Fields(printable(s)), " ") }

// printable is clean for text whose spaces matter: paths, aligned columns.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// shorten cuts s to n runes, the last of which then says that there was more.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// cleanAll is clean for lists.
func cleanAll(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, clean(s))
	}
	return out
}

// at is a time as seconds since begin.
func at(t, begin int64) string {
	return strconv.FormatFloat(float64(t-begin)/1e9, 'f', 3, 64) + " s"
}

// length is a duration with about three significant figures.
func length(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + length(-d)
	case d >= time.Second:
		return trimmed(d.Seconds(), 2) + " s"
	case d >= time.Millisecond:
		return trimmed(float64(d)/1e6, 1) + " ms"
	case d >= time.Microsecond:
		return trimmed(float64(d)/1e3, 1) + " µs"
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// trimmed is f with at most n decimals and no trailing zeros.
func trimmed(f float64, n int) string {
	s := strconv.FormatFloat(f, 'f', n, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// grouped is n with separators, so that 100,000 is not read as 10,000.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// many is a count with its noun: "1 hold", "2 holds".
func many(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

// plain is the verdict as one of the words that this package knows. A verdict
// that it does not know must not pass for anything but broken.
func plain(v checker.Verdict) checker.Verdict {
	switch v {
	case checker.Valid, checker.Violation, checker.Undecided, checker.Broken, checker.NotApplicable:
		return v
	}
	return checker.Broken
}

// wordOf is what a table shows as the verdict of one property.
func wordOf(f checker.Finding) string {
	switch v := plain(f.Verdict); {
	case v == checker.Violation && f.Tolerated:
		return "tolerated"
	case v == checker.NotApplicable:
		return "n/a"
	default:
		return string(v)
	}
}

// sentence is r.Sentence without a verdict word in front of it, since every
// report puts its own there.
func sentence(r checker.Results) string {
	s := clean(r.Sentence)
	word := string(plain(r.Verdict))
	if len(s) > len(word) && strings.EqualFold(s[:len(word)], word) {
		if rest := strings.TrimLeft(s[len(word):], ":. "); rest != s[len(word):] && rest != "" {
			return rest
		}
	}
	if s == "" {
		return "The checkers gave no reason."
	}
	return s
}

// rank orders findings by how much a reader needs to see them.
func rank(f checker.Finding) int {
	switch v := plain(f.Verdict); {
	case v == checker.Violation && f.Required:
		return 0
	case v == checker.Broken:
		return 1
	case v == checker.Undecided:
		return 2
	case v == checker.Violation && !f.Tolerated:
		return 3
	case v == checker.Violation:
		return 4
	case v == checker.Valid:
		return 5
	}
	return 6
}

// ordered is the findings by rank, otherwise in the checkers' order.
func ordered(findings []checker.Finding) []checker.Finding {
	out := slices.Clone(findings)
	slices.SortStableFunc(out, func(a, b checker.Finding) int { return rank(a) - rank(b) })
	return out
}

// judged names the required properties.
func judged(r checker.Results) string {
	if len(r.Required) == 0 {
		return "nothing"
	}
	names := make([]string, 0, len(r.Required))
	for _, p := range r.Required {
		names = append(names, clean(string(p)))
	}
	return strings.Join(names, ", ")
}

// facts is the run in a few pairs, the same in every report.
func facts(h history.Header) []fact {
	lease := "none"
	if h.Lease > 0 {
		lease = length(h.Lease)
	}
	faults := strings.Join(cleanAll(h.Faults), ", ")
	all := []fact{
		{"lock", orNone(clean(h.Lock))},
		{"workload", orNone(clean(h.Workload))},
		{"guard", orNone(clean(h.Guard))},
		{"faults", orNone(faults)},
		{"lease", lease},
		{"workers", strconv.Itoa(len(h.Workers))},
		{"seed", strconv.FormatUint(h.Seed, 10)},
	}
	if len(h.Unavailable) > 0 {
		all = append(all, fact{"left out:", strings.Join(cleanAll(h.Unavailable), ", ")})
	}
	return all
}

// fact is a name and a value for people.
type fact struct{ Name, Value string }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// example is an incident with the finding that it belongs to.
type example struct {
	Finding  checker.Finding
	Incident checker.Incident
}

// examples picks up to n incidents for a reader with little time: one of each
// violated property in order of rank before a second one of any.
func examples(r checker.Results, n int) []example {
	var out []example
	findings := ordered(r.Findings)
	for round := 0; len(out) < n; round++ {
		found := false
		for _, f := range findings {
			list := tellingFirst(r, f)
			if round >= len(list) || len(out) == n {
				continue
			}
			found = true
			out = append(out, example{f, list[round]})
		}
		if !found {
			break
		}
	}
	return out
}

// tellingFirst orders the incidents of a finding: a broken promise says more
// about a lock than an outlived lease, and an overlap that cost data says more
// than one that happened to be harmless.
func tellingFirst(r checker.Results, f checker.Finding) []checker.Incident {
	if f.Property != checker.MutualExclusion {
		return f.Violations
	}
	lost := grantsOf(r, checker.NoLostUpdate)
	stale := grantsOf(r, checker.NoStaleWrite)
	score := func(i checker.Incident) int {
		n := 0
		if i.Class == "broken promise" {
			n += 4
		}
		if slices.ContainsFunc(i.Grants, func(g string) bool { return lost[g] }) {
			n += 2
		}
		if slices.ContainsFunc(i.Grants, func(g string) bool { return stale[g] }) {
			n++
		}
		return n
	}
	out := slices.Clone(f.Violations)
	slices.SortStableFunc(out, func(a, b checker.Incident) int { return score(b) - score(a) })
	return out
}

// grantsOf is the grants named by the incidents of one property.
func grantsOf(r checker.Results, p checker.Property) map[string]bool {
	out := map[string]bool{}
	for _, f := range r.Findings {
		if f.Property != p {
			continue
		}
		for _, i := range f.Violations {
			for _, g := range i.Grants {
				out[g] = true
			}
		}
	}
	return out
}
