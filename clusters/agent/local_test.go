package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestReadyUnanswered: a server that never answers one question can still be asked the next.
func TestReadyUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := Local{Probes: hanging{asked: make(chan struct{})}, Address: "n1"}
		if err := host.Ready(context.Background()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		host.Probes = answering{}
		if err := host.Ready(context.Background()); err != nil {
			t.Errorf("one that answers: %v", err)
		}
	})
}

// answering is a server that is ready.
type answering struct{ hanging }

func (answering) Ready(context.Context, string) error { return nil }
