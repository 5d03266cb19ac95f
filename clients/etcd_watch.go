//go:build !embedded

package clients

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdWatchPatience bounds the time in which the watch catches up at the end.
const etcdWatchPatience = 3 * time.Second

// watchEtcd reports each key that appears or disappears, in the order of the servers, until stop is closed and
// everything up to then is reported. It watches from the revision at its start. What happens while no server
// answers is reported late.
func watchEtcd(ctx context.Context, c Config, stop <-chan struct{}, report func(Observation)) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Nodes, DialTimeout: time.Second, Logger: zap.NewNop(),
		// So a stopped server does not block the watch.
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
	})
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := etcdRevision(ctx, client)
	for ; err != nil; seen, err = etcdRevision(ctx, client) { // the servers are just starting
		select {
		case <-stop:
			return err
		default:
		}
	}
	answers := client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(seen+1))
	revisions := make(map[string]uint64) // create revisions by key
	last, patience := int64(0), (<-chan time.Time)(nil)
	for last == 0 || seen < last {
		select {
		case answer, open := <-answers:
			if !open || answer.Err() != nil {
				return answer.Err()
			}
			seen = max(seen, answer.Header.Revision)
			for _, e := range answer.Events {
				reportEtcd(e, revisions, report)
			}
		case <-stop:
			stop = nil
			if last, err = etcdRevision(ctx, client); err != nil {
				return nil // the servers no longer answer, so nothing more can be reported
			}
			patience = time.After(etcdWatchPatience)
			if err := client.RequestProgress(ctx); err != nil {
				return nil
			}
		case <-patience:
			return nil
		}
	}
	return nil
}

func etcdRevision(ctx context.Context, client *clientv3.Client) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdWatchPatience)
	defer cancel()
	answer, err := client.Get(ctx, "k", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return answer.Header.Revision, nil
}

// reportEtcd reports an event of a key. Both the client library and the Lock service build a key from the names
// of its lock and its lease: k0/694d8a1f….
func reportEtcd(e *clientv3.Event, revisions map[string]uint64, report func(Observation)) {
	key := string(e.Kv.Key)
	lock := key[:max(0, strings.LastIndexByte(key, '/'))]
	token, known := revisions[key]
	switch {
	case lock == "":
	case e.Type == clientv3.EventTypeDelete && known:
		delete(revisions, key)
		report(Observation{Key: lock, Token: token, Gone: true})
	case e.IsCreate():
		revisions[key] = uint64(e.Kv.CreateRevision)
		report(Observation{Key: lock, Token: revisions[key]})
	}
}
