package clients

import (
	"errors"
	"time"
)

// ErrEmbeddedOnly is why a build with the tag embedded (EmbeddedOnly) refuses a lock on servers.
var ErrEmbeddedOnly = errors.New("this lockcheck has only the locks that need no servers; make build makes the whole program")

// What the table says of the locks on servers: their options, and the bounds of their leases. The
// code of those locks is in files of its own, which a build with the tag embedded leaves out.

// What a careful user sets in the options of go-redis.
const (
	noRetries = "no-retries"
	// CallDeadlines is an option of the locks by go-redis.
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

// ClusterTag stands before the names of all keys in a Redis Cluster. It is a hash tag: all keys
// are in its slot, so that one server at a time has them.
const ClusterTag = "{lock}"

// redisClusterOptions lacks what go-redis does not offer for a cluster: without being sent
// again a request does not follow its key to another server either.
func redisClusterOptions() []Option {
	options := redisOptions()
	return options[1:]
}

// FailoverName is the name under which Sentinels know the primary.
const FailoverName = "lock"

// withdrawOption is the name of what consulLock.withdraw is for.
const withdrawOption = "withdraw"

func consulOptions() []Option {
	return []Option{{
		Name: withdrawOption,
		Adds: "requests end with the attempt or release that they are made for; one that was not answered is taken back at another server, which is asked from then on",
	}}
}

// Options of the lock on etcd.
const (
	watchSession      = "watch-session"
	sessionPerAttempt = "session-per-attempt"
	retryUnlock       = "retry-unlock"
	stopWaiting       = "stop-waiting"
)

func etcdOptions() []Option {
	return append(etcdSessionOptions(), Option{
		Name: retryUnlock, Adds: "an Unlock that fails is called again in the background until it succeeds, while the program goes on with the same session",
	})
}

// etcdSessionOptions are those of all locks by a session of the client library.
func etcdSessionOptions() []Option {
	return []Option{
		{
			Name: watchSession, Adds: "looks at Session.Done during the critical section: who finds it closed does not write",
			changes: func(i *Info) {
				i.LossNotification = "when its session ends: up to a second after its lease, or 6 to 7 s after its start if no renewal was answered"
			},
		},
		{
			Name: sessionPerAttempt, Adds: "each attempt has a session of its own; one that fails is withdrawn by revoking its lease, without waiting for the library to tidy up",
		},
		{
			Name: stopWaiting, Adds: "a Lock or Campaign that waits is given up as soon as its session ends",
		},
	}
}

// Options of the locks by etcd's Lock service.
const (
	checkKeepAlive = "check-keepalive"
	// WatchKeepAlive is the one that goes on looking.
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

// Bounds of a session's timeout, as our servers are told. Within them a client
// gets what it asks for, rounded up to their next tick of 200 ms when it runs out.
const (
	ZooKeeperMinTTL = 400 * time.Millisecond
	ZooKeeperMaxTTL = time.Minute
	zkTTL           = 2 * time.Second
)

// zkDelivered are 2 and 20 ticks, of the 2 s that the sample configuration and the official image have.
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

// zkNotified is how the holder of a lock on ZooKeeper learns of its loss, where its client tells at once.
const zkNotified = "on each loss of the connection: at once, or after two thirds of the lease without an answer"

// galeraGrace is how long servers and workers may take to be in step again after a fault: 5 s
// until a server that is silent is left out, and as long until it is back.
const galeraGrace = 10*time.Second + sqlGrace

// OneServer is an option of the locks on Galera.
const OneServer = "one-server"

func galeraOptions() []Option {
	return []Option{sqlKeepAlives(), {
		Name: OneServer, Adds: "all workers connect to the first of the servers that accepts a connection",
		changes: func(i *Info) { i.Unsafe, i.Naive = false, "" },
	}}
}

// Options of the lock that is an INSERT.
const (
	takeOver    = "take-over"
	clocksApart = "clocks-apart"
)

func insertOptions() []Option {
	return []Option{{
		Name: takeOver, Adds: "the row has the end of the lease by its holder's wall clock; whoever asks takes over one that is over by its own",
		changes: func(i *Info) {
			i.TTL, i.MinTTL, i.Grace = 2*time.Second, time.Millisecond, 500*time.Millisecond
			i.Clock = "wall clocks of the clients, which must agree"
		},
	}, {
		Name: clocksApart, Adds: "the wall clock of each worker is ten seconds ahead of that of the one before it",
	}}
}

const (
	// memcachedTick is how often memcached looks at its clock. A key that is to last for n seconds
	// ends with the n-th tick, of which the first may come at once.
	memcachedTick = time.Second
	// memcachedMaxTTL is the longest time that is not taken for a date ("Expiration times" in
	// memcached's protocol.txt), less the tick that is added.
	memcachedMaxTTL = 30*24*time.Hour - memcachedTick
)

// NATSStream is the stream that has the key-value bucket of the locks.
const NATSStream = "KV_" + natsBucket

const (
	natsBucket = "lockcheck"
	// natsTTLStep is the unit of leases. The server cuts off what is beyond whole ones.
	natsTTLStep = time.Second
)

// KubernetesToken is by what its API servers know lockcheck.
const KubernetesToken = "lockcheck"

const (
	// KubernetesNamespace is there on every cluster, and has the leases.
	KubernetesNamespace = "default"
	// kubernetesTTLStep is the unit in which a Lease tells how long it lasts.
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
