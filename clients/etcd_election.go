//go:build !embedded

package clients

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// openEtcdElection opens the lock that the leader of an election holds. Campaign acquires it and Resign
// releases it.
func openEtcdElection(c Config) (Lock, error) {
	return openEtcdRecipe(c, func(session *concurrency.Session, key string) etcdRecipe {
		return etcdElection{concurrency.NewElection(session, key), c.Worker}
	})
}

type etcdElection struct {
	*concurrency.Election
	// candidate is the value of the key. It is the same in all attempts of a worker. So an attempt that finds
	// the key of an earlier one need not proclaim another value.
	candidate string
}

func (e etcdElection) Lock(ctx context.Context) error   { return e.Campaign(ctx, e.candidate) }
func (e etcdElection) Unlock(ctx context.Context) error { return e.Resign(ctx) }
func (e etcdElection) token() uint64                    { return uint64(e.Rev()) }

// withdrawn: after a failed Campaign there is an answer's header only if Campaign has resigned.
func (e etcdElection) withdrawn() bool { return e.Header() != nil }

// Txn: Resign deletes its key in a transaction.
func (kv etcdKV) Txn(ctx context.Context) clientv3.Txn {
	txn := kv.KV.Txn(ctx)
	if deleted, asked := ctx.Value(deletedKeys{}).(*int64); asked {
		return etcdTxn{txn, deleted}
	}
	return txn
}

// etcdTxn counts the keys that a transaction with If and Then deletes.
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
