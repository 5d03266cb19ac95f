//go:build kubernetes

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLease is a Lease on a server whose answers the test chooses.
type fakeLease struct {
	mu      sync.Mutex
	version int
	written int // number of writes by candidates
	record  resourcelock.LeaderElectionRecord
	// unread and unwritten are the errors of reads and writes. unanswered is the error of a write that takes
	// effect all the same. nil: the server answers normally.
	unread, unwritten, unanswered error
}

func (f *fakeLease) set(change func(*fakeLease)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// heldBy changes the holder; call it within set.
func (f *fakeLease) heldBy(name string) {
	f.version++
	f.record.HolderIdentity, f.record.LeaseDurationSeconds = name, 60
}

func (f *fakeLease) holder() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.record.HolderIdentity
}

// awaitRenewal waits for a leader's first renewal.
func (f *fakeLease) awaitRenewal(ctx context.Context) error {
	for {
		f.mu.Lock()
		written := f.written
		f.mu.Unlock()
		if written >= 2 { // the first write made it the leader
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// fakeCandidate is one candidate's view of a fakeLease.
type fakeCandidate struct {
	*fakeLease
	id   string
	seen int // the version that it may replace
}

var fakeResource = schema.GroupResource{Resource: "leases"}

func (c *fakeCandidate) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.unread != nil:
		return nil, nil, c.unread
	case c.version == 0:
		return nil, nil, apierrors.NewNotFound(fakeResource, c.id)
	}
	c.seen = c.version
	record := c.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (c *fakeCandidate) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return c.Update(ctx, record)
}

func (c *fakeCandidate) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.unwritten != nil:
		return c.unwritten
	case c.seen != c.version:
		return apierrors.NewConflict(fakeResource, c.id, errors.New("it has changed"))
	}
	c.version++
	c.written++
	c.seen, c.record = c.version, record
	return c.unanswered
}

func (c *fakeCandidate) RecordEvent(string) {}
func (c *fakeCandidate) Identity() string   { return c.id }
func (c *fakeCandidate) Describe() string   { return "a lease" }

