package clients

import (
	"context"
	"testing"
)

// TestUntilClosed: the wait ends with its session, and with its context.
func TestUntilClosed(t *testing.T) {
	outer, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	bySession, stop := untilClosed(outer, done)
	defer stop()
	byContext, stopOther := untilClosed(outer, nil)
	defer stopOther()
	if bySession.Err() != nil || byContext.Err() != nil {
		t.Fatal("ended before anything has")
	}
	close(done)
	<-bySession.Done()
	if byContext.Err() != nil {
		t.Error("ended by the session of another")
	}
	end()
	<-byContext.Done()
}
