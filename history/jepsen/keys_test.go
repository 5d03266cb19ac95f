package jepsen

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"olympos.io/encoding/edn"

	"lockcheck/checker"
	"lockcheck/history"
)

// TestKeys reads histories of two keys that two processes hold at once, one each. With only one key, each
// would be a violation.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		file, one, other string // file, and the texts that distinguish the keys
		certain          bool   // detected without Options.Keys
		keys             string // Options.Keys
		locks            []string
	}{
		{"independent-acquire", "[0 nil]", "[1 nil]", false, KeysIndependent, []string{"0", "1"}},
		{"keyword-keys", ":value :a", ":value :b", false, KeysValue, []string{":a", ":b"}},
		{"string-keys", `"a"`, `"b"`, false, KeysValue, []string{"a", "b"}},
		{"int-keys", ":value 0", ":value 1", false, KeysValue, []string{"0", "1"}},
		{"map-int-keys", "{:key 0}", "{:key 1}", true, ":key", []string{"0", "1"}},
		{"map-string-keys", `{:key "a"}`, `{:key "b"}`, true, ":key", []string{"a", "b"}},
		{"tagged-tuple", "{:key 0 ", "{:key 1 ", true, KeysIndependent, []string{"0", "1"}},
		{"lock-field", `"a"`, `"b"`, true, ":lock", []string{"a", "b"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", "keys", c.file+".edn"))
			if err != nil {
				t.Fatal(err)
			}
			two := string(raw)
			same := strings.ReplaceAll(two, c.other, c.one)
			h, err := Read(strings.NewReader(two), Options{})
			if c.certain != (err == nil) || err != nil && !strings.Contains(err.Error(), "--keys") {
				t.Errorf("certain %t, want %t: %v", err == nil, c.certain, err)
			}
			if err == nil && !slices.Equal(locksOf(h), c.locks) {
				t.Errorf("locks %v, want %v", locksOf(h), c.locks)
			}
			told := Options{Keys: c.keys}
			if h, err = Read(strings.NewReader(two), told); err != nil || !slices.Equal(locksOf(h), c.locks) {
				t.Errorf("told what names a lock: %v", err)
			}
			for _, b := range []struct {
				text string
				o    Options
				want checker.Verdict
			}{
				{two, told, checker.Valid}, {two, Options{Keys: KeysNone}, checker.Violation},
				{same, told, checker.Violation}, {same, Options{}, checker.Violation},
			} {
				if r := judge(t, b.text, b.o); r.Verdict != b.want {
					t.Errorf("%+v: %s, want %s of\n%s", b.o, r.Sentence, b.want, b.text)
				}
			}
		})
	}
}

func locksOf(h *history.History) []string {
	var locks []string
	for _, e := range h.Events {
		if e.F == history.Acquire && !slices.Contains(locks, e.Key) {
			locks = append(locks, e.Key)
		}
	}
	return locks
}

// step is one operation with its answer, of a process that waits for it.
func step(process int, f, value, answer string) string {
	return fmt.Sprintf("{:type :invoke :f :%s :process %d :value %s}\n{:type :ok :f :%s :process %d :value %s}\n", f, process, value, f, process, answer)
}