// TestKubernetesOutcomes: the outcomes of an attempt and of a release agree with the Lease. A leader renews at
// once. Its second renewal would come after 8 s, and no case waits that long.
func TestKubernetesOutcomes(t *testing.T) {
	lost := errors.New("the connection is gone")
	refused := apierrors.NewForbidden(fakeResource, "w1-1", errors.New("no"))
	for name, c := range map[string]struct {
		options optionSet
		before  func(*fakeLease) // the attempt
		acquire Outcome
		between func(*fakeLease)
		release Outcome
		holder  string // in the end
	}{
		"held and given back":                   {acquire: Done, release: Done},
		"held by another":                       {before: func(f *fakeLease) { f.heldBy("w2-1") }, acquire: Busy, release: NotHeld, holder: "w2-1"},
		"no server answers":                     {before: func(f *fakeLease) { f.unread = lost }, acquire: NoEffect, release: NotHeld},
		"no server takes it":                    {before: func(f *fakeLease) { f.unwritten = refused }, acquire: Busy, release: NotHeld},
		"granted without an answer":             {before: func(f *fakeLease) { f.unanswered = lost }, acquire: Unknown, between: func(f *fakeLease) { f.unanswered = nil }, release: Done},
		"granted in doubt, then another's":      {before: func(f *fakeLease) { f.unanswered = lost }, acquire: Unknown, between: func(f *fakeLease) { f.heldBy("w2-1") }, release: Unknown, holder: "w2-1"},
		"given back without an answer":          {acquire: Done, between: func(f *fakeLease) { f.unanswered = lost }, release: Unknown},
		"not read when it was to be given back": {acquire: Done, between: func(f *fakeLease) { f.unread = lost }, release: Unknown, holder: "w1-1"},
		"kept":                                  {options: optionSet{keepLease}, acquire: Done, release: Done, holder: "w1-1"},
		"kept, and taken over by another":       {options: optionSet{keepLease}, acquire: Done, between: func(f *fakeLease) { f.heldBy("w2-1") }, release: NotHeld, holder: "w2-1"},
		"the library gives back what nobody has": {acquire: Done, between: func(f *fakeLease) {
			f.heldBy("w2-1")
			f.heldBy("")
		}, release: NotHeld},
		"the library gives back what another has": {acquire: Done, between: func(f *fakeLease) { f.heldBy("w2-1") }, release: Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lease := new(fakeLease)
			lock := &kubernetesLock{config: Config{options: c.options}, lease: func(_, id string) resourcelock.Interface {
				return &fakeCandidate{fakeLease: lease, id: id}
			}}
			if c.before != nil {
				lease.set(c.before)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := lock.Acquire(ctx, Attempt{Key: "k", ID: "w1-1", TTL: time.Minute})
			if OutcomeOf(err) != c.acquire {
				t.Fatalf("acquire: %v, want outcome %d", err, c.acquire)
			}
			if c.acquire == Done {
				if err := lease.awaitRenewal(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if c.between != nil {
				lease.set(c.between)
			}
			// The library tries to release the Lease for as long as a renew deadline.
			if err := lock.Release(t.Context(), Grant{Key: "k", ID: "w1-1"}); OutcomeOf(err) != c.release {
				t.Errorf("release: %v, want outcome %d", err, c.release)
			}
			if lease.holder() != c.holder {
				t.Errorf("held by %q in the end, want %q", lease.holder(), c.holder)
			}
		})
	}
}

// TestKubernetesLost: a leader whose library has ended its term is notified, and its release finds nothing to
// release.
func TestKubernetesLost(t *testing.T) {
	lease := new(fakeLease)
	lock := &kubernetesLock{lease: func(_, id string) resourcelock.Interface {
		return &fakeCandidate{fakeLease: lease, id: id}
	}}
	grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	lease.set(func(f *fakeLease) { f.unwritten = errors.New("the disk is full") })
	<-grant.Lost
	lease.set(func(f *fakeLease) {
		f.unwritten = nil
		f.heldBy("w2-1")
	})
	if err := lock.Release(t.Context(), grant); OutcomeOf(err) != Unknown {
		t.Errorf("release: %v, although its last write may have been what ended it", err)
	}
	if lease.holder() != "w2-1" {
		t.Errorf("held by %q", lease.holder())
	}
}

// TestKubernetesHolds: a grant is one term of one holder.
func TestKubernetesHolds(t *testing.T) {
	for name, c := range map[string]struct {
		lease func(*fakeLease)
		want  bool
	}{
		"no lease":        {lease: func(*fakeLease) {}},
		"held":            {lease: func(f *fakeLease) { f.heldBy("w1-1") }, want: true},
		"held by another": {lease: func(f *fakeLease) { f.heldBy("w2-1") }},
		"held again, in a new term": {lease: func(f *fakeLease) {
			f.heldBy("w1-1")
			f.record.LeaderTransitions++
		}},
	} {
		t.Run(name, func(t *testing.T) {
			lease := new(fakeLease)
			lease.set(c.lease)
			lock := &kubernetesLock{lease: func(_, id string) resourcelock.Interface {
				return &fakeCandidate{fakeLease: lease, id: id}
			}}
			held, err := lock.Holds(t.Context(), Grant{Key: "k", ID: "w1-1", Token: 1})
			if held != c.want || err != nil {
				t.Errorf("held: %v, %v, want %v", held, err, c.want)
			}
		})
	}
}

// TestKubernetesName: every lock has a distinct name that is valid for a Lease.
func TestKubernetesName(t *testing.T) {
	names := make(map[string]bool)
	for _, lock := range []string{"k0", "K0", "k/0", "k 0", "k-0"} {
		name := kubernetesName(lock)
		if names[name] || !regexp.MustCompile(`^[a-z0-9-]{1,63}$`).MatchString(name) {
			t.Errorf("%q of %q", name, lock)
		}
		names[name] = true
	}
}

// TestKubernetesOpen: the lock opens with any number of servers except none.
func TestKubernetesOpen(t *testing.T) {
	for nodes, fine := range map[int]bool{0: false, 1: true, 3: true} {
		if _, err := opened(t, "k8s-lease", slices.Repeat([]string{"127.0.0.1:1"}, nodes)...); (err == nil) != fine {
			t.Errorf("on %d servers it opens with error %v", nodes, err)
		}
	}
}
