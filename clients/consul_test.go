package clients

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestConsulRefused: where nobody listens, nothing was left behind.
func TestConsulRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	lock, err := openConsul(Config{Worker: "w1", Nodes: []string{listener.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	attempt := Attempt{Key: "k", ID: "w1-1", TTL: time.Second}
	if _, err := lock.Acquire(ctx, attempt); OutcomeOf(err) != NoEffect {
		t.Errorf("acquire: %v", err)
	}
	// There is no session that could be taken back.
	if err := lock.Release(ctx, Grant{Key: "k", ID: "w1-1"}); OutcomeOf(err) != Unknown {
		t.Errorf("release: %v", err)
	}
}
