package conformance_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockcheck/clients"
	"lockcheck/clients/clienttest"
	"lockcheck/clients/conformance"
	"lockcheck/clients/unixrpc"
	"lockcheck/clusters"
)

func TestMain(m *testing.M) {
	clienttest.Main()
	os.Exit(m.Run())
}

// service starts the embedded lock service and returns its socket.
func service(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "check-") // short, for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "n1.sock")
	input, end := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- clusters.ServeEmbedded(context.WithoutCancel(t.Context()), "memory", socket, input) }()
	t.Cleanup(func() {
		_ = end.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(folder)
	})
	client := unixrpc.NewClient(socket)
	defer client.Close()
	for client.Call(t.Context(), "release", clients.MemoryRequest{Key: "ready"}, new(clients.MemoryReply)) != nil {
		select {
		case err := <-served:
			served <- err
			t.Fatal(err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return socket
}

// Definitions of locks. Without a lease the rules take little time, with a lease they may take longer.
var (
	endless = clients.Definition{Tokens: true, Ask: true, Works: true}
	lease   = clients.Definition{TTL: time.Second, Grace: 500 * time.Millisecond}
	session = clients.Definition{TTL: time.Second, Grace: 500 * time.Millisecond, Session: true}
)

func with(d clients.Definition, change func(*clients.Definition)) clients.Definition {
	change(&d)
	return d
}

func renewing(d *clients.Definition) { d.Renew, d.Tokens = true, true }
func queueing(d *clients.Definition) { d.Queues = true }

// check runs a check of a behaviour whose clients are goroutines, in fake time.
func check(t *testing.T, behaviour string, d clients.Definition) (report conformance.Report) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d.Program = clienttest.NewService().Command(behaviour)
		report = run(t, conformance.Config{Definition: d})
	})
	return report
}

// checkProcesses runs a check of a behaviour whose clients are processes.
func checkProcesses(t *testing.T, behaviour string, d clients.Definition) conformance.Report {
	t.Helper()
	d.Program = clienttest.Command(behaviour)
	return run(t, conformance.Config{Definition: d, Nodes: []string{service(t)}, Folder: t.TempDir()})
}

func run(t *testing.T, c conformance.Config) conformance.Report {
	t.Helper()
	report, err := conformance.Run(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestSays: each rule quotes a sentence of its page and has a unique name.
func TestSays(t *testing.T) {
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "|", "")), " ")
	seen := make(map[string]bool)
	for _, r := range check(t, "silent-in-hello", endless).Results {
		if r.Says == "" || r.Tries == "" || !strings.Contains(page, r.Says) || seen[r.Rule] {
			t.Errorf("%s: %q, %q", r.Rule, r.Tries, r.Says)
		}
		seen[r.Rule] = true
	}
	if len(seen) < 25 {
		t.Errorf("only %d rules", len(seen))
	}
}

// TestEachIsBroken: for every rule there is a client that breaks it.
func TestEachIsBroken(t *testing.T) {
	var broken []string
	for _, c := range breakers() {
		broken = append(broken, c.failed...)
	}
	for _, r := range check(t, "silent-in-hello", endless).Results {
		if !slices.Contains(broken, r.Rule) {
			t.Errorf("no client breaks %s", r.Rule)
		}
	}
}

func names(report conformance.Report, o conformance.Outcome) (all []string) {
	for _, r := range report.Results {
		if r.Outcome == o {
			all = append(all, r.Rule)
		}
	}
	return all
}

// TestRight: a correct client passes all rules that apply.
func TestRight(t *testing.T) {
	for _, c := range []struct {
		behaviour  string
		definition clients.Definition
		passed     int
	}{
		{"right", endless, 25},
		{"right", with(lease, renewing), 30},
		{"right-plain", lease, 23},
		{"right-one-lock", with(lease, renewing), 30},
		{"right-side-by-side", endless, 25},
		{"right-session", session, 23},
		{"right-queue", with(endless, queueing), 26},
		{"right-queue", with(lease, queueing), 26},
		{"right-slow", endless, 25},
		{"right-talkative", endless, 25},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			report := check(t, c.behaviour, c.definition)
			for _, r := range report.Results {
				if r.Outcome != conformance.Passed && r.Outcome != conformance.NotApplicable {
					t.Errorf("%s %s: %s %+v", r.Rule, r.Outcome, r.Reason, r.Exchange)
				}
			}
			if passed := report.Count(conformance.Passed); passed != c.passed || report.Client != "clienttest 1.0" {
				t.Errorf("%d passed of %q, want %d; not applicable: %q", passed, report.Client, c.passed, names(report, conformance.NotApplicable))
			}
		})
	}
}

