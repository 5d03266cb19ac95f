package runs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/cleanup"
)

// hostile is what must become of a run with a hostile client.
type hostile struct {
	verdicts []checker.Verdict // the verdict must be one of these
	// says are parts of the reason why the run is broken: the rule, or what the client did.
	says []string
}

// breaks: the run is broken, and its reason has these texts and names the worker.
func breaks(says ...string) hostile { return hostile{[]checker.Verdict{checker.Broken}, says} }

// stalls: a silent client looks the same as a service that grants nothing. Whether the silence outlasts what
// a waiter may wait is a matter of timing.
func stalls() hostile { return hostile{[]checker.Verdict{checker.Undecided, checker.Violation}, nil} }

// TestHostileClients: whatever a client does, the run ends, is not valid, says what the client did, and
// leaves no process behind. Package workloads tests in fake time what the worker says of each hostile client.
// Here whole runs have clients that affect the run: they are silent, are stopped, end, do not end, leave a process,
// flood the logs, or break a rule of the protocol.
func TestHostileClients(t *testing.T) {
	t.Parallel()
	tests := map[string]hostile{
		"silent-in-acquire": stalls(),
		"stopped":           stalls(),
		"no-json":           breaks("is JSON of the specified form", "{ok}"),
		"dies-as-holder":    breaks("the client ended by itself: exit status 0"),
		"stays-and-leaves":  breaks("it did not end within"),
		"floods-log":        stalls(),
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := patiently(t, runClient, ofClient(t, name, nil, hastily), func(r checker.Results) bool {
				if r.Verdict == checker.Valid {
					t.Errorf("valid: %s", r.Sentence)
				}
				return slices.Contains(want.verdicts, r.Verdict)
			})
			want.check(t, outcome)
			boundedLogs(t, outcome)
		})
	}
}

// hastily leaves out all unnecessary waiting.
func hastily(o *Options) {
	o.TTL, o.TimeLimit, o.recoveryLimit = 300*time.Millisecond, 2500*time.Millisecond, 500*time.Millisecond
}

func (h hostile) check(t *testing.T, outcome Outcome) {
	t.Helper()
	r, why := outcome.Results, broken(outcome.History)
	t.Logf("broken: %.500s", why)
	if !slices.Contains(h.verdicts, r.Verdict) {
		t.Errorf("verdict %s, want one of %s", r.Verdict, h.verdicts)
	}
	for _, says := range h.says {
		if !strings.Contains(why, says) || !strings.Contains(r.Sentence, says) {
			t.Errorf("%q, %q: want %q", why, r.Sentence, says)
		}
	}
	if len(h.says) > 0 && !strings.HasPrefix(why, "w") {
		t.Errorf("%q: want the worker first", why)
	}
}

// TestInterruptClients: a run that is interrupted while clients start ends at once, is not broken, and leaves
// no process behind. The clients belong to the workers, or also to the resource.
func TestInterruptClients(t *testing.T) {
	for name, guard := range map[string]string{"workers": "none", "resource, too": "ask"} {
		t.Run(name, func(t *testing.T) {
			clustertest.StartsServers(t)
			interrupt := make(chan struct{})
			progress := onStep{logged{t}, func(text string) {
				if text == "starting the clients" {
					close(interrupt)
				}
			}}
			o := ofClient(t, "silent-in-hello", clientLock{"holds": true}, func(o *Options) { o.Guard = guard })
			outcome, err := Test(t.Context(), o, interrupt, progress)
			if err != nil {
				t.Fatal(err)
			}
			if why := broken(outcome.History); !outcome.Interrupted || why != "" {
				t.Errorf("interrupted %t, broken: %q", outcome.Interrupted, why)
			}
			if left, err := cleanup.Running(outcome.History.Header.Run); err != nil || len(left) != 0 {
				t.Errorf("processes %v, %v: none is to be left", left, err)
			}
		})
	}
}

// largestLog is more than the run keeps of any process' output, in bytes.
const largestLog = 100 << 10

// boundedLogs checks that no client fills the disk, and that logs say what was left out.
func boundedLogs(t *testing.T, outcome Outcome) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(outcome.Folder, logFolder, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	flooded := 0
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > largestLog {
			t.Errorf("%s has %d bytes", path, len(text))
		}
		if len(text) > largestLog/2 {
			flooded++
			if !strings.Contains(string(text[:200]), "are left out") {
				t.Errorf("%s does not say that something is left out: %.200s", path, text)
			}
		}
	}
	if outcome.History.Header.Lock == "floods-log" && flooded == 0 {
		t.Error("no log was flooded")
	}
}
