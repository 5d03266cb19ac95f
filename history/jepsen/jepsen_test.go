package jepsen

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

func judge(t *testing.T, text string, o Options) checker.Results {
	t.Helper()
	h, err := Read(strings.NewReader(text), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Validate(h); err != nil {
		t.Fatalf("not valid: %v", err)
	}
	return checker.Check(h, checker.Options{})
}

// TestRead judges small histories of other tools, each bad one with a good counterpart.
func TestRead(t *testing.T) {
	const inTurn = `{:type :invoke, :f :acquire, :process 0, :time 10, :index 0}
{:type :ok, :f :acquire, :process 0, :time 20, :index 1}
{:type :invoke, :f :release, :process 0, :time 30, :index 2}
{:type :ok, :f :release, :process 0, :time 40, :index 3}
{:type :info, :f :start, :process :nemesis, :time 41, :value {:isolated #{"n1"}}}
{:type :invoke, :f :acquire, :process 1, :time 15, :index 4}
{:type :ok, :f :acquire, :process 1, :time 50, :index 5}
{:type :invoke, :f :release, :process 1, :time 60, :index 6}
{:type :ok, :f :release, :process 1, :time 70, :index 7}
`
	const atOnce = `[#jepsen.history.Op{:type :invoke :f :acquire :process 0 :time 10 :value nil}
 #jepsen.history.Op{:type :ok :f :acquire :process 0 :time 20}
 #jepsen.history.Op{:type :invoke :f :acquire :process 1 :time 25}
 #jepsen.history.Op{:type :ok :f :acquire :process 1 :time 30}
 #jepsen.history.Op{:type :invoke :f :release :process 1 :time 35}
 #jepsen.history.Op{:type :ok :f :release :process 1 :time 36}
 #jepsen.history.Op{:type :invoke :f :release :process 0 :time 40}
 #jepsen.history.Op{:type :ok :f :release :process 0 :time 50}]`
	// The release of process 0 fails because its lease is gone. It ends the hold all the same, before the
	// next one begins.
	leaseGone := strings.Replace(inTurn, "{:type :ok, :f :release, :process 0, :time 40, :index 3}", `{:type :fail, :f :release, :process 0, :time 40, :error "lease not found"}`, 1)
	const added = `{:type :invoke :f :add :value 0 :process 0}
{:type :ok :f :add :value 0 :process 0}
{:type :invoke :f :add :value 1 :process 1}
{:type :info :f :add :value 1 :process 1 :error :timeout}
{:type :invoke :f :add :value 2 :process 0}
{:type :ok :f :add :value 2 :process 0}
{:type :invoke :f :read :process 2}
`
	fenced := func(second string) string {
		text := strings.Replace(inTurn, ":f :acquire, :process 0, :time 20", ":f :acquire, :value {:fence 7}, :process 0, :time 20", 1)
		return strings.Replace(strings.Replace(text, ":process 1, :time 15", ":process 1, :time 45", 1),
			":f :acquire, :process 1, :time 50", ":f :acquire, :value {:fence "+second+"}, :process 1, :time 50", 1)
	}
	for _, c := range []struct {
		name, text string
		verdict    checker.Verdict
		property   checker.Property // that is violated
	}{
		{"a lock, in turn", inTurn, checker.Valid, ""},
		{"a lock, at once", atOnce, checker.Violation, checker.MutualExclusion},
		{"a lock, a release that failed", leaseGone, checker.Valid, ""},
		{"a set, all there", added + "{:type :ok :f :read :value #{0 2} :process 2}", checker.Valid, ""},
		{"a set, with what was not acknowledged", added + "{:type :ok :f :read :value #{0 1 2} :process 2}", checker.Valid, ""},
		{"a set, one lost", added + "{:type :ok :f :read :value #{0} :process 2}", checker.Violation, checker.NoLostUpdate},
		{"a set, one twice", added + "{:type :ok :f :read :value [0 2 2] :process 2}", checker.Violation, checker.NoLostUpdate},
		{"a set, one from nowhere", added + "{:type :ok :f :read :value [0 2 9] :process 2}", checker.Violation, checker.NoLostUpdate},
		{"a set, read without a value", added + "{:type :ok :f :read :value nil :process 2}", checker.Undecided, ""},
		{"a set, empty when it was read", added + "{:type :ok :f :read :value #{} :process 2}", checker.Violation, checker.NoLostUpdate},
		{"a set, read once more without a value", added + "{:type :ok :f :read :value #{0 2} :process 2}{:type :invoke :f :read :process 2}{:type :ok :f :read :process 2}", checker.Valid, ""},
		{"a set, added to before it was read without a value", added + "{:type :ok :f :read :value #{0 2} :process 2}{:type :invoke :f :add :value 3 :process 0}{:type :ok :f :add :value 3 :process 0}{:type :invoke :f :read :process 2}{:type :ok :f :read :process 2}", checker.Valid, ""},
		{"a set, never read", added, checker.Undecided, ""},
		{"a set, added to after its last read", added + "{:type :ok :f :read :value #{0 2} :process 2}{:type :invoke :f :add :value 3 :process 0}{:type :ok :f :add :value 3 :process 0}", checker.Valid, ""},
		{"a set, added to during its last read", strings.Replace(added, "{:type :ok :f :add :value 2 :process 0}\n", "", 1) + "{:type :ok :f :add :value 2 :process 0}{:type :ok :f :read :value #{0} :process 2}", checker.Valid, ""},
		{"a set by its key, added to during its last read", duringRead("4 5"), checker.Valid, ""},
		{"a set by its key, and what was added before is missing", duringRead("4"), checker.Violation, checker.NoLostUpdate},
		{"two keys, one released", twoKeys("a"), checker.Violation, checker.MutualExclusion},
		{"two keys, the other released", twoKeys("b"), checker.Valid, ""},
		{"tokens that increase", fenced("8"), checker.Valid, ""},
		{"tokens that do not", fenced("7"), checker.Violation, checker.FencingOrder},
		{"nothing", "", checker.Undecided, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judge(t, c.text, Options{})
			if r.Verdict != c.verdict || c.property != "" && r.Finding(c.property).Verdict != checker.Violation {
				t.Errorf("%s: %s, want %s of %s", r.Verdict, r.Sentence, c.verdict, c.property)
			}
		})
	}
	// Without a lease nothing is said of validity or of causes; with a known lease a hold beyond it is no
	// double grant.
	unknown := judge(t, atOnce, Options{})
	if f := unknown.Finding(checker.MutualExclusion); unknown.Overlaps.Unclassified != 1 || unknown.Overlaps.Total() != 1 || f.Causes != nil || f.Violations[0].Why != "" {
		t.Errorf("%+v %+v", unknown.Overlaps, f)
	}
	if o := judge(t, atOnce, Options{Lease: 12}).Overlaps; o.UsesAfterExpiry != 1 || o.DoubleGrants != 0 {
		t.Errorf("%+v, want one use after expiry", o)
	}
	if o := judge(t, atOnce, Options{Lease: 90}).Overlaps; o.DoubleGrants != 1 {
		t.Errorf("%+v, want one double grant", o)
	}
	if lost := judge(t, added+"{:type :ok :f :read :value #{0} :process 2}", Options{}).Updates; lost.Lost != 1 || lost.Acknowledged != 2 {
		t.Errorf("%+v, want 1 of 2 lost", lost)
	}
}

