// Package cleanuptest labels what tests make on an engine as lockcheck labels what its runs make. What a killed test process
// has left is then removed like that of a killed run.
package cleanuptest

import (
	"testing"
	"time"

	"lockcheck/clusters/engine"
	"lockcheck/internal/cleanup"
)

// Run is a new run of this process, and the labels of what it makes. The test removes that itself.
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
