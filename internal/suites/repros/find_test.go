package repros

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/internal/runs"
)

// examples are the findings of the clients that users copy.
const examples = "../../../examples"

// applications has those that public bug reports are about, with their findings.
const applications = "../../runs/testdata/applications"

// lockFile is the smallest one with a lease.
const lockFile = "client: {command: ['true']}\nservers: memory\nlease: 1s\n"

// write makes files in a folder of the test, and returns that.
func write(t *testing.T, texts map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// usage says whether an error is a *runs.UsageError with a text in it, or nil for "".
func usage(err error, text string) bool {
	var usage *runs.UsageError
	if text == "" {
		return err == nil
	}
	return errors.As(err, &usage) && strings.Contains(err.Error(), text)
}

// TestFind: a reproduction by its name, for one of many locks, and from a file.
func TestFind(t *testing.T) {
	folder := write(t, map[string]string{
		"a.yaml":       "name: a\nlock: own.yaml\nexpect: {verdict: valid}\n",
		"many.yaml":    "name: many\neach: token\nexpect: {verdict: valid}\n",
		"own.yaml":     lockFile,
		"tokens.yaml":  lockFile + "tokens: true\n",
		"endless.yaml": strings.Replace(lockFile, "lease: 1s\n", "", 1),
	})
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct{ name, lock, found, of, err string }{
		{"redis-orphan", "", "redis-orphan", "redis-noexpiry", ""},
		{"moon-landing", "", "", "", `unknown reproduction "moon-landing"`},
		{"moon-landing", "redis", "", "", `unknown reproduction "moon-landing"`},
		{"redis-orphan", "redis", "", "", "redis-orphan is for the lock redis-noexpiry alone"},
		{"holder-pause", "", "", "", "holder-pause is for many locks, locks with a lease"},
		{"holder-pause", "redis", "holder-pause-redis", "redis", ""},
		{"holder-pause-redis", "", "holder-pause-redis", "redis", ""},
		{"holder-pause-redis", "etcd", "", "", "for the lock redis alone"},
		{"holder-pause", at("own.yaml"), "holder-pause-own", at("own.yaml"), ""},
		{"holder-pause", at("own.yaml") + "+watchdog", "holder-pause-own+watchdog", at("own.yaml") + "+watchdog", ""},
		{"holder-pause", at("endless.yaml"), "", "", "holder-pause is for locks with a lease"},
		{"holder-pause", at("missing.yaml"), "", "", "no such file"},
		{"holder-pause", "door", "", "", `unknown lock "door"`},
		{"holder-pause-fenced", at("tokens.yaml"), "holder-pause-fenced-tokens", at("tokens.yaml"), ""},
		{"holder-pause-fenced", at("own.yaml"), "", "", "is for locks with a lease and fencing tokens"},
		{at("a.yaml"), "", "a", at("own.yaml"), ""},
		{at("a.yaml"), "redis", "", "", "a is for the lock " + at("own.yaml") + " alone"},
		{at("many.yaml"), "", "", "", "many is for many locks"},
		{at("many.yaml"), "etcd", "many-etcd", "etcd", ""},
		{at("missing.yaml"), "", "", "", "no such file"},
	} {
		r, err := Find(c.name, c.lock)
		if !usage(err, c.err) {
			t.Errorf("%s of %q: error %v, want %q in it", c.name, c.lock, err, c.err)
		}
		if err == nil && (r.Name != c.found || r.Setup.Lock != c.of) {
			t.Errorf("%s of %q is %s of %s, want %s of %s", c.name, c.lock, r.Name, r.Setup.Lock, c.found, c.of)
		}
	}
}

// TestShortLease: sections must fit into the lease, also of a lock that has a shorter one.
func TestShortLease(t *testing.T) {
	folder := write(t, map[string]string{
		"short.yaml": strings.Replace(lockFile, "1s", "400ms", 1),
		"long.yaml":  strings.Replace(lockFile, "1s", "3s", 1),
	})
	for name, want := range map[string]time.Duration{"short.yaml": 2 * time.Second, "long.yaml": 0} {
		r, err := Find("holder-pause", filepath.Join(folder, name))
		if err != nil || r.Setup.TTL != want {
			t.Errorf("%s: a lease of %s, %v, want %s", name, r.Setup.TTL, err, want)
		}
	}
}

// TestFromFile: locks are looked for from the folder of the file, in all parts of it, and
// what a file gets wrong is said with its path.
func TestFromFile(t *testing.T) {
	const good = `name: x
lock: near/own.yaml+watchdog
expect: {verdict: valid}
control:
  setup: {lock: ../far.yaml}
fast:
  setup: {lock: /abs.yaml}
`
	for _, c := range []struct {
		name, old, replacement string
		finding, control, fast string // locks
		err                    string
	}{
		{"as it is", "", "", "near/own.yaml+watchdog", "../far.yaml", "/abs.yaml", ""},
		{"built-in locks", "near/own.yaml+watchdog", "etcd", "etcd", "../far.yaml", "/abs.yaml", ""},
		{"the same lock", "{lock: ../far.yaml}", "{concurrency: 2}", "near/own.yaml+watchdog", "near/own.yaml+watchdog", "/abs.yaml", ""},
		{"no name", "name: x\n", "", "", "", "", "it has no name"},
		{"a name of ours", "name: x", "name: redis-orphan", "", "", "", `"redis-orphan" is the name of one of lockcheck's own reproductions`},
		{"a name of many of ours", "name: x", "name: holder-pause", "", "", "", `"holder-pause" is the name of one`},
		{"a key that there is not", "lock: n", "loc: n", "", "", "", "x.yaml: line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, map[string]string{"x.yaml": strings.Replace(good, c.old, c.replacement, 1)})
			r, err := FromFile(filepath.Join(folder, "x.yaml"))
			if !usage(err, c.err) {
				t.Fatalf("error %v, want %q in it", err, c.err)
			}
			if err != nil {
				return
			}
			for form, want := range map[Form]string{{}: c.finding, {Control: true}: c.control, {Fast: true}: c.fast} {
				o, err := optionsOf(r, form)
				if want != "etcd" && !filepath.IsAbs(want) {
					want = filepath.Join(folder, want)
				}
				if err != nil || o.Lock != want {
					t.Errorf("%+v: lock %s, %v, want %s", form, o.Lock, err, want)
				}
			}
		})
	}
}

