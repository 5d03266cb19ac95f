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

// kubernetesRecord keeps what the library does not tell its user: what the servers have said and
// taken of a Lease. Each write is on condition that the Lease is as it was last read or written,
// so that what a write has replaced is known as well.
type kubernetesRecord struct {
	resourcelock.Interface

	mu       sync.Mutex
	answered bool // there is a latest
	latest   resourcelock.LeaderElectionRecord
	doubt    bool // a write after that was not answered
	gave     bool // the name of a holder was taken away
	from     string
	at       int64 // when, in ns of CLOCK_MONOTONIC
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
	return r.wrote(record, r.Interface.Create(ctx, record))
}

func (r *kubernetesRecord) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.wrote(record, r.Interface.Update(ctx, record))
}

func (r *kubernetesRecord) wrote(record resourcelock.LeaderElectionRecord, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch status := apierrors.APIStatus(nil); {
	case err == nil:
		// The library also empties a Lease that it finds empty: that takes it from nobody.
		if record.HolderIdentity == "" && r.latest.HolderIdentity != "" {
			r.gave, r.from, r.at = true, r.latest.HolderIdentity, history.Now()
		}
		r.answered, r.latest, r.doubt = true, record, false
	case !errors.As(err, &status) || status.Status().Code >= 500:
		r.doubt = true
	}
	return err
}

// holder is whom the Lease named last. It is not certain if nothing was ever answered, or a
// write was not.
func (r *kubernetesRecord) holder() (name string, certain bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.HolderIdentity, r.answered && !r.doubt
}

// asked says whether a write may have had an effect.
func (r *kubernetesRecord) asked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubt
}

// gaveBack says whether a write took the name of a holder away, whose, and when it was answered.
func (r *kubernetesRecord) gaveBack() (gave bool, from string, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gave, r.from, r.at
}

// token is that of the term that the Lease was last in.
func (r *kubernetesRecord) token() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return kubernetesToken(&r.latest)
}

// kubernetesToken counts the terms of a Lease from 1, and the library from 0.
func kubernetesToken(r *resourcelock.LeaderElectionRecord) uint64 {
	return uint64(r.LeaderTransitions) + 1
}
