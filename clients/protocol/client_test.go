package protocol_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"lockcheck/clients/clienttest"
	"lockcheck/clients/protocol"
)

func TestMain(m *testing.M) {
	clienttest.Main()
	os.Exit(m.Run())
}

// TestClose: a client is closed whatever it does, and with what it has started; who did
// nothing wrong is accused of nothing. There is no service: what needs one gets an error.
func TestClose(t *testing.T) {
	acquire := protocol.Request{Op: protocol.Acquire, Key: "k0", Attempt: "a", TTLMS: 1000}
	release := protocol.Request{Op: protocol.Release, Key: "k0", Attempt: "a"}
	unanswered := []string{"silent-in-acquire", "never-reads", "answers-last", "slow-and-stays"}
	asked := []string{"answers-last", "slow-and-stays"} // and say that they were
	for _, c := range []struct {
		behaviour string
		requests  []protocol.Request
		wrong     string // "" for nothing
	}{
		{"right", []protocol.Request{acquire, release}, ""},
		{"right", nil, ""},
		{"silent-in-acquire", []protocol.Request{acquire}, ""},
		{"never-reads", []protocol.Request{acquire}, ""},
		{"answers-last", []protocol.Request{acquire}, ""},
		{"slow-and-stays", []protocol.Request{acquire}, "did not end within"},
		{"stays", []protocol.Request{acquire, release}, "did not end within"},
		{"stays-and-leaves", []protocol.Request{acquire}, "did not end within"},
		{"dies-and-leaves", []protocol.Request{release}, "ended by itself: exit status 0"},
		{"no-json", []protocol.Request{acquire}, "JSON of the specified form"},
		{"dies-in-acquire", []protocol.Request{acquire}, "ended by itself: exit status 9"},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			command, reads := clienttest.Command(c.behaviour), make(chan struct{}, 1)
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
					cancel() // its answer would not come before the end of its input
				}
				// What becomes of it is told by Close.
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
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestHello: who cannot begin is told by why, and does not stay.
func TestHello(t *testing.T) {
	for behaviour, want := range map[string]string{
		"right": "", "right-plain": "",
		"clock-off":     "its clock is not CLOCK_MONOTONIC",
		"other-version": "it speaks version 2",
		"refuses":       "the client refused hello: no module named redis",
		"dies-at-once":  "exit status 9; it wrote last: ImportError: no module named redis",
	} {
		t.Run(behaviour, func(t *testing.T) {
			t.Parallel()
			client, err := protocol.Start(t.Context(), clienttest.Command(behaviour), protocol.Request{Worker: "w1"})
			if err == nil {
				if client.Name != "clienttest 1.0" {
					t.Errorf("name %q", client.Name)
				}
				err = client.Close()
			}
			if got := errorText(err); (got == "") != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%q, want %q", got, want)
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