// TestKeysOrNot reads histories whose values may be keys or anything else. Each is judged in one way only, or
// refused.
func TestKeysOrNot(t *testing.T) {
	// Two processes hold locks at once. Each acquires with its own value and may release with another.
	atOnce := func(first, firstAnswer, second, secondAnswer, firstRelease, secondRelease string) string {
		return step(0, "acquire", first, firstAnswer) + step(1, "acquire", second, secondAnswer) +
			step(0, "release", firstRelease, "nil") + step(1, "release", secondRelease, "nil")
	}
	same := func(first, second string) string { return atOnce(first, first, second, second, first, second) }
	third := step(2, "acquire", "[0 nil]", "[0 nil]") // gives a key two processes
	for _, c := range []struct {
		name, text string
		keys       string
		want       checker.Verdict // "" for refused
	}{
		{"no values", same("nil", "nil"), "", checker.Violation},
		{"fencing tokens in the answers", atOnce("nil", "7", "nil", "8", "7", "8"), "", checker.Violation},
		{"clients in the answers", same("nil", "nil") + atOnce("nil", `"n1"`, "nil", `"n2"`, "nil", "nil") + step(0, "acquire", "nil", `"n1"`), "", ""},
		{"an identity for each operation", atOnce(`"a"`, `{:client "n1" :uid "a"}`, `"b"`, `{:client "n2" :uid "b"}`, `"c"`, `"d"`), "", checker.Violation},
		{"an identity for each attempt", same(`"a"`, `"b"`), "", ""},
		{"that the user says is none of a lock", same(`"a"`, `"b"`), KeysNone, checker.Violation},
		{"that the user says is one", same(`"a"`, `"b"`), KeysValue, checker.Valid},
		{"whose client it is", same(`{:client "n1"}`, `{:client "n2"}`), "", checker.Violation},
		{"a field that may be anything", same("{:resource 1}", "{:resource 2}"), "", ""},
		{"that the user says is a lock", same("{:resource 1}", "{:resource 2}"), ":resource", checker.Valid},
		{"that is always the same", same("{:resource 1}", "{:resource 1}"), "", checker.Violation},
		{"the lock in the answers alone", atOnce("nil", "{:mutex 1}", "nil", "{:mutex 2}", "nil", "nil"), "", ""},
		{"and the user says so", atOnce("nil", "{:mutex 1}", "nil", "{:mutex 2}", "nil", "nil"), ":mutex", checker.Valid},
		{"and it is the same", atOnce("nil", "{:mutex 1}", "nil", "{:mutex 1}", "nil", "nil"), ":mutex", checker.Violation},
		{"one with a key, one without", same("{:key 1}", "nil"), "", ""},
		{"one by a tuple, one by a field", same("[0 nil]", "{:key 1}"), "", ""},
		{"pairs", third + step(2, "release", "[0 nil]", "[0 nil]") + same("[0 nil]", "[0 nil]"), "", checker.Violation},
		{"pairs, of two keys", third + step(2, "release", "[0 nil]", "[0 nil]") + same("[0 nil]", "[1 nil]"), "", checker.Valid},
		{"pairs of a key and what may be one", same("[0 :a]", "[0 :b]"), "", ""},
		{"pairs of a key and a token", atOnce("[0 nil]", "[0 {:fence 4}]", "[0 nil]", "[0 {:fence 5}]", "[0 nil]", "[0 nil]"), "", checker.Violation},
		{"a tuple within which there is a key", same("[0 {:key 1}]", "[0 {:key 2}]"), "", ""},
		{"a field, and a pair that is of something else", same(`{:key 0}`, `{:key 0}`) + step(2, "acquire", "{:key 1}", "[5 6]"), "", checker.Violation},
		{"three things", same("[0 1 nil]", "[0 2 nil]"), "", ""},
		{"1 and :1", same("{:key 1}", "{:key :1}"), "", checker.Valid},
		{`1 and "1"`, same("{:key 1}", `{:key "1"}`), "", checker.Valid},
		{"1 and 1N", same("{:key 1}", "{:key 1N}"), "", checker.Violation},
		{"a vector and a list", same("{:key [1 :a]}", "{:key (1 :a)}"), "", checker.Violation},
		{"a text and a symbol", same("{:key a}", `{:key "a"}`), "", checker.Valid},
		{"decimal numbers", same("{:key 1.5}", "{:key 1.5M}"), "", ""},
		{"nil", third + step(2, "release", "[0 nil]", "[0 nil]") + same("[nil nil]", "[0 nil]"), "", checker.Valid},
		{"nil twice", same("[nil nil]", "[nil nil]"), "", checker.Violation},
		{"broken text", same("{:key \"\xff\"}", "{:key \"\xfe\"}"), "", ""},
		{"halves of letters", same(`{:key "\ud800"}`, `{:key "\udc00"}`), "", ""},
		{"two names", `{:type :invoke :f :acquire :process 0 :lock "a" :value {:key "b"}}`, "", ""},
		{"one name twice", `{:type :invoke :f :acquire :process 0 :lock "a" :value {:key "a"}}`, "", checker.Undecided},
		{"another key in the answer", step(0, "acquire", "{:key 1}", "{:key 2}"), "", ""},
		{"a release of a key where none was acquired", step(0, "acquire", "nil", "nil") + step(0, "release", "[0 nil]", "[0 nil]"), "", ""},
		{"a tuple of nothing", "{:type :invoke :f :acquire :process 0 :value #jepsen.independent.Tuple 4}", "", ""},
		{"no such field", same("{:key 1}", "{:key 2}"), ":lock", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(c.text), Options{Keys: c.keys})
			var format *FormatError
			if c.want == "" {
				if !errors.As(err, &format) {
					t.Errorf("got %v, want that it is refused", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r := checker.Check(h, checker.Options{}); r.Verdict != c.want {
				t.Errorf("%s: %s, want %s", r.Verdict, r.Sentence, c.want)
			}
		})
	}
}

// TestSets judges sets of jepsen.independent, several of which have the same elements.
func TestSets(t *testing.T) {
	adds := step(0, "add", "[0 5]", "[0 5]") + step(0, "add", "[1 5]", "[1 5]")
	whole := step(1, "read", "[0 nil]", "[0 #{5}]") + step(1, "read", "[1 nil]", "[1 #{5}]")
	plain := step(0, "add", "1", "1") + step(0, "add", "2", "2")
	unknown := plain + "{:type :invoke :f :add :process 7 :value 3}{:type :info :f :add :process 7 :value 3}"
	for _, c := range []struct {
		name, text string
		want       checker.Verdict // "" for refused
		finals     int
	}{
		{"all there", adds + whole, checker.Valid, 2},
		{"of another key", adds + strings.Replace(whole, "[1 #{5}]", "[1 #{}]", 1), checker.Violation, 2},
		{"one of them never read", adds + step(1, "read", "[0 nil]", "[0 #{5}]"), checker.Undecided, 1},
		{"pairs that are elements", adds + step(1, "read", "nil", "#{[0 5] [1 5]}"), "", 0},
		{"by a field", `{:type :invoke :f :add :process 0 :key :x :value 1}{:type :ok :f :add :process 0 :key :x :value 1}{:type :invoke :f :read :process 0 :key :x}{:type :ok :f :read :process 0 :key :x :value [1 2]}`, checker.Violation, 1},
		{"a read that names none", adds + step(1, "read", "nil", "#{5}"), "", 0},
		{"a vector of two", plain + step(1, "read", "nil", "[1 2]"), checker.Valid, 1},
		{"two reads that agree", plain + step(1, "read", "nil", "[1 2]") + step(2, "read", "nil", "[2 1]"), checker.Valid, 1},
		{"two reads that differ", plain + step(1, "read", "nil", "[1]") + step(2, "read", "nil", "[1 2]"), "any", 2},
		{"the first of them before all was added", step(1, "read", "nil", "[]") + plain + step(2, "read", "nil", "[1 2]"), checker.Valid, 1},
		{"in what may have come in between", unknown + step(1, "read", "nil", "[1 2]") + step(2, "read", "nil", "[1 2 3]"), checker.Valid, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(c.text), Options{})
			if (err == nil) != (c.want != "") {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			finals := 0
			for _, e := range h.Events {
				if e.F == history.Final {
					finals++
				}
			}
			if r := checker.Check(h, checker.Options{}); c.want != "any" && r.Verdict != c.want || finals != c.finals {
				t.Errorf("%s: %s, want %s; %d finals, want %d", r.Verdict, r.Sentence, c.want, finals, c.finals)
			}
		})
	}
}

