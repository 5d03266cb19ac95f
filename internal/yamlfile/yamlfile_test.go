package yamlfile

import (
	"errors"
	"strings"
	"testing"
)

type fault struct {
	Kind    string   `yaml:"kind"`
	Times   int      `yaml:"times"`
	Targets []string `yaml:"targets,omitempty"`
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		left       fault
	}{
		"all of it":          {text: "kind: pause\ntimes: 2\ntargets: [n1]\n", left: fault{"pause", 2, []string{"n1"}}},
		"the rest stays":     {text: "kind: pause\n", left: fault{Kind: "pause", Times: 7}},
		"an unknown key":     {text: "kind: pause\ntime: 2\n", want: `line 2: there is no key "time"`},
		"several":            {text: "kinds: pause\ntime: 2\n", want: `line 1: there is no key "kinds"; line 2: there is no key "time"`},
		"a key with a space": {text: "the kind: pause\n", want: `line 1: there is no key "the kind"`},
		"another type":       {text: "times: often\n", want: "line 1: cannot unmarshal !!str `often` into int"},
		"no YAML":            {text: "kind: [", want: "yaml: line 1"},
		"nothing":            {text: "", want: "it is empty"},
		"a comment alone":    {text: "# kind: pause\n", want: "it is empty"},
		"two":                {text: "kind: pause\n---\nkind: kill\n", want: "more than one"},
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
			if err != nil || got.Kind != c.left.Kind || got.Times != c.left.Times || len(got.Targets) != len(c.left.Targets) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no room")

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
