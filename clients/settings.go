package clients

import (
	"errors"
	"time"
)

// ErrEmbeddedOnly is the error of a build with the tag embedded (EmbeddedOnly) for a lock that needs servers.
var ErrEmbeddedOnly = errors.New("this lockcheck has only the locks that need no servers; make build makes the whole program")

// This file has what the table states about the locks on servers: their options and the limits of their leases.
// The code of these locks is in other files, which a build with the tag embedded leaves out.

// Options of the locks that use go-redis.
const (
	noRetries = "no-retries"
	// CallDeadlines makes go-redis respect the deadlines of calls.
	CallDeadlines = "call-deadlines"
)

func redisOptions() []Option {
	return []Option{redisNoRetries(), {
		Name: CallDeadlines, Adds: "go-redis does not wait for an answer beyond the deadline of the call (ContextTimeoutEnabled)",
	}}
}

func redisNoRetries() Option {
	return Option{Name: noRetries, Adds: "go-redis sends no request again (MaxRetries -1)"}
}

// Options of redis-reentrant.
const (
	subscribe        = "subscribe"
	retryOnReconnect = "retry-on-reconnect"
)

func redisReentrantOptions() []Option {
	return append(redisOptions(), Option{
		Name: subscribe, Adds: "a refused attempt waits, as in Redisson, until a message says that the lock was released, or the holder's lease is over",
		changes: func(i *Info) { i.Queues = true },
	}, Option{
		Name: retryOnReconnect, Adds: "with subscribe: it also tries again after it has lost its subscription and subscribed again",
	})
}

// ClusterTag precedes the names of all keys in a Redis Cluster. As a hash tag it puts all keys into one slot,
// so exactly one server at a time owns them.
const ClusterTag = "{lock}"

// redisClusterOptions lacks no-retries, which go-redis does not support for a cluster: without retries a
// request could not follow its key to another server.
func redisClusterOptions() []Option {
	options := redisOptions()
	return options[1:]
}

// FailoverName is the name under which Sentinels know the primary.
const FailoverName = "lock"

// Options of Consul's lock.
const (
	// withdrawOption makes consulLock.withdraw take back unanswered requests.
	withdrawOption = "withdraw"
	abandonLost    = "abandon-lost"
	monitorRetries = "monitor-retries"
)

func consulOptions() []Option {
	return []Option{{
		Name: withdrawOption,
		Adds: "requests end with the attempt or release that they are made for; one that was not answered is taken back at another server, which is asked from then on",
	}, {
		Name: abandonLost, Adds: "a lock that the library reports as lost is not unlocked; the next attempt makes a new one",
	}, {
		Name: monitorRetries, Adds: "the library's watch on the key tries five times, two seconds apart, before it reports a loss (MonitorRetries)",
	}}
}

// Options of the lock on etcd.
const (
	watchSession      = "watch-session"
	SessionPerAttempt = "session-per-attempt"
	retryUnlock       = "retry-unlock"
	StopWaiting       = "stop-waiting"
)

func etcdOptions() []Option {
	return append(etcdSessionOptions(), Option{
		Name: retryUnlock, Adds: "an Unlock that fails is called again in the background until it succeeds, while the program goes on with the same session",
	})
}

// etcdSessionOptions returns the options of all locks that use a session of the client library.
func etcdSessionOptions() []Option {
	return []Option{
		{
			Name: watchSession, Adds: "looks at Session.Done during the critical section: who finds it closed does not write",
			changes: func(i *Info) {
				i.LossNotification = "when its session ends: up to a second after its lease, or 6 to 7 s after its start if no renewal was answered"
			},
		},
		{
			Name: SessionPerAttempt, Adds: "each attempt has a session of its own; one that fails is withdrawn by revoking its lease, without waiting for the library to tidy up",
		},
		{
			Name: StopWaiting, Adds: "a Lock or Campaign that waits is given up as soon as its session ends",
		},
	}
}

// Options of the locks that use etcd's Lock service.
const (
	checkKeepAlive = "check-keepalive"
	// WatchKeepAlive also checks during the critical section.
	WatchKeepAlive = "watch-keepalive"
)

func etcdV3LockOptions(notification string) []Option {
	return []Option{
		{
			Name: checkKeepAlive, Adds: "looks once, when a grant arrives, whether the renewal of the lease is known to have ended, and gives the grant back then",
		},
		{
			Name: WatchKeepAlive, Adds: "looks for that during the critical section, too: who learns of it does not write",
			changes: func(i *Info) { i.LossNotification = notification },
		},
	}
}

const goZooKeeper = "github.com/go-zookeeper/zk"