// TestIn: files and folders, without what is no reproduction, and no name twice.
func TestIn(t *testing.T) {
	folder := write(t, map[string]string{
		"b/a.yaml":   "name: a\nlock: redis\nexpect: {verdict: valid}\n",
		"b/own.yaml": lockFile, "b/notes.txt": "name: [", "b/list.yaml": "- expect\n", "b/empty.yaml": "", "own/own.yaml": lockFile,
		"c/b.yml":      "name: b\nlock: redis\nexpect: {verdict: valid}\n",
		"twice/a.yaml": "name: a\nlock: redis\nexpect: {verdict: valid}\n",
		"wrong/a.yaml": "expect: {verdikt: valid}\n", "torn/a.yaml": "name: [",
		"each/a.yaml": "name: each\neach: [redis, etcd]\nexpect: {verdict: valid}\n",
	})
	for _, c := range []struct {
		paths, names []string
		err          string
	}{
		{[]string{"b"}, []string{"a"}, ""},
		{[]string{"b", "c"}, []string{"a", "b"}, ""},
		{[]string{"c/b.yml"}, []string{"b"}, ""},
		{[]string{"each"}, []string{"each-redis", "each-etcd"}, ""},
		{[]string{"own"}, nil, "there is no reproduction in it"},
		{[]string{"b/own.yaml"}, nil, `there is no key "client"`},
		{[]string{"b", "twice"}, nil, "another reproduction called a"},
		{[]string{"wrong"}, nil, `line 1: there is no key "verdikt"`},
		{[]string{"torn"}, nil, "a.yaml"},
		{[]string{"missing"}, nil, "no such file"},
	} {
		var paths []string
		for _, path := range c.paths {
			paths = append(paths, filepath.Join(folder, path))
		}
		all, err := In(paths)
		if !usage(err, c.err) {
			t.Errorf("%q: error %v, want %q in it", c.paths, err, c.err)
		}
		var names []string
		for _, r := range all {
			names = append(names, r.Name)
		}
		slices.Sort(c.names)
		if slices.Sort(names); err == nil && !slices.Equal(names, c.names) {
			t.Errorf("%q: %q, want %q", c.paths, names, c.names)
		}
	}
}

// TestExamples: every finding of examples/ and of applications can be prepared, says where it comes
// from, and has a control that expects something else.
func TestExamples(t *testing.T) {
	all, err := In([]string{examples, applications})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) { checkData(t, r) })
	}
}
