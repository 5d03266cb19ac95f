package clients

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// fakeEtcdKV is a server that answers every read with the same response.
type fakeEtcdKV struct {
	clientv3.KV
	answer clientv3.GetResponse
	err    error
}

func (f fakeEtcdKV) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return &f.answer, f.err
}

// TestEtcdV3LockGone: only a server that has seen the creation of a key can tell that the key is gone.
func TestEtcdV3LockGone(t *testing.T) {
	for name, c := range map[string]struct {
		revision int64
		keys     []*mvccpb.KeyValue
		err      error
		want     bool
	}{
		"gone":                       {revision: 8, want: true},
		"gone at once":               {revision: 7, want: true},
		"there":                      {revision: 8, keys: []*mvccpb.KeyValue{{CreateRevision: 7}}},
		"the server lags":            {revision: 6},
		"the server cannot be asked": {revision: 8, err: errors.New("reset")},
	} {
		t.Run(name, func(t *testing.T) {
			answer := clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{Revision: c.revision}, Kvs: c.keys}
			lock := &etcdV3Lock{client: &clientv3.Client{KV: fakeEtcdKV{answer: answer, err: c.err}}}
			if gone := lock.gone(t.Context(), &etcdLease{key: "k0/1", created: 7}); gone != c.want {
				t.Errorf("gone: %v, want %v", gone, c.want)
			}
		})
	}
}

type fakeEtcdRecipe struct {
	etcdRecipe
	lock func(ctx context.Context) error
}

func (f fakeEtcdRecipe) Lock(ctx context.Context) error { return f.lock(ctx) }

// TestEtcdStopWaiting: the end of a session with NoKeepAlive does not end a wait.
func TestEtcdStopWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		stops  bool
	}{
		"without the option": {},
		"stop-waiting":       {config: Config{options: optionSet{StopWaiting}}, stops: true},
		"not kept alive":     {config: Config{options: optionSet{StopWaiting}, NoKeepAlive: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var waits context.Context
			recipe := fakeEtcdRecipe{lock: func(ctx context.Context) error { waits = ctx; return nil }}
			lock := &etcdLock{config: c.config, ownSession: c.config.NoKeepAlive}
			if err := lock.lock(t.Context(), etcdAttempt{session: new(concurrency.Session), recipe: recipe}); err != nil {
				t.Fatal(err)
			}
			if stops := waits != t.Context(); stops != c.stops {
				t.Errorf("ends with its session: %v, want %v", stops, c.stops)
			}
		})
	}
}

// TestUntilClosed: the wait ends with its session, and with its context.
func TestUntilClosed(t *testing.T) {
	outer, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	bySession, stop := untilClosed(outer, done)
	defer stop()
	byContext, stopOther := untilClosed(outer, nil)
	defer stopOther()
	if bySession.Err() != nil || byContext.Err() != nil {
		t.Fatal("ended before anything has")
	}
	close(done)
	<-bySession.Done()
	if byContext.Err() != nil {
		t.Error("ended by the session of another")
	}
	end()
	<-byContext.Done()
}
