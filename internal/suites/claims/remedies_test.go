package claims

import (
	"testing"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/remedies"
)

// TestEvidenceOfRemedies: the experiments named as evidence for a remedy exist for each lock, on the stated
// servers.
func TestEvidenceOfRemedies(t *testing.T) {
	known, err := experiments()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, c := range checker.Causes() {
		for _, a := range remedies.For(c.Name) {
			for _, lock := range append(clients.Names(), "of my own") {
				for _, name := range a.Experiments(lock) {
					checked++
					e, is := known[name]
					if !is {
						t.Errorf("%s against %q, for %s: there is no %s", a.Remedy, c.Name, lock, name)
						continue
					}
					on := remedies.LockOfExperiment(name)
					if on != e.Options.Lock {
						t.Errorf("%s is said to be made on the lock %q, and is on %q", name, on, e.Options.Lock)
					}
					info, _ := clients.ByName(e.Options.Lock)
					if spec, _ := clusters.ByName(info.Servers); remedies.OnDocker(name) != spec.OnDocker() {
						t.Errorf("%s on %s needs Docker: %v, and %v is said", name, on, spec.OnDocker(), remedies.OnDocker(name))
					}
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d names were looked for", checked)
	}
}