// twoKeys has process 0 take a and b and release one of them. Then process 1 takes b.
func twoKeys(released string) string {
	do := func(f, key string, process, at int) string {
		return fmt.Sprintf("{:type :invoke :f :%s :process %d :time %d :value {:key %q}}{:type :ok :f :%s :process %d :time %d}\n", f, process, at, key, f, process, at+1)
	}
	rest := "b"
	if released == "b" {
		rest = "a"
	}
	return do("acquire", "a", 0, 10) + do("acquire", "b", 0, 20) + do("release", released, 0, 30) +
		do("acquire", "b", 1, 40) + do("release", "b", 1, 50) + do("release", rest, 0, 60)
}

// TestOtherLocks judges semaphores and reentrant locks by their own rules: what one kind permits is wrong for
// another.
func TestOtherLocks(t *testing.T) {
	do := func(f string, process int, at int, value string) string {
		return fmt.Sprintf("{:type :invoke :f :%s :process %d :time %d}{:type :ok :f :%s :process %d :time %d :value %s}\n", f, process, at, f, process, at+1, value)
	}
	two := do("acquire", 0, 10, "nil") + do("acquire", 1, 20, "nil") + do("release", 0, 30, "nil") + do("release", 1, 40, "nil")
	three := do("acquire", 2, 5, "nil") + two + do("release", 2, 50, "nil")
	nested := do("acquire", 0, 10, "{:fence 3}") + do("acquire", 0, 20, "{:fence 3}") + do("release", 0, 30, "nil") + do("release", 0, 40, "nil") + do("acquire", 1, 50, "{:fence 4}")
	between := do("acquire", 0, 10, "{:fence 3}") + do("acquire", 0, 20, "{:fence 3}") + do("release", 0, 30, "nil") + do("acquire", 1, 35, "{:fence 4}") + do("release", 0, 40, "nil") + do("release", 1, 60, "nil")
	thrice := do("acquire", 0, 5, "{:fence 3}") + nested
	otherToken := strings.Replace(nested, "{:fence 3}", "{:fence 2}", 1)
	semaphore, reentrant, never := Options{Permits: 2, Lease: time.Hour}, Options{Reentrant: 2, Lease: time.Hour}, Options{Lease: time.Hour}
	for _, c := range []struct {
		name, text      string
		o               Options
		overlap, answer checker.Verdict // of mutual exclusion, of linearizability
		verdict         checker.Verdict
	}{
		{"two in a semaphore of two", two, semaphore, checker.Valid, checker.Valid, checker.Valid},
		{"two in a mutex", two, never, checker.Violation, checker.Violation, checker.Violation},
		{"three in a semaphore of two", three, semaphore, checker.Violation, checker.Violation, checker.Violation},
		{"twice in a reentrant lock", nested, reentrant, checker.Valid, checker.Valid, checker.Valid},
		{"twice in a mutex", nested, never, checker.Valid, checker.Violation, checker.Violation},
		{"too often in a reentrant lock", thrice, reentrant, checker.Valid, checker.Violation, checker.Valid},
		{"another one in between", between, reentrant, checker.Violation, checker.Violation, checker.Violation},
		{"nested, with another token", otherToken, reentrant, checker.Valid, checker.Violation, checker.Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judge(t, c.text, c.o)
			if r.Verdict != c.verdict {
				t.Errorf("%s: %s, want %s", r.Verdict, r.Sentence, c.verdict)
			}
			if got := r.Finding(checker.MutualExclusion).Verdict; got != c.overlap {
				t.Errorf("mutual exclusion is %s, want %s", got, c.overlap)
			}
			if got := r.Finding(checker.Linearizability).Verdict; got != c.answer {
				t.Errorf("linearizability is %s, want %s", got, c.answer)
			}
			if f := r.Finding(checker.Assumptions); f.Verdict == checker.Broken {
				t.Errorf("the checkers disagree: %s", f.Summary)
			}
		})
	}
}

