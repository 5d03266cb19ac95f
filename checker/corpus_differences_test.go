package checker

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

// jsonDifferences lists where two JSON values differ, and how. The last digits of fractions may differ,
// because not all processors compute them in the same way.
func jsonDifferences(path string, was, is any) (all []string) {
	switch was := was.(type) {
	case map[string]any:
		if is, same := is.(map[string]any); same {
			both := maps.Clone(was)
			maps.Copy(both, is)
			for _, name := range slices.Sorted(maps.Keys(both)) {
				before, had := was[name]
				now, has := is[name]
				inside := strings.TrimPrefix(path+"."+name, ".")
				switch {
				case had && has:
					all = append(all, jsonDifferences(inside, before, now)...)
				case had:
					all = append(all, fmt.Sprintf("%s: gone, was %s", inside, shortly(before)))
				default:
					all = append(all, fmt.Sprintf("%s: new, is %s", inside, shortly(now)))
				}
			}
			return all
		}
	case []any:
		if is, same := is.([]any); same {
			if len(was) != len(is) {
				all = append(all, fmt.Sprintf("%s: %d elements, were %d", path, len(is), len(was)))
			}
			for i := range min(len(was), len(is)) {
				all = append(all, jsonDifferences(fmt.Sprintf("%s[%s]", path, nameOf(was[i], i)), was[i], is[i])...)
			}
			return all
		}
	case json.Number:
		if is, same := is.(json.Number); same && (was == is || near(was, is)) {
			return nil
		}
	default:
		if was == is {
			return nil
		}
	}
	return append(all, fmt.Sprintf("%s: %s, was %s", path, shortly(is), shortly(was)))
}

// near says that two fractions are equal except for their last digits.
func near(was, is json.Number) bool {
	if !strings.ContainsAny(string(was)+string(is), ".e") {
		return false
	}
	a, errA := was.Float64()
	b, errB := is.Float64()
	return errA == nil && errB == nil && math.Abs(a-b) <= 1e-9*math.Abs(a)
}

// nameOf identifies an element of a list: by the property of a finding, the id of a fault, or else its index.
func nameOf(element any, i int) string {
	fields, _ := element.(map[string]any)
	for _, name := range []string{"property", "id"} {
		if text, is := fields[name].(string); is {
			return text
		}
	}
	return fmt.Sprint(i)
}

func shortly(value any) string {
	const most = 200
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// differingLines lists the lines that one of two texts has more often than the other, or whose order differs.
func differingLines(was, is []byte) (all []string) {
	before, now := strings.Split(string(was), "\n"), strings.Split(string(is), "\n")
	all = append(prefixed("- ", surplus(before, now)), prefixed("+ ", surplus(now, before))...)
	if len(all) > 0 {
		return all
	}
	for i, line := range now {
		if line != before[i] {
			all = append(all, fmt.Sprintf("line %d: %s, was %s", i+1, line, before[i]))
		}
	}
	return all
}

// surplus returns the lines that a text has more often than another, once for each extra occurrence.
func surplus(lines, others []string) (rest []string) {
	left := make(map[string]int)
	for _, line := range others {
		left[line]++
	}
	for _, line := range lines {
		if left[line]--; left[line] < 0 {
			rest = append(rest, line)
		}
	}
	return rest
}

func prefixed(prefix string, lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, prefix+line)
	}
	return all
}

// TestJSONDifferences checks that differences are found and named, and nothing else is.
func TestJSONDifferences(t *testing.T) {
	const was = `{"verdict":"valid","findings":[{"property":"liveness","total":3}],"share":0.1,"n":12345678901234567,"causes":{"a":1}}`
	for _, c := range []struct{ old, new, want string }{
		{`"total":3`, `"total": 3`, ""},
		{`"valid"`, `"broken"`, `verdict: "broken", was "valid"`},
		{`"total":3`, `"total":4`, `findings[liveness].total: 4, was 3`},
		{`"total":3`, `"total":"3"`, `findings[liveness].total: "3", was 3`},
		{`,"total":3`, ``, `findings[liveness].total: gone, was 3`},
		{`{"a":1}`, `{"a":1,"b":2}`, `causes.b: new, is 2`},
		{`{"a":1}`, `null`, `causes: null, was {"a":1}`},
		{`3}]`, `3},{}]`, `findings: 2 elements, were 1`},
		{`0.1`, `0.10000000000000002`, ""},
		{`0.1`, `0.100001`, `share: 0.100001, was 0.1`},
		{`12345678901234567`, `12345678901234568`, `n: 12345678901234568, was 12345678901234567`},
	} {
		is := strings.Replace(was, c.old, c.new, 1)
		if got := strings.Join(jsonDifferences("", fromJSON(t, []byte(was)), fromJSON(t, []byte(is))), "; "); got != c.want {
			t.Errorf("%s for %s: %q, want %q", c.new, c.old, got, c.want)
		}
	}
}

// TestDifferingLines checks that each difference is seen, including differences of order and of number.
func TestDifferingLines(t *testing.T) {
	const was = "a\nb\nc\n"
	for is, want := range map[string]string{
		was:             "",
		"a\nx\nc\n":     "- b;+ x",
		"a\nb\nb\nc\n":  "+ b",
		"a\nc\n":        "- b",
		"b\na\nc\n":     "line 1: b, was a;line 2: a, was b",
		"a\nb\nc":       "- ",
		"a\nb\nc\n\n":   "+ ",
		"c\nb\na\nb\nc": "- ;+ b;+ c",
	} {
		if got := strings.Join(differingLines([]byte(was), []byte(is)), ";"); got != want {
			t.Errorf("%q: %q, want %q", is, got, want)
		}
	}
}