// breaker is a client that breaks rules.
type breaker struct {
	behaviour  string
	definition clients.Definition
	failed     []string
	line       bool // one line is marked as wrong
}

// breakers returns at least one client for each rule.
func breakers() []breaker {
	return []breaker{
		{"silent-in-hello", endless, []string{"hello"}, true},
		{"refuses", endless, []string{"hello"}, true},
		{"other-version", endless, []string{"version"}, true},
		{"clock-off", endless, []string{"clock"}, true},
		{"until-in-ms", lease, []string{"until-time"}, true},
		{"long-validity", lease, []string{"until"}, true},
		{"wall-clock", lease, []string{"until-time"}, true},
		{"busy-for-ever", endless, []string{"acquire"}, true},
		{"one-fails-for-ever", endless, []string{"acquire"}, true},
		{"silent-in-acquire", endless, []string{"acquire"}, true},
		{"never-reads", endless, []string{"acquire", "end"}, true},
		{"ignores-busy", endless, []string{"busy"}, true},
		{"asks-nobody", endless, []string{"busy", "release-twice"}, true},
		{"own-name", endless, []string{"busy"}, true},
		{"silent-in-release", endless, []string{"release"}, true},
		{"releases-nothing", endless, []string{"released"}, true},
		{"never-releases", endless, []string{"released", "release-twice", "release-unknown"}, true},
		{"releases-twice", endless, []string{"release-twice"}, true},
		{"releases-in-silence", endless, []string{"release-twice", "release-unknown"}, true},
		{"releases-others", endless, []string{"release-unknown"}, true},
		{"releases-anyone", endless, []string{"release-twice", "release-unknown", "older-attempt"}, true},
		{"none-though-granted", endless, []string{"release"}, true},
		{"short-lease", lease, []string{"until", "expiry"}, true},
		{"lease-for-ever", lease, []string{"expiry"}, true},
		{"takes-early", with(lease, func(d *clients.Definition) { d.TTL *= 10 }), []string{"expiry"}, true},
		{"releases-late", lease, []string{"release-expired"}, true},
		{"renews-nothing", with(lease, renewing), []string{"renew"}, true},
		{"renews-late", with(lease, renewing), []string{"renew-expired"}, true},
		{"renews-what-is-free", with(lease, renewing), []string{"renew-expired"}, true},
		{"renews-for-ever", with(lease, renewing), []string{"renewed-expiry"}, true},
		{"counts-renewals", with(lease, renewing), []string{"release-renewed"}, true},
		{"owner-is-worker", endless, []string{"older-attempt"}, true},
		{"counts-from-answer", lease, []string{"until"}, true},
		{"waits-unasked", lease, []string{"busy"}, true},
		{"same-token", endless, []string{"tokens"}, true},
		{"tokens-go-back", endless, []string{"tokens"}, true},
		{"right-plain", endless, []string{"tokens"}, true},
		{"holds-always", endless, []string{"holds"}, true},
		{"holds-never", endless, []string{"holds"}, true},
		{"waits-not", with(endless, queueing), []string{"wait"}, true},
		{"waits-in-vain", with(endless, queueing), []string{"wait"}, true},
		{"stays-queued", with(endless, queueing), []string{"wait", "cancel"}, true},
		{"counts-from-request", with(lease, queueing), []string{"wait"}, true},
		{"cancels-in-silence", with(endless, queueing), []string{"wait", "cancel"}, true},
		{"hasty", endless, []string{"pipelining"}, true},
		{"works-not", endless, []string{"work"}, true},
		{"silent-in-work", endless, []string{"work"}, true},
		{"strict", endless, []string{"unknown-fields"}, true},
		{"knows-all", endless, []string{"unknown-operation"}, true},
		{"knows-nothing", endless, []string{"unknown-operation"}, true},
		{"stays", endless, []string{"end"}, false},
		{"slow-and-stays", endless, []string{"end"}, false},
		{"answers-last", endless, []string{"end"}, false},
		{"leaves", endless, []string{"nothing-left"}, false},
		{"stays-and-leaves", endless, []string{"end", "nothing-left"}, false},
		{"no-json", endless, []string{"lines"}, true},
		{"wrong-types", endless, []string{"lines"}, true},
		{"half-a-line", endless, []string{"lines"}, true},
		{"long-line", endless, []string{"lines"}, true},
		{"long-log-line", endless, []string{"lines"}, true},
		{"unasked", endless, []string{"answers"}, true},
		{"twice", endless, []string{"answers"}, true},
		{"two-answers", endless, []string{"answers"}, true},
		{"no-answer", endless, []string{"answers"}, true},
		{"wrong-answer", endless, []string{"answers"}, true},
		{"until-without-now", lease, []string{"until-needs-now"}, true},
		{"floods-events", endless, []string{"events"}, true},
		{"floods-lost", endless, []string{"events"}, true},
		{"dies-at-once", endless, []string{"hello"}, false},
		{"dies-in-hello", endless, []string{"hello"}, false},
		{"dies-in-acquire", endless, []string{"stays"}, false},
		{"dies-in-release", endless, []string{"stays"}, false},
		{"dies-as-holder", endless, []string{"stays"}, false},
		{"killed", endless, []string{"stays"}, false},
		{"dies-and-leaves", endless, []string{"nothing-left", "stays"}, false},
		{"closes-output", endless, []string{"stays"}, false},
		{"closes-input", endless, []string{"pipelining", "stays"}, true},
		{"stopped", endless, []string{"acquire"}, true},
		{"floods-log", endless, []string{"acquire"}, true},
		{"floods-errors", endless, []string{"acquire"}, true},
	}
}

