package history

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPage: docs/history.md has a row for each field of the file, and no other rows.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")
	for _, c := range []struct {
		section string
		fields  reflect.Type
	}{
		{"Events\n", reflect.TypeFor[Event]()},
		{"Faults\n", reflect.TypeFor[Fault]()},
		{"The header\n", reflect.TypeFor[Header]()},
	} {
		i := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, c.section) })
		if i < 0 {
			t.Fatalf("there is no section %q", c.section)
		}
		if got, want := documented(sections[i]), tags(c.fields); !slices.Equal(got, want) {
			t.Errorf("%s: the page has %v, the file %v", c.fields, got, want)
		}
	}
}

// documented returns the names in the first column of the table.
func documented(section string) []string {
	var names []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			names = append(names, strings.Trim(name, "`"))
		}
	}
	slices.Sort(names)
	return names
}

func tags(fields reflect.Type) []string {
	var names []string
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestPageWords: the page has all words that a field can hold.
func TestPageWords(t *testing.T) {
	text, err := os.ReadFile("../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{
		PhaseReady, PhaseRecovery, PhaseRecovered, PhaseFinal, PhaseEnd, PhaseInterrupted, PhaseBroken, Resource, Nemesis, Harness, Format,
	}
	for _, typ := range []Type{Invoke, OK, Fail, Info} {
		words = append(words, string(typ))
	}
	for _, f := range []Function{Acquire, Renew, Read, Write, Release, Lost, Final, FaultPhase, Phase} {
		words = append(words, string(f))
	}
	for _, stage := range []Stage{Requested, Applied, Proven, Healed, ProvenHealed, Skipped, Unproven, Unhealed} {
		words = append(words, string(stage))
	}
	for _, word := range words {
		if !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("the page lacks %q", word)
		}
	}
}