// TestText: values have the same text if and only if Clojure calls them equal.
func TestText(t *testing.T) {
	classes := [][]string{
		{"1", "1N", "+1"}, {`"1"`}, {":1"}, {`\1`}, {"nil"}, {`"nil"`}, {"true"}, {`"true"`}, {":true"},
		{"a"}, {`"a"`}, {`\a`}, {":a"}, {":b/a"}, {`"b/a"`}, {`":a"`}, {`"'a"`}, {`"[1]"`},
		{"[1]", "(1)"}, {"[[1]]"}, {"[1 2]", "(1 2)"}, {"#{1 2}", "#{2 1}"}, {"#{[1] 2}"},
		{"{:a 1 :b 2}", "{:b 2 :a 1}"}, {"{:a 1}"}, {"{[1] 1}"}, {"[:a 1]"}, {"{}"}, {"[]", "()"}, {"#{}"}, {`""`},
		{`#uuid "1"`}, {`#x "1"`}, {`#inst "2026-01-01T00:00:00Z"`, `#inst "2026-01-01T01:00:00+01:00"`}, {`"a b"`},
	}
	of := make(map[string]string)
	for i, class := range classes {
		for _, source := range class {
			var value any
			if err := edn.UnmarshalString(source, &value); err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			got, exact := text(value)
			id := fmt.Sprint(i)
			if before := cmp.Or(of[got], id); before != id || !exact {
				t.Errorf("%s: %s, as class %s, exact %t", source, got, before, exact)
			}
			of[got] = id
		}
	}
	for _, source := range []string{"1.0", "1M", "1.5M", `"\ud800"`, "[1 {:a #{2.5}}]"} {
		var value any
		if err := edn.UnmarshalString(source, &value); err != nil {
			t.Fatal(err)
		}
		if got, exact := text(value); exact {
			t.Errorf("%s: %s is said to be exact", source, got)
		}
	}
}

