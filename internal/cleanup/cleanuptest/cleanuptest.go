// Package cleanuptest labels what tests create on a Docker engine like what a run creates there. lockcheck then
// removes what a killed test process has left behind.
package cleanuptest

import (
	"testing"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/internal/cleanup"
)

// Run returns the ID of a new run of this process, and the labels for what the test creates. The test itself
// removes what it has created.
func Run(t testing.TB) (id string, labels map[string]string) {
	t.Helper()
	owner, err := cleanup.Self()
	if err != nil {
		t.Fatal(err)
	}
	if id, err = cleanup.NewID(time.Now()); err != nil {
		t.Fatal(err)
	}
	return id, map[string]string{engine.RunLabel: id, engine.OwnerLabel: owner.String()}
}
