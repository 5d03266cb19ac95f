package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"lockcheck/clients/clienttest"
	"lockcheck/clients/protocol"
)

func TestMain(m *testing.M) {
	clienttest.Main()
	os.Exit(m.Run())
}

// tries runs a test of a behaviour with a client that is a goroutine, in fake time. If process is set, it
// repeats the test with a client that is a process.
func tries(t *testing.T, behaviour string, process bool, test func(*testing.T, protocol.Command)) {
	t.Helper()
	t.Run(behaviour, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			service := clienttest.NewService()
			service.Down = true
			test(t, service.Command(behaviour))
		})
	})
	if process {
		t.Run(behaviour+", a process", func(t *testing.T) {
			t.Parallel() // most of it is waiting
			test(t, clienttest.Command(behaviour))
		})
	}
}

// TestClose: every client is closed, whatever it does, together with what it has started, and a client without
// a mistake is not reported. There is no service, so requests that need one get an error.
func TestClose(t *testing.T) {
	acquire := protocol.Request{Op: protocol.Acquire, Key: "k0", Attempt: "a", TTLMS: 1000}
	release := protocol.Request{Op: protocol.Release, Key: "k0", Attempt: "a"}
	unanswered := []string{"silent-in-acquire", "never-reads", "answers-last", "slow-and-stays", "stopped"}
	asked := []string{"answers-last", "slow-and-stays", "stopped"} // these report that they were asked
	for _, c := range []struct {
		behaviour string
		requests  []protocol.Request
		wrong     string // "" for none
		left      int    // processes that had to be killed
		process   bool   // also tried as a process
	}{
		{"right", []protocol.Request{acquire, release}, "", 0, true},
		{"right-plain", nil, "", 0, true},
		{"silent-in-acquire", []protocol.Request{acquire}, "", 0, false},
		{"never-reads", []protocol.Request{acquire}, "", 0, false},
		{"stopped", []protocol.Request{acquire}, "", 0, true},
		{"answers-last", []protocol.Request{acquire}, "", 0, false},
		{"slow-and-stays", []protocol.Request{acquire}, "did not end within 5s", 0, false},
		{"stays", []protocol.Request{acquire, release}, "did not end within 5s", 0, true},
		{"stays-and-leaves", []protocol.Request{acquire}, "did not end within 5s", 1, true},
		{"dies-and-leaves", []protocol.Request{release}, "ended by itself: exit status 0", 1, true},
		{"leaves", []protocol.Request{acquire}, "", 1, true},
		{"no-json", []protocol.Request{acquire}, "JSON of the specified form", 0, false},
		{"closes-output", []protocol.Request{release}, "closed its output and did not end", 0, true},
		{"closes-input", []protocol.Request{release, acquire}, "closed its input and did not end", 0, true},
		{"dies-in-acquire", []protocol.Request{acquire}, "ended by itself: exit status 9", 0, true},
		{"killed", []protocol.Request{release}, "ended by itself: signal: killed", 0, true},
	} {
		tries(t, c.behaviour, c.process, func(t *testing.T, command protocol.Command) {
			reads := make(chan struct{}, 1)
			command.Trace = func(l protocol.Traced) {
				if !l.Sent && bytes.Contains(l.Line, []byte(`"asked"`)) {
					reads <- struct{}{}
				}
			}
			client, err := protocol.Start(t.Context(), command, protocol.Request{Worker: "w1"})
			if err != nil {
				t.Fatal(err)
			}
			for _, request := range c.requests {
				ctx, cancel := context.WithCancel(t.Context())
				if slices.Contains(unanswered, c.behaviour) {
					cancel() // the answer would not come before the input ends
				}
				// Close reports the result.
				_, _ = client.Call(ctx, request)
				cancel()
				if slices.Contains(asked, c.behaviour) {
					<-reads
				}
			}
			err = client.Close()
			if got := errorText(err); (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
				t.Errorf("%q, want %q", got, c.wrong)
			}
			if again := client.Close(); errorText(again) != errorText(err) {
				t.Errorf("closed again: %v, not %v", again, err)
			}
			if left := client.Left(); len(left) != c.left {
				t.Errorf("left %q, want %d", left, c.left)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestHello: a client that fails at hello is reported with the reason, and is ended.
func TestHello(t *testing.T) {
	for _, c := range []struct {
		behaviour, want string
		process         bool
	}{
		{"right", "", true},
		{"right-plain", "", false},
		{"clock-off", "its clock is not CLOCK_MONOTONIC", false},
		{"other-version", "it speaks version 2", false},
		{"refuses", "the client refused hello: no module named redis", false},
		{"silent-in-hello", "it did not answer hello within 30s", false},
		{"dies-at-once", "exit status 9; it wrote last: ImportError: no module named redis", true},
	} {
		tries(t, c.behaviour, c.process, func(t *testing.T, command protocol.Command) {
			client, err := protocol.Start(t.Context(), command, protocol.Request{Worker: "w1"})
			if err == nil {
				if client.Name != "clienttest 1.0" {
					t.Errorf("name %q", client.Name)
				}
				err = client.Close()
			}
			if got := errorText(err); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	missing := protocol.Command{Args: []string{"/nonexistent/client"}}
	if _, err := protocol.Start(t.Context(), missing, protocol.Request{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := protocol.Start(ctx, clienttest.Command("silent-in-hello"), protocol.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody wants it any more: %v", err)
	}
}
