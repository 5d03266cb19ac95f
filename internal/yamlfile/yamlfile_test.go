package yamlfile

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

type fault struct {
	Kind    string        `yaml:"kind"`
	Times   int           `yaml:"times"`
	Targets []string      `yaml:"targets,omitempty"`
	For     time.Duration `yaml:"for,omitempty"`
	Word    word          `yaml:"word,omitempty"`
	Words   []word        `yaml:"words,omitempty"`
}

// word is a type with a form of its own.
type word string

func (w *word) UnmarshalYAML(node *yaml.Node) error {
	text, err := Text(node, "soft")
	if err == nil && text == "loud" {
		err = Wrong(node, errors.New("too loud"))
	}
	*w = word(text)
	return err
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		left       fault
	}{
		"all of it":             {text: "kind: pause\ntimes: 2\ntargets: [n1]\nfor: 2s\n", left: fault{Kind: "pause", Times: 2, Targets: []string{"n1"}, For: 2 * time.Second}},
		"the rest stays":        {text: "kind: pause\n", left: fault{Kind: "pause", Times: 7}},
		"an unknown key":        {text: "kind: pause\ntime: 2\n", want: `line 2: there is no key "time"`},
		"several":               {text: "kinds: pause\ntime: 2\n", want: `line 1: there is no key "kinds"; did you mean "kind"? line 2: there is no key "time"; did you mean "times"?`},
		"a key with a space":    {text: "the kind: pause\n", want: `line 1: there is no key "the kind"`},
		"another type":          {text: "times: often\n", want: `line 1: times: expected a whole number, not "often"`},
		"a list for one":        {text: "times: 3\nkind: [pause]\n", want: "line 2: kind: expected a single value, as in kind: pause, not a list"},
		"a list of two for one": {text: "kind: [pause, kill]\n", want: "line 1: kind: expected a single value, not a list"},
		"a list in a list":      {text: "targets: [a, [b]]\n", want: "line 1: targets: expected a single value, as in targets: b, not a list"},
		"a text in a list":      {text: "targets: [{a: b}]\n", want: "line 1: targets: expected a single value, not a mapping"},
		"a key nearly known":    {text: "kinf: pause\n", want: `line 1: there is no key "kinf"; did you mean "kind"?`},
		"all known keys":        {text: "weather: rain\n", want: `line 1: there is no key "weather" (there are kind, times, targets, for, word, words)`},
		"a word of its own":     {text: "kind: pause\nword: [loud]\n", want: "line 2: word: expected one value, as in soft, not a list"},
		"a wrong word":          {text: "word: loud\n", want: "line 1: word: too loud"},
		"a wrong word of many":  {text: "words: [soft,\n  loud]\n", want: "line 2: words: too loud"},
		"a mapping for a list":  {text: "targets: {a: b}\n", want: `line 1: targets: expected a list, each element of which begins with "- ", not a mapping`},
		"text for a list":       {text: "targets: all of the servers\n", want: `line 1: targets: expected a list, as in [all, of, the, servers], not "all of the servers"`},
		"a mapping for one":     {text: "times: {of: 3}\n", want: "line 1: times: expected a whole number, not a mapping"},
		"one of two alike":      {text: "{times: often, kind: often}\n", want: `line 1: expected a whole number, not "often"`},
		"no mapping":            {text: "pause\n", want: `line 1: expected a mapping with keys such as kind, times, targets, for, not "pause"`},
		"no unit":               {text: "for: 3\n", want: `line 1: for: "3" is not a duration: write it with a unit, as in 3s`},
		"no length of time":     {text: "kind: pause\nfor: long\n", want: `line 2: for: "long" is not a duration`},
		"no YAML":               {text: "kind: [", want: "line 1: did not find"},
		"no indicator":          {text: "kind: pause\n- x\n", want: "line 2: did not find expected key"},
		"within a list":         {text: "targets:\n  - a\n  - b\n - c\n", want: "line 4: did not find expected key"},
		"within a mapping":      {text: "\nkind:\n  times: 1\n  times: 2\n  targets: 3\n : 4\n", want: "line 6: did not find expected key"},
		"a list unfinished":     {text: "kind: pause\ntargets: [a,\n  b\ntimes: 3\n", want: "line 2: did not find"},
		"a second mapping":      {text: "kind: pause\ntimes: a: b\n", want: "line 2: mapping values"},
		"a quote unfinished":    {text: "kind: 'pause\ntimes: 3\n\n", want: "line 1: found unexpected end of stream"},
		"no such anchor":        {text: "kind: pause\ntimes: *x\n", want: "line 2: unknown anchor"},
		"a tab":                 {text: "kind: pause\n\ttimes: 3\n", want: "line 2: found a tab"},
		"nothing":               {text: "", want: "it is empty"},
		"a comment alone":       {text: "# kind: pause\n", want: "it is empty"},
		"two":                   {text: "kind: pause\n---\nkind: kill\n", want: "more than one"},
	} {
		t.Run(name, func(t *testing.T) {
			got := fault{Times: 7}
			err := Read(strings.NewReader(c.text), &got)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			if err != nil || got.Kind != c.left.Kind || got.Times != c.left.Times || len(got.Targets) != len(c.left.Targets) || got.For != c.left.For {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAt(t *testing.T) {
	var into any
	file, err := Parse(strings.NewReader("seed: 1\nsteps:\n  - fault: pause\n    for: 1s\n\n  - for: 1s\n    fault: pauze\nlocks: [memory,\n  redis]\n"), &into)
	if err != nil {
		t.Fatal(err)
	}
	wrong := errors.New("wrong")
	for _, c := range []struct {
		err  error
		path []any
		want string
	}{
		{&FieldError{"fault", wrong}, []any{"steps", 1}, "line 7: fault: wrong"},
		{&FieldError{"fault", wrong}, []any{"steps", 0}, "line 3: fault: wrong"},
		{&FieldError{"target", wrong}, []any{"steps", 1}, "line 6: target: wrong"},
		{wrong, []any{"steps", 1}, "line 6: wrong"},
		{wrong, []any{"locks", "redis"}, "line 9: wrong"},
		{wrong, []any{"locks", "etcd"}, "line 8: wrong"},
		{wrong, []any{"faults", "none"}, "wrong"},
		{wrong, nil, "wrong"},
	} {
		if got := file.At(c.err, c.path...); got.Error() != c.want || !errors.Is(got, wrong) {
			t.Errorf("%v: %v, want %s", c.path, got, c.want)
		}
	}
	for _, c := range []struct {
		path []any
		want []Key
	}{
		{nil, []Key{{"seed", 1}, {"steps", 2}, {"locks", 8}}},
		{[]any{"steps", 1}, []Key{{"for", 6}, {"fault", 7}}},
		{[]any{"locks"}, nil},
		{[]any{"faults"}, nil},
	} {
		if got := file.Keys(c.path...); !slices.Equal(got, c.want) {
			t.Errorf("%v: keys %v, want %v", c.path, got, c.want)
		}
	}
}

// full is a writer that fails like a full disk.
type full struct{}

var errFull = errors.New("no space")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWrite(t *testing.T) {
	var text strings.Builder
	if err := Write(&text, fault{Kind: "pause", Targets: []string{"n1"}}); err != nil || text.String() != "kind: pause\ntimes: 0\ntargets:\n  - n1\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
	if err := Write(full{}, fault{}); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}