// TestBroken: a client that breaks a rule fails that rule, and no other.
func TestBroken(t *testing.T) {
	tried := make(map[string]bool)
	for _, c := range breakers() {
		tried[c.behaviour] = true
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			c.breaks(t, check(t, c.behaviour, c.definition))
		})
	}
	for name, definition := range map[string]clients.Definition{
		"slow":       endless, // 3 s are less than patience
		"lost-late":  session, // no rule limits how late a client may learn that its lock is lost
		"lost-never": session,
	} {
		tried[name] = true
		t.Run(name+" breaks none", func(t *testing.T) {
			t.Parallel()
			if report := check(t, name, definition); report.Conclude() != conformance.Conforms {
				t.Errorf("%s; failed: %q", report.Conclude(), names(report, conformance.Failed))
			}
		})
	}
	for _, kind := range []clienttest.Kind{clienttest.Mistaken, clienttest.Hostile, clienttest.Careless} {
		for _, name := range clienttest.Of(kind) {
			if !tried[name] {
				t.Errorf("%s was not tried", name)
			}
		}
	}
}

// TestSlow: a client that is slow in every call is not mistaken for one that waits without being asked to.
func TestSlow(t *testing.T) {
	report := check(t, "slow", lease)
	if failed := names(report, conformance.Failed); len(failed) > 0 || report.Conclude() != conformance.Undecided {
		t.Errorf("%s; failed: %q", report.Conclude(), failed)
	}
}

// TestProcesses: a check of real processes finds what they do to themselves, and what they leave behind. A
// correct client passes, although the check kills it while it holds a lock.
func TestProcesses(t *testing.T) {
	processes := []string{"half-a-line", "killed", "leaves"}
	for _, c := range breakers() {
		if !slices.Contains(processes, c.behaviour) {
			continue
		}
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			c.breaks(t, checkProcesses(t, c.behaviour, c.definition))
		})
	}
	t.Run("right-session", func(t *testing.T) {
		t.Parallel()
		// A slow machine may delay the renewal of a lease, and the request for a free lock.
		patient := with(session, func(d *clients.Definition) { d.TTL, d.Grace = 3*time.Second, 30*time.Second })
		if report := checkProcesses(t, "right-session", patient); report.Conclude() != conformance.Conforms {
			t.Errorf("%s; failed: %q", report.Conclude(), names(report, conformance.Failed))
		}
	})
}

// breaks checks that a report shows what the breaker breaks.
func (c breaker) breaks(t *testing.T, report conformance.Report) {
	t.Helper()
	failed := names(report, conformance.Failed)
	if !slices.Equal(failed, c.failed) {
		t.Errorf("failed: %q, want %q", failed, c.failed)
	}
	marked := false
	for _, r := range report.Results {
		marked = marked || slices.ContainsFunc(r.Exchange, func(l conformance.Line) bool { return l.Wrong })
		if r.Outcome != conformance.Passed && r.Reason == "" {
			t.Errorf("%s %s: nothing says why", r.Rule, r.Outcome)
		}
	}
	if marked != c.line {
		t.Errorf("a line is marked: %t, want %t: %+v", marked, c.line, report.Results)
	}
}