func TestReadMalformed(t *testing.T) {
	for _, c := range []struct {
		name, text string
		operation  int
	}{
		{"no EDN", "{:type", 1},
		{"no map", "[1 2]", 1},
		{"no type", "{:f :acquire :process 0}", 1},
		{"unknown type", "{:type :maybe :f :acquire :process 0}", 1},
		{"no integer time", "{:type :invoke :f :acquire :process 0 :time 1.5}", 1},
		{"completed but not invoked", "{:type :ok :f :acquire :process 0}", 1},
		{"completed as something else", "{:type :invoke :f :acquire :process 0} {:type :ok :f :read :process 0}", 2},
		{"a release that may be of either key", `{:type :invoke :f :acquire :process 0 :value {:key "a"}} {:type :ok :f :acquire :process 0} {:type :invoke :f :acquire :process 0 :value {:key "b"}} {:type :ok :f :acquire :process 0} {:type :invoke :f :release :process 0}`, 5},
		{"two at once", "{:type :invoke :f :acquire :process 0} {:type :invoke :f :acquire :process 0}", 2},
		{"an element that is no integer", `{:type :invoke :f :add :value "x" :process 0}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.text), Options{})
			var format *FormatError
			if !errors.As(err, &format) || format.Operation != c.operation {
				t.Errorf("got %v, want an error of operation %d", err, c.operation)
			}
		})
	}
}

// TestRoundTrip: a history that is written and read again is judged the same, as far as the format of Jepsen
// can express it.
func TestRoundTrip(t *testing.T) {
	h := &history.History{Header: history.Header{Workers: []string{"w1", "w2"}, Workload: "set", Guard: "none", Lock: "x", Lease: time.Second, Tokens: true}}
	do := func(worker, grant, key string, f history.Function, from, to int64, done history.Event) {
		h.Events = append(h.Events, operated(int64(len(h.Events)), worker, grant, key, f, from, to, done)...)
	}
	ok := history.Event{Type: history.OK}
	do("w1", "a", "k0", history.Acquire, 10, 11, history.Event{Type: history.OK, Token: 4})
	do("w2", "b", "k0", history.Acquire, 12, 13, history.Event{Type: history.OK, Token: 5})
	do("w2", "b", "k0", history.Write, 14, 15, history.Event{Type: history.OK, Element: 7})
	do("w2", "b", "k0", history.Release, 16, 17, ok)
	do("w1", "a", "k0", history.Release, 20, 21, history.Event{Type: history.Info, Error: `a "timeout"`})
	do("w1", "c", "k1", history.Acquire, 22, 23, history.Event{Type: history.OK, Token: 6})
	h.Events = append(h.Events,
		history.Event{Process: history.Resource, F: history.Final, Type: history.OK, Key: "k0", Time: at(30), Value: []byte("[7]")},
		history.Event{Process: history.Resource, F: history.Final, Type: history.OK, Key: "k1", Time: at(30), Value: []byte("null")})
	r, text := exported(t, h)
	if r.Overlaps.DoubleGrants != 1 || r.Operations.Acquired != 3 || r.Updates.Acknowledged != 1 || r.Updates.Lost != 0 {
		t.Errorf("%s\n%+v %+v %+v\n%s", r.Sentence, r.Overlaps, r.Operations, r.Updates, text)
	}
	if v := r.Finding(checker.MutualExclusion).Violations; len(v) != 1 || v[0].To-v[0].From != at(3) || v[0].Key != "k0" {
		t.Errorf("%+v", v)
	}
}

func at(ms int64) int64 { return ms * int64(time.Millisecond) }

// operated is an operation of a worker, from and to in ms.
func operated(op int64, worker, grant, key string, f history.Function, from, to int64, done history.Event) []history.Event {
	begun := history.Event{Process: worker, F: f, Key: key, Grant: grant, Op: op, Type: history.Invoke, Time: at(from), Element: done.Element}
	done.Process, done.F, done.Key, done.Grant, done.Op, done.Time = worker, f, key, grant, op, at(to)
	return []history.Event{begun, done}
}

// exported judges a history after it was written and read again.
func exported(t *testing.T, h *history.History) (checker.Results, string) {
	t.Helper()
	var text bytes.Buffer
	if err := Write(&text, h); err != nil {
		t.Fatal(err)
	}
	return judge(t, text.String(), Options{Lease: time.Second}), text.String()
}

// TestRoundTripOfCleanUp: the release after an acquire of unknown outcome belongs to another process of
// Jepsen, but to the same attempt.
func TestRoundTripOfCleanUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		clean history.Type
		want  checker.Verdict
	}{
		{"that took the lock from its holder", history.OK, checker.Violation},
		{"that found nothing", history.Fail, checker.Valid},
		{"without an answer", history.Info, checker.Valid},
	} {
		h := &history.History{Header: history.Header{Workers: []string{"w1", "w2"}, Workload: "mutex", Guard: "none", Lock: "x", Lease: time.Second}}
		var ops [][]history.Event
		do := func(worker, grant string, f history.Function, from, to int64, outcome history.Type) {
			ops = append(ops, operated(int64(len(ops)+1), worker, grant, "k0", f, from, to, history.Event{Type: outcome}))
		}
		do("w1", "a", history.Acquire, 10, 30, history.Info)
		do("w2", "b", history.Acquire, 40, 41, history.OK)
		do("w1", "a", history.Release, 50, 51, c.clean)
		do("w2", "b", history.Release, 60, 61, history.OK)
		do("w1", "c", history.Acquire, 70, 71, history.OK)
		do("w1", "c", history.Release, 72, 73, history.OK)
		h.Events = slices.Concat(ops...)
		for i := range h.Events {
			h.Events[i].Index = int64(i)
		}
		if err := history.Validate(h); err != nil {
			t.Fatal(err)
		}
		if got := checker.Check(h, checker.Options{}).Finding(checker.NoWrongRelease).Verdict; got != c.want {
			t.Errorf("%s: %s before it was written, want %s", c.name, got, c.want)
		}
		if r, text := exported(t, h); r.Finding(checker.NoWrongRelease).Verdict != c.want {
			t.Errorf("%s: %s, want %s\n%s", c.name, r.Finding(checker.NoWrongRelease).Verdict, c.want, text)
		}
	}
}

// FuzzRead: any file is refused, or its history is valid and can be judged.
func FuzzRead(f *testing.F) {
	add := func(text string) { f.Add([]byte(text), "") }
	add("{:type :invoke :f :add :value -3 :process 0}{:type :ok :f :add :process 0}{:type :ok :f :read :value [nil] :process 0}")
	add(`{:type :invoke :f :acquire :process 0 :value {:grant "a"}}{:type :invoke :f :release :process 1 :value {:grant "a"}}{:type :fail :f :acquire :process 0}{:type :ok :f :release :process 1}`)
	add("#{1} [] #x {:type :info :f :release :process 5 :time -9223372036854775808}")
	add("{:type :invoke :f :add :value [0 5] :process 0}{:type :ok :f :add :value [0 5] :process 0}{:type :invoke :f :read :value [0 nil] :process 0}{:type :ok :f :read :value [0 [5]] :process 0}")
	add("{:type :invoke :f :acquire :value #jepsen.independent.Tuple[[] 1] :process 0}{:type :invoke :f :acquire :value #a.Tuple[() 1] :process 1}{:type :ok :f :acquire :process 1 :value #a.Tuple[() {:fence 4}]}")
	add("{:type :invoke :f :acquire :value [{#{1} 2} nil] :process 0}{:type :ok :f :acquire :value [0] :process 0}")
	f.Add([]byte("{:type :invoke :f :acquire :value 1 :process 0}{:type :invoke :f :acquire :value \\a :process 1}{:type :ok :f :acquire :process 1 :value 3}"), KeysValue)
	f.Add([]byte("{:type :invoke :f :acquire :process 0}{:type :ok :f :acquire :process 0 :value {:m 3}}"), ":m")
	f.Fuzz(func(t *testing.T, text []byte, keys string) {
		o := Options{Keys: keys}
		if !o.Known() {
			return
		}
		h, err := Read(bytes.NewReader(text), o)
		if err != nil {
			return
		}
		if err := history.Validate(h); err != nil {
			t.Fatalf("%q became a history that is not valid: %v", text, err)
		}
		checker.Check(h, checker.Options{})
	})
}

// duringRead is the history of a set that is named in pairs. 4 and 5 were added before its last read began,
// which returns some elements, and 6 after that.
func duringRead(elements string) string {
	return fmt.Sprintf(`{:type :invoke :f :add :process 0 :value [0 4]}
{:type :ok :f :add :process 0 :value [0 4]}
{:type :invoke :f :add :process 0 :value [0 5]}
{:type :ok :f :add :process 0 :value [0 5]}
{:type :invoke :f :read :process 1 :value [0 nil]}
{:type :invoke :f :add :process 0 :value [0 6]}
{:type :ok :f :add :process 0 :value [0 6]}
{:type :ok :f :read :process 1 :value [0 #{%s}]}
`, elements)
}
