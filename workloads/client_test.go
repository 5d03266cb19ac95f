package workloads

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/clienttest"
	"lockcheck/history"
)

// accusation is what a worker records about a hostile client.
type accusation struct {
	// says has parts of the record: the broken rule, or the client's action, and the line. nil: the worker
	// records no mistake.
	says []string
	// either: whether a mistake is recorded depends on when the run ends.
	either bool
}

func accused(says ...string) accusation { return accusation{says: says} }

// TestHostileClients: whatever a client does, its worker ends with the run and records the client's mistake.
// Slowness and silence are not recorded as mistakes, because a service that grants nothing looks the same. The
// clients are goroutines in fake time. Package runs tests whole runs with some of them.
func TestHostileClients(t *testing.T) {
	const plausible = "an until is a time of CLOCK_MONOTONIC"
	nothing := accusation{}
	tests := map[string]accusation{
		"silent-in-hello":   accused("it did not answer hello within 30s"),
		"silent-in-acquire": nothing,
		"silent-in-release": nothing,
		"silent-in-work":    nothing,
		"slow":              nothing,
		"never-reads":       nothing,
		"stopped":           nothing,

		"no-json":           accused("is JSON of the specified form", "{ok}"),
		"wrong-types":       accused("is JSON of the specified form", `"seventeen"`),
		"half-a-line":       accused("is JSON of the specified form", `"ok":{"tok`),
		"long-line":         accused("a line has at most 1 MiB", "xxx"),
		"long-log-line":     accused("a line has at most 1 MiB", "xxx"),
		"unasked":           accused("that was not answered yet", "4711"),
		"twice":             accused("that was not answered yet", `"ok":{}`),
		"two-answers":       accused("exactly one of ok, busy, not_held and error", `"busy":{}`),
		"no-answer":         accused("exactly one of ok, busy, not_held and error", `"id":`),
		"wrong-answer":      accused("release is answered by ok, not_held or error", `"busy":`),
		"other-version":     accused("it speaks version 2 of the protocol, not 1"),
		"refuses":           accused("the client refused hello: no module named redis"),
		"clock-off":         accused("its clock is not CLOCK_MONOTONIC"),
		"wall-clock":        accused(plausible, `"until":`),
		"until-in-ms":       accused(plausible, `"until":`),
		"until-without-now": accused("tells its time in the answer to hello", `"until":`),

		"dies-at-once":    accused("the client ended by itself: exit status 9", "ImportError: no module named redis"),
		"dies-in-hello":   accused("the client ended by itself: exit status 9"),
		"dies-in-acquire": accused("the client ended by itself: exit status 9"),
		"dies-in-release": accused("the client ended by itself: exit status 9"),
		"dies-as-holder":  accused("the client ended by itself: exit status 0"),
		"killed":          accused("the client ended by itself: signal: killed"),

		"stays":            accused("it did not end within 5s"),
		"slow-and-stays":   accused("it did not end within 5s"),
		"answers-last":     {says: []string{"it did not end within 5s"}, either: true},
		"closes-output":    accused("it closed its output and did not end"),
		"closes-input":     accused("it closed its input and did not end"),
		"dies-and-leaves":  accused("the client ended by itself: exit status 0"),
		"stays-and-leaves": accused("it did not end within 5s"),

		"floods-log":    nothing,
		"floods-errors": nothing,
		"floods-events": accused("at most 10,000 events are about no lock that it holds", "metrics"),
		"floods-lost":   accused("at most 10,000 events are about no lock that it holds", "w9-1"),
	}
	for _, name := range clienttest.Of(clienttest.Hostile) {
		if _, tried := tests[name]; !tried {
			t.Errorf("%s was not tried", name)
		}
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { want.check(t, workWith(t, name)) })
		})
	}
}

// workWith returns the record of a worker with a client of the given behaviour. The worker works until it
// records a mistake of the client, or for forty seconds.
func workWith(t *testing.T, behaviour string) []history.Event {
	t.Helper()
	const ms = time.Millisecond
	program := clienttest.NewService().Command(behaviour)
	program.Log = io.Discard
	w := runWorker(t, WorkerConfig{
		Lock: behaviour, Definition: &clients.Definition{Name: behaviour, Program: program, TTL: 300 * ms, Works: behaviour == "silent-in-work"},
		Use:  Use{TTL: 300 * ms, Bare: true, Section: Range{Min: 20 * ms, Max: 20 * ms}},
		Idle: Range{Min: 500 * ms, Max: 500 * ms}, Retry: Range{Min: 500 * ms, Max: 500 * ms}, Timeout: time.Second,
	}).begin()
	for range 200 {
		time.Sleep(200 * ms)
		if len(accusations(w.out.events(t))) > 0 {
			break
		}
	}
	ends := time.Now()
	events := w.finish()
	// Five seconds for the client to end, one for processes that it has left, and some for a call that outlasts
	// its deadline.
	if took := time.Since(ends); took > 10*time.Second {
		t.Errorf("the worker ended %s after its input", took)
	}
	return events
}

// accusations returns the events that report mistakes of a client.
func accusations(events []history.Event) []history.Event {
	return slices.DeleteFunc(only(events, history.Info, history.Client), func(e history.Event) bool { return e.Error == "" })
}

func (a accusation) check(t *testing.T, events []history.Event) {
	t.Helper()
	validate(t, events, nil)
	all := accusations(events)
	switch {
	case len(all) > 1:
		t.Errorf("accused more than once: %+v", all)
	case len(all) == 1:
		t.Logf("%.500s", all[0].Error)
	}
	if a.either && len(all) == 0 {
		return
	}
	if (len(all) == 1) != (a.says != nil) {
		t.Fatalf("accusations %+v, want %q", all, a.says)
	}
	for _, says := range a.says {
		if !strings.Contains(all[0].Error, says) {
			t.Errorf("%q, want %q", all[0].Error, says)
		}
	}
}