// TestKeysAtRandom writes random holds of random keys in each form of Jepsen. All forms have the same
// overlaps, and none across keys.
func TestKeysAtRandom(t *testing.T) {
	keys := []string{"0", "1", `"1"`, ":1", "nil", "[0 1]", `"a b"`, ":a", "a", `"a"`, "{:a 1}", "#{0 1}"}
	forms := []struct {
		name, keys string
		op, value  func(key string) string
	}{
		{"pair", KeysIndependent, nothing, func(key string) string { return "[" + key + " nil]" }},
		{"pair, found out", "", nothing, func(key string) string { return "[" + key + " nil]" }},
		{"tuple", "", nothing, func(key string) string { return "#jepsen.independent.Tuple[" + key + " nil]" }},
		{"map entry", "", nothing, func(key string) string { return "#clojure.lang.MapEntry[" + key + " nil]" }},
		{"field of the value", "", nothing, func(key string) string { return "{:grant nil :key [:k " + key + "]}" }},
		{"field of the operation", "", func(key string) string { return ":lock [" + key + "] " }, func(string) string { return "nil" }},
		{"another field", ":path", nothing, func(key string) string { return "{:path [" + key + "]}" }},
		{"value", KeysValue, nothing, func(key string) string { return "[:k " + key + "]" }},
	}
	refused := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 5))
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		holds, want := randomHolds(random, keys[:1+random.IntN(3)])
		for _, form := range forms {
			var text strings.Builder
			for _, h := range holds {
				fmt.Fprintf(&text, "{:type :%s :f :%s :process %d :time %d %s:value %s}\n", h.kind, h.f, h.process, h.time, form.op(h.key), form.value(h.key))
			}
			h, err := Read(strings.NewReader(text.String()), Options{Keys: form.keys, Lease: time.Hour})
			if err != nil && form.name == "pair, found out" {
				if want != 0 {
					t.Fatalf("seed %d: refused, though two processes hold one key: %v\n%s", seed, err, &text)
				}
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, form.name, err, &text)
			}
			if err := history.Validate(h); err != nil {
				t.Fatal(err)
			}
			if got := checker.Check(h, checker.Options{}).Overlaps.Total(); got != want {
				t.Fatalf("seed %d, %s: %d overlaps, want %d\n%s", seed, form.name, got, want, &text)
			}
		}
	}
	if refused > 20 {
		t.Errorf("%d of 60 were refused", refused)
	}
}

func nothing(string) string { return "" }

// historyLine is one line of a history.
type historyLine struct {
	kind, f, key  string
	process, time int
}

// randomHolds has four processes take and release keys, and counts the pairs of holds of one key that
// overlap.
func randomHolds(random *rand.Rand, keys []string) ([]historyLine, int64) {
	type hold struct {
		key                string
		process, from, end int
	}
	var moments []historyLine
	var holds []hold
	for process := range 4 {
		at := 1 + random.IntN(40)
		for range 1 + random.IntN(3) {
			h := hold{keys[random.IntN(len(keys))], process, 4*at + process, 0}
			at += 1 + random.IntN(20)
			h.end = 4*at + process
			at += 1 + random.IntN(40)
			holds = append(holds, h)
			moments = append(moments, historyLine{"invoke", "acquire", h.key, process, h.from}, historyLine{"ok", "acquire", h.key, process, h.from},
				historyLine{"invoke", "release", h.key, process, h.end}, historyLine{"ok", "release", h.key, process, h.end})
		}
	}
	overlaps := int64(0)
	for i, a := range holds {
		for _, b := range holds[:i] {
			if a.key == b.key && a.process != b.process && a.from < b.end && b.from < a.end {
				overlaps++
			}
		}
	}
	slices.SortStableFunc(moments, func(a, b historyLine) int { return cmp.Compare(a.time, b.time) })
	return moments, overlaps
}
