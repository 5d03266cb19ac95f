package claims

import (
	"testing"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/internal/remedies"
)

// TestEvidenceOfRemedies: what is said to show a remedy is there, for each lock.
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
					if _, is := known[name]; !is {
						t.Errorf("%s against %q, for %s: there is no %s", a.Remedy, c.Name, lock, name)
					}
				}
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d names were looked for", checked)
	}
}
