package remedied

import (
	"errors"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/remedies"
	"lockcheck/internal/runs"
	"lockcheck/workloads"
)

// TestAccepted: a remedy offered for a run is accepted by a test of that lock and workload. A remedy that is
// said to lack something is refused, or would change nothing there.
func TestAccepted(t *testing.T) {
	offered, lacking := 0, 0
	for _, name := range clients.Names() {
		lock, err := lockfile.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, workload := range workloads.Names() {
			o := options(t, name)
			o.Workload, o.Nemesis = workload, "none"
			plain, err := runs.OutlineOf(o)
			if err != nil {
				continue // no test of that lock is possible at all
			}
			header := history.Header{Lock: name, Workload: workload, Guard: o.Guard, Lease: plain.Options.TTL}
			for _, offer := range allOffers(header) {
				change := remedies.ByName(offer.Remedy).Change
				if change == (remedies.Change{}) {
					continue
				}
				_, err := jobWith(change, change.Flag(name, header.Lease), lock, o, plain)
				var usage *runs.UsageError
				switch {
				case offer.Lacks == "" && err != nil:
					t.Errorf("%s, %s: %s is said to help, and is refused: %v", name, workload, offer.Remedy, err)
				case offer.Lacks == "":
					offered++
				case errors.As(err, &usage):
					lacking++
				case change.Guard != "" && !history.WritesNothing(workload) && !lock.Info.Unsafe:
					t.Errorf("%s, %s: %s is accepted, although the lock %s", name, workload, offer.Remedy, offer.Lacks)
				}
			}
		}
	}
	if offered < 500 || lacking < 100 {
		t.Errorf("only %d remedies were accepted and %d refused", offered, lacking)
	}
}

// allOffers lists the remedies offered against any cause, each once.
func allOffers(h history.Header) (offers []remedies.Offer) {
	seen := make(map[string]bool)
	for _, cause := range checker.Causes() {
		for _, offer := range remedies.Offers(cause.Name, h) {
			if !seen[offer.Remedy] {
				seen[offer.Remedy] = true
				offers = append(offers, offer)
			}
		}
	}
	return offers
}

// TestJobs: an idempotency key is offered for a job that runs twice.
func TestJobs(t *testing.T) {
	h := history.Header{Lock: "memory", Workload: history.WorkloadJobs, Lease: time.Second}
	for _, cause := range checker.Causes() {
		found := false
		for _, offer := range remedies.Offers(cause.Name, h) {
			found = found || offer.Remedy == remedies.Idempotency && offer.Helps()
		}
		if !found {
			t.Errorf("%s: no idempotency key for jobs", cause.Name)
		}
	}
}
