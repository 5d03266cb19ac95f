//go:build kubernetes

package clients

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"lockcheck/history"
)

// kubernetesRecord keeps what the library does not expose: what the servers have answered and accepted for a
// Lease. Each write is conditional on the Lease being as it was last read or written. So it is also known what
// a write has replaced.
type kubernetesRecord struct {
	resourcelock.Interface
	renewing func(opens bool) (answered func(error))

	mu       sync.Mutex
	answered bool // latest is valid
	latest   resourcelock.LeaderElectionRecord
	doubt    bool // a write after latest was not answered
	gave     bool // a write has removed the name of a holder
	from     string
	at       int64 // when it was removed, ns of CLOCK_MONOTONIC
}

func (r *kubernetesRecord) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := r.Interface.Get(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.answered, r.latest = true, *record
	case apierrors.IsNotFound(err):
		r.answered, r.latest = true, resourcelock.LeaderElectionRecord{}
	}
	return record, raw, err
}

func (r *kubernetesRecord) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.write(record, func() error { return r.Interface.Create(ctx, record) })
}

func (r *kubernetesRecord) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.write(record, func() error { return r.Interface.Update(ctx, record) })
}

// write makes a write, and reports it if it begins or renews the term of a candidate. A conflict does not tell that the
// term is over: an earlier write that had no answer may have caused it.
func (r *kubernetesRecord) write(record resourcelock.LeaderElectionRecord, call func() error) error {
	answered := func(error) {}
	if record.HolderIdentity != "" {
		answered = r.renewing(!r.names(record.HolderIdentity))
	}
	err := call()
	answered(err)
	return r.wrote(record, err)
}

// names reports whether the Lease last named the candidate as its holder.
func (r *kubernetesRecord) names(candidate string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.HolderIdentity == candidate
}

func (r *kubernetesRecord) wrote(record resourcelock.LeaderElectionRecord, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch status := apierrors.APIStatus(nil); {
	case err == nil:
		// The library also empties a Lease that is already empty, which takes it from no holder.
		if record.HolderIdentity == "" && r.latest.HolderIdentity != "" {
			r.gave, r.from, r.at = true, r.latest.HolderIdentity, history.Now()
		}
		r.answered, r.latest, r.doubt = true, record, false
	case !errors.As(err, &status) || status.Status().Code >= 500:
		r.doubt = true
	}
	return err
}

// holder returns the holder that the Lease last named. It is uncertain if there was never an answer, or if a
// write was not answered.
func (r *kubernetesRecord) holder() (name string, certain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.HolderIdentity, r.answered && !r.doubt
}

// asked reports whether an unanswered write may have had an effect.
func (r *kubernetesRecord) asked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubt
}

// gaveBack reports whether a write removed the name of a holder, which name, and when it was answered.
func (r *kubernetesRecord) gaveBack() (gave bool, from string, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gave, r.from, r.at
}

// token returns the token of the last known term of the Lease.
func (r *kubernetesRecord) token() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return kubernetesToken(&r.latest)
}

// kubernetesToken counts the terms of a Lease from 1; the library counts them from 0.
func kubernetesToken(r *resourcelock.LeaderElectionRecord) uint64 {
	return uint64(r.LeaderTransitions) + 1
}
