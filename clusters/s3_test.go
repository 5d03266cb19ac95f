//go:build s3

package clusters

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lockcheck/clients"
)

// TestS3Locks: the locks keep their contract on a store that keeps conditions.
func TestS3Locks(t *testing.T) {
	t.Parallel()
	cluster := started(t, "s3")
	if version, err := cluster.Servers()[0].Host.Version(t.Context()); err != nil || version != s3Spec().Versions[0] {
		t.Errorf("version %q, %v", version, err)
	}
	t.Run("s3-conditional", func(t *testing.T) { keepsContract(t, "s3-conditional", cluster) })
	t.Run("s3-lockfile", func(t *testing.T) { contractRelease(openTwo(t, "s3-lockfile", cluster)) })
}

// TestS3AtOnce: of many attempts that are made at once, one is granted. They create an object, or replace a record that
// was released.
func TestS3AtOnce(t *testing.T) {
	t.Parallel()
	cluster := started(t, "s3")
	first := open(t, "s3-conditional", "w0", cluster)
	first.released(first.acquire("at-once", time.Minute), clients.Done)
	for lock, key := range map[string]string{"s3-lockfile": "created", "s3-conditional": "at-once"} {
		t.Run(lock, func(t *testing.T) { grantsOne(t, cluster, lock, key) })
	}
}

func grantsOne(t *testing.T, cluster Cluster, lock, key string) {
	const attempts = 16
	var granted atomic.Int64
	var all sync.WaitGroup
	for i := range attempts {
		client := open(t, lock, fmt.Sprintf("w%d", i+1), cluster)
		all.Go(func() {
			_, err := client.Acquire(t.Context(), clients.Attempt{Key: key, ID: client.name, TTL: time.Minute})
			switch clients.OutcomeOf(err) {
			case clients.Done:
				granted.Add(1)
			case clients.Busy:
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := granted.Load(); n != 1 {
		t.Errorf("%d of %d attempts were granted", n, attempts)
	}
}