// Limits of a session's timeout in our servers' configuration. Within them a client gets what it requests. The
// servers end a session at their next tick of 200 ms.
const (
	ZooKeeperMinTTL = 400 * time.Millisecond
	ZooKeeperMaxTTL = time.Minute
	zkTTL           = 2 * time.Second
)

// zkDelivered returns the default limits, 2 and 20 ticks. A tick is 2 s in the sample configuration and in the
// official image.
func zkDelivered() Delivered {
	return Delivered{MinTTL: 4 * time.Second, MinSetting: "minSessionTimeout", MaxTTL: 40 * time.Second, MaxSetting: "maxSessionTimeout"}
}

// newSessionOnError is an option of zookeeper-lib.
const newSessionOnError = "new-session-on-error"

func zkLibOptions() []Option {
	return []Option{
		{
			Name: WatchConnection, Adds: "the holder stops when the library tells that its connection is lost",
			changes: func(i *Info) { i.LossNotification = zkNotified },
		},
		{
			Name:    newSessionOnError,
			Adds:    "a session in which a call failed or took too long is closed, and what the library left behind goes with it",
			changes: func(i *Info) { i.Endless = false },
		},
	}
}

// zkNotified is the LossNotification of a lock on ZooKeeper whose client reports a loss immediately.
const zkNotified = "on each loss of the connection: at once, or after two thirds of the lease without an answer"

// galeraGrace is how long servers and workers may take to agree again after a fault: 5 s until the cluster
// excludes a silent server, and as long until the server is back.
const galeraGrace = 10*time.Second + sqlGrace

// OneServer is an option of the locks on Galera.
const OneServer = "one-server"

func galeraOptions() []Option {
	return []Option{sqlKeepAlives(), {
		Name: OneServer, Adds: "all workers connect to the first of the servers that accepts a connection",
		changes: func(i *Info) { i.Unsafe, i.Naive = false, "" },
	}}
}

// takeOver is an option of postgres-insert.
const takeOver = "take-over"

func insertOptions() []Option {
	return []Option{{
		Name: takeOver, Adds: "the row has the end of the lease by its holder's wall clock; whoever asks takes over one that is over by its own",
		changes: func(i *Info) {
			i.TTL, i.MinTTL, i.Grace = 2*time.Second, time.Millisecond, 500*time.Millisecond
			i.Clock, i.WallClocks = "wall clocks of the clients, which must agree", true
		},
	}}
}

const (
	// memcachedTick is the interval at which memcached checks its clock. A key that is to last for n seconds
	// ends with the n-th tick, and the first tick may come at once.
	memcachedTick = time.Second
	// memcachedMaxTTL is the longest lifetime that memcached does not interpret as a date ("Expiration times"
	// in memcached's protocol.txt), minus the tick that is added.
	memcachedMaxTTL = 30*24*time.Hour - memcachedTick
)

// NATSStream is the stream behind the key-value bucket of the locks.
const NATSStream = "KV_" + natsBucket

const (
	natsBucket = "lockcheck"
	// natsTTLStep is the unit of leases. The server truncates a lease to whole units.
	natsTTLStep = time.Second
)

// KubernetesToken is the bearer token that identifies lockcheck to its API servers.
const KubernetesToken = "lockcheck"

const (
	// KubernetesNamespace contains the Leases. It exists in every cluster.
	KubernetesNamespace = "default"
	// kubernetesTTLStep is the unit of the duration in a Lease.
	kubernetesTTLStep = time.Second
)

// Options of the lock on Kubernetes.
const (
	keepLease    = "keep-lease"
	earlyRenewal = "early-renewal"
)

func kubernetesOptions() []Option {
	return []Option{
		{Name: keepLease, Adds: "without ReleaseOnCancel, as controller-runtime does by default: a leader who ends its term leaves its Lease to run out"},
		{Name: earlyRenewal, Adds: "the renew deadline is a quarter of the lease, as in the example of the library, instead of two thirds, as in Kubernetes itself"},
	}
}

// What clients and the object store agree on.
const (
	S3AccessKey = "lockcheck"
	S3SecretKey = "lockcheck-secret"
	S3Region    = "us-east-1"
)

// Options of the locks on an object store.
const (
	requestTimeout = "request-timeout"
	reread         = "reread"
)

func s3Options() []Option {
	return []Option{{
		Name: requestTimeout, Adds: "the AWS SDK repeats a request that gets no answer within a second (http.Client.Timeout)",
	}}
}

func s3LockfileOptions() []Option {
	return append(s3Options(), Option{
		Name: reread, Adds: "a refused attempt reads the object, and has the lock if the object is its own",
	})
}
