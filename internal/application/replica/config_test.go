package replica

import (
	"slices"
	"strings"
	"testing"

	"lockcheck/history"
)

func TestPatterns(t *testing.T) {
	says := func(function history.Function, text string) map[history.Function][]string {
		return map[history.Function][]string{function: {text}}
	}
	command := []string{"true"}
	for name, c := range map[string]struct {
		config Config
		want   string // "" if it is right
	}{
		"right":             {Config{Command: command, Says: says(history.Did, `did (?P<id>\S+)`), Restart: RestartAlways}, ""},
		"says nothing":      {Config{Command: command}, ""},
		"key of the config": {Config{Command: command, Says: says(history.Holding, "leader"), Key: "k"}, ""},
		"no command":        {Config{}, "no command"},
		"restart":           {Config{Command: command, Restart: "sometimes"}, `no restart policy "sometimes"`},
		"function":          {Config{Command: command, Says: says(history.Asked, "x")}, `no line says "asked"`},
		"expression":        {Config{Command: command, Says: says(history.Did, `(?P<id>`)}, "did: "},
		"no ID":             {Config{Command: command, Says: says(history.Did, "did"), Key: "k"}, "no group (?P<id>"},
		"no key":            {Config{Command: command, Says: says(history.Holding, "leader")}, "no group (?P<key>"},
	} {
		_, err := c.config.patterns()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestEvent(t *testing.T) {
	config := Config{Name: "r", Command: []string{"true"}, Key: "usual", Says: map[history.Function][]string{
		history.Holding:   {`acquired (?P<key>\S*) token (?P<token>\S+)( by (?P<who>\S+))?`, `^leader$`},
		history.Releasing: {`releasing`},
		history.Did:       {`did (?P<id>\S*)`},
		history.Accepted:  {`accepted (?P<id>\S+)`},
	}}
	patterns, err := config.patterns()
	if err != nil {
		t.Fatal(err)
	}
	of := func(e history.Event) history.Event {
		e.Process = "r"
		if e.Type == "" {
			e.Type = history.Info
		}
		return e
	}
	long := strings.Repeat("x", maxGroup+1)
	for text, c := range map[string]struct {
		want    []history.Event
		reasons int
	}{
		"x acquired k token 7 by t1": {want: []history.Event{of(history.Event{F: history.Holding, Key: "k", Token: 7, Client: "t1"})}},
		"acquired k token 18446744073709551616": {want: []history.Event{of(history.Event{
			F: history.Holding, Key: "k", Note: `token "18446744073709551616" is not a whole number below 2^64`,
		})}},
		"leader":                {want: []history.Event{of(history.Event{F: history.Holding, Key: "usual"})}},
		"leaders":               {},
		"releasing, did 7":      {want: []history.Event{of(history.Event{F: history.Releasing, Key: "usual"}), of(history.Event{F: history.Did, ID: "7"})}},
		"accepted 7":            {want: []history.Event{of(history.Event{F: history.Accepted, ID: "7", Type: history.OK})}},
		"did ":                  {reasons: 1},
		"did " + long:           {reasons: 1},
		"did " + long[1:]:       {want: []history.Event{of(history.Event{F: history.Did, ID: long[1:]})}},
		"did \xff":              {want: []history.Event{of(history.Event{F: history.Did, ID: `"\xff"`})}},
		"did \xfe":              {want: []history.Event{of(history.Event{F: history.Did, ID: `"\xfe"`})}},
		"acquired  token 1":     {want: []history.Event{of(history.Event{F: history.Holding, Key: "usual", Token: 1})}},
		"nothing of the kind":   {},
		"\x00\x01\x02\xff\xfe":  {},
		strings.Repeat("(", 99): {},
	} {
		var got []history.Event
		reasons := 0
		for _, p := range patterns {
			e, matches, reason := p.event([]byte(text), config)
			switch {
			case reason != "":
				reasons++
			case matches:
				got = append(got, e)
			}
		}
		same := slices.EqualFunc(got, c.want, func(a, b history.Event) bool {
			return a.F == b.F && a.Key == b.Key && a.ID == b.ID && a.Token == b.Token && a.Client == b.Client && a.Note == b.Note && a.Type == b.Type && a.Process == b.Process
		})
		if !same || reasons != c.reasons {
			t.Errorf("%.40q: %+v and %d reasons, want %+v and %d", text, got, reasons, c.want, c.reasons)
		}
	}
}

// TestEnvironment: Python must not keep lines back that are looked for, unless the user says so.
func TestEnvironment(t *testing.T) {
	says := map[history.Function][]string{history.Did: {`did (?P<id>\S+)`}}
	for _, c := range []struct {
		config Config
		own    string
		want   string
	}{
		{Config{Says: says, Env: []string{"A=b"}}, "X=y", "X=y A=b PYTHONUNBUFFERED=1"},
		{Config{Env: []string{"A=b"}}, "X=y", "X=y A=b"},
		{Config{Says: says, Env: []string{"PYTHONUNBUFFERED="}}, "X=y", "X=y PYTHONUNBUFFERED="},
		{Config{Says: says}, "PYTHONUNBUFFERED=", "PYTHONUNBUFFERED="},
	} {
		if got := strings.Join(c.config.environment([]string{c.own}), " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.config, got, c.want)
		}
	}
}
