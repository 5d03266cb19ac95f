//go:build !embedded

package clients

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// openEtcdElection is the lock of who leads an election: it is acquired by Campaign and released
// by Resign.
func openEtcdElection(c Config) (Lock, error) {
	return openEtcdRecipe(c, func(session *concurrency.Session, key string) etcdRecipe {
		return etcdElection{concurrency.NewElection(session, key), c.Worker}
	})
}

type etcdElection struct {
	*concurrency.Election
	// candidate is the value of the key: the same in all attempts of a worker, so that one who
	// finds the key of an earlier attempt has nothing to proclaim.
	candidate string
}

func (e etcdElection) Lock(ctx context.Context) error   { return e.Campaign(ctx, e.candidate) }
func (e etcdElection) Unlock(ctx context.Context) error { return e.Resign(ctx) }
func (e etcdElection) token() uint64                    { return uint64(e.Rev()) }

// withdrawn: a Campaign that has failed has the header of an answer only if it has resigned.
func (e etcdElection) withdrawn() bool { return e.Header() != nil }

// Txn is how Resign deletes its key.
func (kv etcdKV) Txn(ctx context.Context) clientv3.Txn {
	txn := kv.KV.Txn(ctx)
	if deleted, asked := ctx.Value(deletedKeys{}).(*int64); asked {
		return etcdTxn{txn, deleted}
	}
	return txn
}

// etcdTxn counts what a transaction of an If and a Then has deleted.
type etcdTxn struct {
	clientv3.Txn
	deleted *int64
}

func (t etcdTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	return etcdTxn{t.Txn.If(conditions...), t.deleted}
}

func (t etcdTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	return etcdTxn{t.Txn.Then(ops...), t.deleted}
}

func (t etcdTxn) Commit() (*clientv3.TxnResponse, error) {
	answer, err := t.Txn.Commit()
	if err == nil {
		for _, response := range answer.Responses {
			*t.deleted += response.GetResponseDeleteRange().GetDeleted()
		}
	}
	return answer, err
}
