// Package reports presents the results of runs: on the terminal, as JSON for programs, as JUnit for CI, and
// as a self-contained HTML page with a picture of the violation on a true time axis. A report only presents
// verdicts and never forms one. Text from the run is untrusted everywhere: a lock's name or a server's error
// must not be able to control a terminal, break an XML file or run in a page.
package reports

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/history"
)

// clean makes text from outside safe for one line. It removes control and format characters, such as escape
// sequences and bidirectional overrides, which could rewrite the surrounding text.
func clean(s string) string { return strings.Join(strings.Fields(Printable(s)), " ") }

// Printable is clean for text whose spaces matter, such as paths and aligned columns.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Noncharacter_Code_Point):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// shorten cuts s to n runes. The last rune then shows that text is missing.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func cleanAll(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, clean(s))
	}
	return out
}

// at formats a time as seconds since begin.
func at(t, begin int64) string {
	return strconv.FormatFloat(float64(t-begin)/1e9, 'f', 3, 64) + " s"
}

// Length formats a duration with about three significant figures.
func Length(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Length(-d)
	case d >= time.Second:
		return Trimmed(d.Seconds(), 2) + " s"
	case d >= time.Millisecond:
		return Trimmed(float64(d)/1e6, 1) + " ms"
	case d >= time.Microsecond:
		return Trimmed(float64(d)/1e3, 1) + " µs"
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

// Trimmed formats f with at most n decimals and no trailing zeros.
func Trimmed(f float64, n int) string {
	s := strconv.FormatFloat(f, 'f', n, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// inPercent formats a share in percent, without the sign. It keeps two digits of the share, or of what is
// missing to 100 %, so that a small share is not read as nothing.
func inPercent(share float64) string {
	p := 100 * share
	rest := min(p, 100-p)
	if rest <= 0 {
		return Trimmed(p, 0)
	}
	return Trimmed(p, max(0, 1-int(math.Floor(math.Log10(rest)))))
}

// Percent formats a share from 0 to 1 in percent, with enough digits that a small share is not read as
// nothing.
func Percent(share float64) string { return inPercent(share) + " %" }

// PercentAtMost rounds a share up to whole percents, because a bound must not look better than it is.
func PercentAtMost(share float64) string {
	return Trimmed(min(100, float64(int(100*share+0.999))), 0) + " %"
}

// Grouped formats n with separators, so that 100,000 is not read as 10,000.
func Grouped(n int64) string {
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

// Many is a count with its noun: "1 hold", "2 holds".
func Many[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(int64(n)) + " " + noun + "s"
}

// listNames puts a few names into a sentence, and counts the rest.
func listNames(names []string) string {
	const most = 4
	switch n := len(names); {
	case n == 0:
		return ""
	case n == 1:
		return names[0]
	case n > most+1:
		return strings.Join(names[:most], ", ") + " and " + Grouped(int64(n-most)) + " others"
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// ordinal is n as a rank: 1st, 12th, 23rd.
func ordinal(n int64) string {
	ending := "th"
	if n/10%10 != 1 {
		ending = cmp.Or([10]string{1: "st", 2: "nd", 3: "rd"}[n%10], ending)
	}
	return Grouped(n) + ending
}

// exactDuration formats a duration to the millisecond, as the values of faults are given.
func exactDuration(d time.Duration) string {
	if d.Abs() < time.Second {
		return Trimmed(float64(d)/1e6, 3) + " ms"
	}
	return Trimmed(d.Seconds(), 3) + " s"
}

// Plain is the verdict as one of the words that this package knows. An unknown verdict counts as broken,
// because it must not pass for anything better.
func Plain(v checker.Verdict) checker.Verdict {
	switch v {
	case checker.Valid, checker.Violation, checker.Undecided, checker.Broken, checker.NotApplicable:
		return v
	}
	return checker.Broken
}

// wordOf is the word that a table shows as the verdict of a property.
func wordOf(f checker.Finding) string {
	switch v := Plain(f.Verdict); {
	case v == checker.Violation && f.Tolerated:
		return "tolerated"
	case v == checker.NotApplicable:
		return "n/a"
	default:
		return string(v)
	}
}

// Sentence says why a run has its verdict.
func Sentence(r checker.Results) string {
	s := clean(r.Sentence)
	if s == "" {
		return "The checkers gave no reason."
	}
	return s
}

// Summary is the verdict of a run and the reason, in one line.
func Summary(r checker.Results) string { return string(Plain(r.Verdict)) + ": " + Sentence(r) }

// ranking says how much a reader needs to see a finding, the most first.
type ranking int

const (
	violated ranking = iota // and required
	brokenRun
	undecided
	violatedNotRequired // but not required
	tolerated
	kept
	without // there was nothing to judge
)

func rank(f checker.Finding) ranking {
	switch v := Plain(f.Verdict); {
	case v == checker.Violation && f.Required:
		return violated
	case v == checker.Broken:
		return brokenRun
	case v == checker.Undecided:
		return undecided
	case v == checker.Violation && !f.Tolerated:
		return violatedNotRequired
	case v == checker.Violation:
		return tolerated
	case v == checker.Valid:
		return kept
	}
	return without
}

// ordered sorts the findings by rank, and otherwise keeps the checkers' order.
func ordered(findings []checker.Finding) []checker.Finding {
	out := slices.Clone(findings)
	slices.SortStableFunc(out, func(a, b checker.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// byCost sorts the findings by rank, then by what their violations cost: first lost data, then data at risk,
// then overlapping holds.
func byCost(findings []checker.Finding) []checker.Finding {
	out := slices.Clone(findings)
	slices.SortStableFunc(out, func(a, b checker.Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(costOf(a.Property), costOf(b.Property)))
	})
	return out
}

func costOf(p checker.Property) int {
	switch p {
	case checker.NoLostUpdate, checker.Invariants:
		return 0
	case checker.NoStaleWrite, checker.ExactlyOnce, checker.NoStaleEffect:
		return 1
	case checker.MutualExclusion:
		return 2
	}
	return 3
}

func judged(r checker.Results) string {
	if len(r.Required) == 0 {
		return "nothing"
	}
	return Properties(r.Required)
}

// Properties joins the names of properties.
func Properties(properties []checker.Property) string {
	names := make([]string, 0, len(properties))
	for _, p := range properties {
		names = append(names, clean(string(p)))
	}
	return strings.Join(names, ", ")
}

// facts describes the run in a few pairs, which are the same in every report.
func facts(h history.Header) []fact {
	lease := "none"
	if h.Lease > 0 {
		lease = Length(h.Lease)
	}
	faults := strings.Join(cleanAll(h.Faults), ", ")
	all := applicationFacts(h)
	if all == nil {
		all = []fact{
			{"lock", orNone(clean(h.Lock))},
			{"workload", orNone(clean(h.Workload))},
			{"guard", orNone(clean(h.Guard))},
			{"faults", orNone(faults)},
			{"lease", lease},
			{"workers", strconv.Itoa(len(h.Workers))},
			{"seed", strconv.FormatUint(h.Seed, 10)},
		}
	}
	if h.Source != "" {
		all = append(all, fact{"servers", clean(h.Source)})
	}
	if use := usage(h); use != "" {
		all = append(all, fact{"use", use})
	}
	if len(h.Unavailable) > 0 {
		all = append(all, fact{"left out:", strings.Join(cleanAll(h.Unavailable), ", ")})
	}
	return all
}

// usage says what workers do about the end of their leases.
func usage(h history.Header) string {
	var does []string
	if h.Renewed {
		does = append(does, "renewed leases")
	}
	if h.Checked {
		does = append(does, "deadlines checked before each write")
	}
	return strings.Join(does, ", ")
}

// factsOf adds to the facts what only the run itself could report.
func factsOf(h history.Header, r checker.Results) []fact {
	all := facts(h)
	if len(r.Clients) > 0 {
		all = append(all, fact{"client", shorten(strings.Join(cleanAll(r.Clients), ", "), maxParameter)})
	}
	return all
}

type fact struct{ Name, Value string }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

type example struct {
	Finding  checker.Finding
	Incident checker.Incident
}

// examples picks up to n incidents for a reader with little time. It takes one of each property, in the order
// of the findings, before a second one of any property.
func examples(r checker.Results, findings []checker.Finding, n int) []example {
	var out []example
	for round := 0; len(out) < n; round++ {
		found := false
		for _, f := range findings {
			list := mostInformativeFirst(r, f)
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

// mostInformativeFirst sorts the incidents of a finding, the most informative first.
func mostInformativeFirst(r checker.Results, f checker.Finding) []checker.Incident {
	var score func(checker.Incident) int
	switch f.Property {
	case checker.MutualExclusion:
		score = scoreOfOverlaps(r)
	case checker.NoLostUpdate:
		score = scoreOfLosses(r)
	default:
		return f.Violations
	}
	out := slices.Clone(f.Violations)
	slices.SortStableFunc(out, func(a, b checker.Incident) int { return score(b) - score(a) })
	return out
}

// scoreOfOverlaps: a double grant says more about a lock than a use after expiry. An overlap that cost data
// says more than a harmless one.
func scoreOfOverlaps(r checker.Results) func(checker.Incident) int {
	lost := grantsOf(r, checker.NoLostUpdate)
	stale := grantsOf(r, checker.NoStaleWrite)
	return func(i checker.Incident) int {
		return 4*one(i.Class == checker.DoubleGrant) +
			2*one(slices.ContainsFunc(i.Grants, func(g string) bool { return lost[g] })) +
			one(slices.ContainsFunc(i.Grants, func(g string) bool { return stale[g] }))
	}
}

// scoreOfLosses: a loss with a known overwriting write says more than a loss without. A stale write that
// destroys valid updates says more than a stale write that is itself destroyed.
func scoreOfLosses(r checker.Results) func(checker.Incident) int {
	stale := make(map[resourceWrite]bool)
	for _, i := range r.Finding(checker.NoStaleWrite).Violations {
		if len(i.Grants) > 0 {
			stale[resourceWrite{i.Grants[0], i.From}] = true
		}
	}
	return func(i checker.Incident) int {
		by, known := overwriter(i)
		return 4*one(known) + 2*one(notInherent(i.Cause)) + one(known && stale[by])
	}
}

// resourceWrite identifies one write at the resource.
type resourceWrite struct {
	grant string
	time  int64 // ns
}

// overwriter is the write that destroyed an update; false if it is unknown.
func overwriter(i checker.Incident) (resourceWrite, bool) {
	if !isLost(i) || len(i.Grants) < 2 {
		return resourceWrite{}, false
	}
	return resourceWrite{i.Grants[1], i.To}, true
}

// notInherent says whether another lock could have prevented violations with this cause.
func notInherent(cause string) bool {
	return cause != checker.CauseUnexplained &&
		slices.ContainsFunc(checker.Causes(), func(c checker.Cause) bool { return c.Name == cause && !c.Inherent })
}

// grantsOf has the grants that the incidents of a property name.
func grantsOf(r checker.Results, p checker.Property) map[string]bool {
	out := map[string]bool{}
	for _, i := range r.Finding(p).Violations {
		for _, g := range i.Grants {
			out[g] = true
		}
	}
	return out
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
