package clients

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"lockcheck/history"
)

// Config is what a worker needs to use a lock.
type Config struct {
	Worker string   // name of the worker, for connection names and logs
	Nodes  []string // addresses of the servers in the order of their names
	Folder string   // shared by all workers of a run, for a lock without servers
	// TTL is the lease that attempts will request. Some clients need it when they open, because one session
	// serves all attempts.
	TTL time.Duration
	// Permits is how many clients may hold a key at once; 0 means 1. Only for a lock with Info.Permits.
	Permits int
	// LockDelay is how long the service refuses the lock to others after its session was lost; nil for the
	// shortest delay. Only for a lock with Info.LockDelay.
	LockDelay *time.Duration
	// NoKeepAlive lets the lease of a Session expire without renewal; only for a client that supports it.
	NoKeepAlive bool
	// Timeout is the deadline that calls will have, for a client that must know it when it opens.
	Timeout time.Duration
	// Stop is closed when the lock is no longer needed, so that Open can give up; nil: never.
	Stop <-chan struct{}
	// Renewing is called by the client of a Session before it sends a Renewal in the background, which waits until
	// Renewing returns. The client calls answered with the outcome, an error if the connection breaks; if nothing
	// happens, never. nil: nobody listens.
	Renewing func(Renewal) (answered func(error))

	options optionSet
}

// number returns the worker's number, from 1; 0 if its name has none.
func (c Config) number() int {
	n, _ := strconv.Atoi(strings.TrimPrefix(c.Worker, "w"))
	return n
}

// Renewal is a request that opens a session, or keeps one alive. It has the Key and ID of the attempt whose session it is;
// neither, if one session serves all attempts.
type Renewal struct {
	Key, ID string
	Opens   bool
}

// renewing calls Renewing, if there is one.
func (c Config) renewing(r Renewal) (answered func(error)) {
	if c.Renewing == nil {
		return func(error) {}
	}
	return c.Renewing(r)
}

// renewals is renewing for the session of an attempt.
func (c Config) renewals(a Attempt) func(opens bool) (answered func(error)) {
	return func(opens bool) func(error) {
		return c.renewing(Renewal{Key: a.Key, ID: a.ID, Opens: opens})
	}
}

// Modules on which several locks are built.
const (
	goRedis    = "github.com/redis/go-redis/v9"
	etcdClient = "go.etcd.io/etcd/client/v3"
	etcdServer = "go.etcd.io/etcd/server/v3" // for the messages of its Lock service
	consulAPI  = "github.com/hashicorp/consul/api"
	pgxV5      = "github.com/jackc/pgx/v5"
	goMySQL    = "github.com/go-sql-driver/mysql"
	goMemcache = "github.com/bradfitz/gomemcache"
	redsyncV4  = "github.com/go-redsync/redsync/v4"
	goNATS     = "github.com/nats-io/nats.go"
	awsS3      = "github.com/aws/aws-sdk-go-v2/service/s3"
)

// Table lists all locks in the order in which they are shown.
func Table() []Info {
	locks := slices.Concat(embeddedLocks(), redisLocks(), []Info{fileInfo()}, etcdLocks(), zookeeperLocks(), consulLocks(),
		[]Info{kubernetesInfo()}, natsLocks(), postgresLocks(), []Info{getLockInfo(), memcachedInfo()}, galeraLocks(), s3Locks())
	for i := range locks {
		locks[i].Options = slices.Concat(locks[i].Options, []Option{watchdog()})
	}
	return locks
}

// as derives a lock of the same family, with its own name, its own summary and the given changes.
func (i Info) as(name, summary string, change func(*Info)) Info {
	i.Name, i.Summary = name, summary
	change(&i)
	return i
}

// Texts that locks of several families share.
const (
	notifiedByRenewal = "when a renewal fails"
	wallClockOfServer = "wall clock of the server"
	redlockClock      = "wall clocks of a majority of the servers, monotonic clock of the client"
)

func memoryInfo() Info {
	return Info{
		Name: "memory", Summary: "textbook lease lock with fencing tokens, embedded in lockcheck; needs no Docker",
		Servers: "memory", TTL: time.Second, MinTTL: time.Millisecond, Grace: 250 * time.Millisecond,
		Renew: true, Ask: true, Shared: true, Token: "counter of the service", LossNotification: notifiedByRenewal, Clock: "monotonic clock of the service",
		Open: openMemory,
	}
}

func semaphoreInfo() Info {
	return memoryInfo().as("memory-semaphore", "textbook semaphore: permits with leases, embedded in lockcheck; needs no Docker", func(i *Info) {
		i.Servers, i.Permits, i.Open = "memory-semaphore", true, openMemorySemaphore
		i.Ask, i.Shared, i.Token = false, false, ""
	})
}

func embeddedLocks() []Info {
	return []Info{
		memoryInfo(),
		{
			Name: "memory-redlock", Summary: "Redlock as published, on five servers that are embedded in lockcheck, with wall clocks; needs no Docker",
			Servers: "memory5", TTL: 2 * time.Second, MinTTL: 10 * time.Millisecond, Grace: time.Second,
			Renew: true, Ask: true, LossNotification: notifiedByRenewal, Clock: redlockClock,
			Options: []Option{askSequentially()}, Open: openMemoryRedlock,
		},
		semaphoreInfo(),
		{
			Name: history.LockNone, Summary: "no lock at all: the control that the checkers must catch; needs no Docker",
			Unsafe:  true,
			Servers: "none", LossNotification: neverNotified, Clock: "none",
			Open: openNone,
		},
		{
			Name: "queue", Summary: "no lock: one consumer calls up one operation at a time, in the order in which they were sent; needs no Docker",
			Servers: "queue", Grace: 250 * time.Millisecond, Queues: true, LossNotification: neverNotified, Clock: "none",
			Open: openQueue,
		},
	}
}

func redisLocks() []Info {
	redis := Info{
		Name: "redis", Summary: "one Redis: SET NX PX, release and renewal by owner-checked scripts",
		Servers: "redis", TTL: 2 * time.Second, MinTTL: time.Millisecond, Grace: 500 * time.Millisecond,
		Renew: true, Ask: true, LossNotification: notifiedByRenewal, Clock: wallClockOfServer,
		Modules: []string{goRedis}, Options: redisOptions(), Open: openRedis,
	}
	failover := redis.as("redis-failover", "as redis, on a primary with a replica that three Sentinels promote when it fails", func(i *Info) {
		i.Servers, i.Grace, i.Clock, i.Open = "redis-failover", 6*time.Second, "wall clock of the primary", openRedisFailover
	})
	cluster := failover.as("redis-cluster", "as redis, on a Redis Cluster of three primaries with a replica each", func(i *Info) {
		i.Servers, i.Options, i.Open = "redis-cluster", redisClusterOptions(), openRedisCluster
	})
	redlock := redis.as("redlock", "Redlock as published, on five independent Redis", func(i *Info) {
		i.Servers, i.MinTTL, i.Grace, i.Clock = "redis5", 10*time.Millisecond, time.Second, redlockClock
		i.Options, i.Open = []Option{redisNoRetries(), askSequentially()}, openRedlock
	})
	redsync := redlock.as("redsync", "Redlock by the library that people use", func(i *Info) {
		i.Library, i.Ask, i.Options, i.Open = redsyncV4, false, redisOptions(), openRedsync
	})
	return []Info{
		redis,
		{
			Name: "redis-noexpiry", Summary: "one Redis: SET NX without a lease",
			Naive:   "a holder that dies takes the lock with it",
			Servers: "redis", LossNotification: neverNotified, Clock: "none",
			Modules: []string{goRedis}, Options: redisOptions(), Open: openRedisNoExpiry,
		},
		redis.as("redis-unsafe-release", "one Redis: SET NX PX, release by plain DEL", func(i *Info) {
			i.Naive, i.Open = "a late release removes the lock of somebody else", openRedisUnsafeRelease
		}),
		redis.as("redis-aof", "as redis, on a Redis that syncs each change to its disk before it answers", func(i *Info) { i.Servers = "redis-aof" }),
		redis.as("redis-aof-everysec", "as redis-aof, but synced only once a second, Redis' default for append-only files", func(i *Info) { i.Servers = "redis-aof-everysec" }),
		failover,
		failover.as("redis-wait", "as redis-failover; a grant counts only when WAIT says that a replica has it", func(i *Info) { i.Open = openRedisWait }),
		cluster,
		redis.as("redislock", "one Redis: SET NX PX by a library that people use", func(i *Info) {
			i.Library, i.Ask, i.Open = "github.com/bsm/redislock", false, openRedisLockLib
		}),
		redis.as("redis-reentrant", "one Redis: a hash with a hold count and a watchdog, in the manner of Redisson's RLock", func(i *Info) {
			i.Session, i.Renew, i.LossNotification, i.Open = true, false, neverNotified, openRedisReentrant
			i.Options = redisReentrantOptions()
		}),
		redlock,
		redsync,
		redis.as("valkey", "the lock of redis on one Valkey", func(i *Info) { i.Servers = "valkey" }),
		cluster.as("valkey-cluster", "the lock of redis-cluster on a Valkey Cluster", func(i *Info) { i.Servers = "valkey-cluster" }),
		redsync.as("redsync-4.12.0", "Redlock by a library, in a version with a known bug", func(i *Info) {
			i.Naive = "with one server down a renewal reports success and removes the lock from the others; mended in 4.12.1"
			i.Program = "redsync-4.12.0"
		}),
	}
}

func fileInfo() Info {
	return Info{
		Name: "file", Summary: "a file in a folder that the workers share, made by link(2); a holder that dies keeps it; needs no Docker",
		Servers: "none", LossNotification: neverNotified, Clock: "none",
		Open: openFile,
	}
}

func etcdLocks() []Info {
	mutex := Info{
		Name: "etcd", Summary: "etcd: Session and Mutex of the Go client library", Library: etcdClient,
		Servers: "etcd", TTL: 2 * time.Second, MinTTL: 2 * time.Second, TTLStep: time.Second, Grace: 3 * time.Second,
		Session: true, Queues: true, AnyServer: true, Ask: true, Token: "create revision of the own key",
		LossNotification: neverNotified, Clock: "monotonic clock of the leader (3.4: its wall clock, for the end of a lease)", Options: etcdOptions(),
		Modules: []string{etcdClient}, Open: openEtcd, Observe: watchEtcd,
	}
	service := mutex.as("etcd-v3lock", "etcd: the Lock service of the servers, with a lease that the client library renews", func(i *Info) {
		i.Library, i.Modules, i.Open = "", []string{etcdClient, etcdServer}, openEtcdV3Lock
		i.Options = etcdV3LockOptions("when KeepAlive ends: up to a second after the lease, or 6 to 7 s after KeepAlive was called if no renewal was answered")
	})
	return []Info{
		mutex,
		mutex.as("etcd-election", "etcd: Session and Election of the Go client library; the leader holds the lock for its term", func(i *Info) {
			i.Token, i.Options, i.Open = "create revision of the own key, by Election.Rev", etcdSessionOptions(), openEtcdElection
		}),
		service,
		service.as("etcd-v3lock-retry", "as etcd-v3lock; a renewal that has no answer after 0.4 s is retried on the next server", func(i *Info) {
			i.Options = etcdV3LockOptions("when a renewal is refused, or none was answered for the length of the lease")
			i.Open = openEtcdV3LockRetry
		}),
		service.as("etcd-header-revision", "etcd: as etcd-v3lock, fenced by the revision in the answer", func(i *Info) {
			i.Naive, i.Ask = "two holders can get the same token from etcd 3.4", false
			i.Token, i.Open = "revision in the header of the answer", openEtcdHeaderRevision
		}),
	}
}

func zookeeperLocks() []Info {
	recipe := Info{
		Name: "zookeeper", Summary: "ZooKeeper's own recipe: a queue of nodes that end with their session, each watching the one before",
		Servers: "zookeeper", TTL: zkTTL, MinTTL: ZooKeeperMinTTL, MaxTTL: ZooKeeperMaxTTL, Delivered: zkDelivered(), Grace: 2 * time.Second,
		Session: true, Queues: true, CountsWakes: true, AnyServer: true, Ask: true, Shared: true,
		Token: "czxid of the own node", LossNotification: zkNotified, Clock: "monotonic clock of the leader",
		Modules: []string{goZooKeeper}, Open: openZooKeeper,
	}
	return []Info{
		recipe,
		recipe.as("zookeeper-lib", "the same recipe by the library that people use", func(i *Info) {
			i.Library, i.Modules, i.Options, i.Open = goZooKeeper, nil, zkLibOptions(), openZooKeeperLib
			i.Endless, i.CountsWakes, i.Shared, i.Token = true, false, false, ""
			i.LossNotification = "when it releases the lock"
		}),
		recipe.as("zookeeper-herd", "the same recipe with a watch on the whole queue", func(i *Info) {
			i.Naive, i.Shared, i.Open = "each release wakes up all who wait", false, openZooKeeperHerd
		}),
	}
}

func consulLocks() []Info {
	lock := Info{
		Name: "consul", Summary: "Consul: a key held by a session, by the lock that its users use (as delivered, Consul accepts no lease below 10 s)",
		Library: consulAPI, Servers: "consul", TTL: 2 * time.Second, MinTTL: time.Second, MaxTTL: 24 * time.Hour,
		Delivered: Delivered{MinTTL: 10 * time.Second, MinSetting: "session_ttl_min"},
		// The leader ends a session after twice its lease, then waits for the delay. A waiter that was refused
		// during the delay retries after 5 s.
		Expiry: 2, LockDelay: 15 * time.Second, Grace: 6 * time.Second,
		Session: true, Queues: true, AnyServer: true, Ask: true,
		Token: "lock index of the key", LossNotification: "when its watch on the key sees it lost or fails; not while nothing comes back from the server",
		Clock:   "monotonic clock of the leader",
		Modules: []string{consulAPI}, Options: consulOptions(), Open: openConsul,
	}
	return []Info{
		lock,
		lock.as("consul-semaphore", "Consul: a list of the sessions that hold a permit, by the semaphore that its users use", func(i *Info) {
			// The lock delay does not matter: it applies to the session's own key, which no other client asks for.
			i.LockDelay, i.Grace = 0, 2*time.Second
			i.Permits, i.Ask, i.Token, i.Options, i.Open = true, false, "", nil, openConsulSemaphore
			i.LossNotification = "when its watch on the list sees it gone or fails; not while nothing comes back from the server"
		}),
	}
}

func kubernetesInfo() Info {
	return Info{
		Name: "k8s-lease", Summary: "Kubernetes: a Lease, by the leader election of client-go", Library: "k8s.io/client-go",
		Program: "kubernetes", Servers: "kubernetes", TTL: 6 * time.Second, MinTTL: kubernetesTTLStep, TTLStep: kubernetesTTLStep,
		// A candidate waits for a whole lease after it first sees the holder's lease.
		Expiry: 2, Grace: time.Second,
		Session: true, Queues: true, CountsAnew: true, Ask: true, Token: "leaseTransitions of the Lease", LossNotification: "when its context ends, once renewals have failed for a renew deadline and the library has tried to give the lease back", Clock: "monotonic clocks of the candidates",
		Options: kubernetesOptions(), Open: openKubernetes,
	}
}

func natsLocks() []Info {
	right := Info{
		Name: "nats-kv", Summary: "NATS JetStream: a key of a bucket, Create with a TTL, renewal and Delete by revision",
		Servers: "nats", TTL: 2 * time.Second, MinTTL: natsTTLStep, TTLStep: natsTTLStep,
		// The server looks for expired keys at intervals, and a majority must agree to remove them.
		Grace: 3 * time.Second,
		Renew: true, Ask: true, Token: "revision at which the key was created", LossNotification: notifiedByRenewal,
		Clock:   "wall clocks of the servers: of the one that led when the key was written, and of the one that leads when it runs out",
		Modules: []string{goNATS}, Open: openNATS,
	}
	return []Info{
		right,
		right.as("nats-kv-delete", "as nats-kv, released by a Delete without a revision", func(i *Info) {
			i.Naive, i.Open = "a late release removes the lock of somebody else", openNATSDelete
		}),
		right.as("nats-kv-update", "as nats-kv, renewed by Update of the client library", func(i *Info) {
			i.Naive, i.Open = "a renewal takes the lease away: a holder that dies after it takes the lock with it", openNATSUpdate
		}),
		right.as("nats-kv-fraction", "as nats-kv, with leases that are not rounded up to whole seconds", func(i *Info) {
			i.Naive, i.Open = "the server cuts fractions of a second off a lease, which ends before its holder thinks so", openNATSFraction
		}),
	}
}

// Texts and durations that the locks which last as long as a connection share.
const (
	sqlGrace          = SQLServerSilence
	notifiedByQuery   = "at the next query only"
	clockOfConnection = "none; keep-alives of TCP on both sides (monotonic clocks) if the holder is cut off"
)

func postgresLocks() []Info {
	session := Info{
		Name: "postgres-session", Summary: "PostgreSQL: pg_advisory_lock of a session",
		Servers: "postgres", Grace: sqlGrace, Queues: true, Data: true, Shared: true, LossNotification: notifiedByQuery, Clock: clockOfConnection,
		Modules: []string{pgxV5}, Options: pgOptions(), Open: openPostgresSession,
	}
	lease := Info{
		Name: "postgres-lease", Summary: "PostgreSQL: a row with an owner, an expiry by the database's clock and a counter",
		Servers: "postgres", TTL: 2 * time.Second, MinTTL: time.Millisecond, Grace: 500 * time.Millisecond,
		Renew: true, Ask: true, Token: "counter in the row", LossNotification: notifiedByRenewal, Clock: wallClockOfServer,
		Modules: []string{pgxV5}, Options: leaseOptions(), Open: openPostgresLease,
	}
	return []Info{
		session,
		session.as("postgres-xact", "PostgreSQL: pg_advisory_xact_lock, a transaction around the section", func(i *Info) { i.Open = openPostgresXact }),
		session.as("postgres-row", "PostgreSQL: SELECT FOR UPDATE of a row, a transaction around the section", func(i *Info) { i.Open = openPostgresRow }),
		lease,
		lease.as("postgres-upsert", "postgres-lease with a renewal by upsert", func(i *Info) {
			i.Naive, i.Open = "a renewal takes back an expired lease even if another worker has held the lock since", openPostgresUpsert
		}),
		{
			Name: "postgres-insert", Summary: "PostgreSQL: INSERT of a row with a unique key to acquire, DELETE to release",
			Naive:   "a holder that dies leaves its row behind",
			Servers: "postgres", LossNotification: neverNotified, Clock: "none",
			Modules: []string{pgxV5}, Options: insertOptions(), Open: openPostgresInsert,
		},
		session.as("postgres-pgbouncer", "pg_advisory_lock of a session, through PgBouncer with transaction pooling", func(i *Info) {
			i.Servers, i.Unsafe, i.Shared, i.Open = "postgres-pgbouncer", true, false, openPostgresPooled
			i.Naive = "lock and unlock may reach different sessions of the server, and clients share sessions"
			i.LossNotification = "only at the next query, and of its connection to the pooler, which says nothing of the lock"
			i.Clock = "none"
		}),
	}
}

func getLockInfo() Info {
	return Info{
		Name: "mariadb", Summary: "MariaDB: GET_LOCK and RELEASE_LOCK of a connection",
		Servers: "mariadb", Grace: sqlGrace, Queues: true, LossNotification: notifiedByQuery, Clock: clockOfConnection,
		Modules: []string{goMySQL}, Options: []Option{sqlKeepAlives()}, Open: openMariaDB,
	}
}

func memcachedInfo() Info {
	return Info{
		Name: "memcached-add", Summary: "memcached: a key made by add, given back by a compare-and-swap",
		Servers: "memcached", TTL: 2 * time.Second, MinTTL: memcachedTick, MaxTTL: memcachedMaxTTL, TTLStep: memcachedTick,
		// Up to one second of the requested time may be lost, so one second is added.
		Grace: memcachedTick + 500*time.Millisecond,
		Renew: true, Ask: true, LossNotification: notifiedByRenewal, Clock: "monotonic clock of the server",
		Modules: []string{goMemcache}, Open: openMemcachedAdd,
	}
}

func galeraLocks() []Info {
	getLock := getLockInfo().as("galera-getlock", "MariaDB with Galera: GET_LOCK of a connection, by workers that are spread over the servers", func(i *Info) {
		i.Servers, i.Grace, i.AnyServer, i.Options, i.Open = "galera", galeraGrace, true, galeraOptions(), openGetLock
		i.Unsafe, i.Naive = true, "a server tells the others nothing of its locks"
	})
	return []Info{
		getLock,
		getLock.as("galera-forupdate", "MariaDB with Galera: SELECT FOR UPDATE of a row, a transaction around the section that changes the row at its end, by workers that are spread over the servers", func(i *Info) {
			i.Naive, i.Open = "a row is locked on one server; of two holders the later one to commit learns it then", openGaleraForUpdate
		}),
		{
			Name: "galera-insert", Summary: "MariaDB with Galera: INSERT of a row with a unique key to acquire, DELETE to release, by workers that are spread over the servers",
			Naive:   "a holder that dies, or whose release fails, leaves its row behind",
			Servers: "galera", AnyServer: true, LossNotification: neverNotified, Clock: "none",
			Modules: []string{goMySQL}, Options: galeraOptions(), Open: openGaleraInsert,
		},
	}
}

// ByName finds a lock in Table, or a mutant. Options follow the name: "etcd+watch-session".
func ByName(name string) (Info, bool) {
	if info, is := mutantByName(name); is {
		return info, true
	}
	base, options, _ := strings.Cut(name, optionSign)
	for _, info := range Table() {
		if info.Name == base {
			return info.With(options)
		}
	}
	return Info{}, false
}

// Names lists the names in Table.
func Names() []string {
	var names []string
	for _, info := range Table() {
		names = append(names, info.Name)
	}
	return names
}

func s3Locks() []Info {
	lease := Info{
		Name: "s3-conditional", Summary: "an object store: a record written by PUT with If-None-Match or If-Match, taken over when it has not changed for a lease",
		Program: "s3", Servers: "s3", TTL: 2 * time.Second, MinTTL: time.Millisecond,
		// The first waiter may see the record only a lease after the last renewal, and then waits for another lease.
		Expiry: 2, Grace: 500 * time.Millisecond,
		Renew: true, Ask: true, Token: "epoch in the record", LossNotification: notifiedByRenewal, Clock: "monotonic clocks of the clients",
		Modules: []string{awsS3}, Options: s3Options(), Open: openS3Conditional,
	}
	return []Info{
		lease,
		lease.as("s3-conditional-412", "as s3-conditional; a refused renewal counts as a loss", func(i *Info) {
			i.Naive, i.Open = "the answer to a renewal is lost, the store refuses the next renewal, and the holder gives up a lock that it still holds", openS3TrustsRefusal
		}),
		{
			Name: "s3-lockfile", Summary: "an object store: Terraform's use_lockfile, a PUT with If-None-Match and a DELETE; a holder that dies keeps it",
			Program: "s3", Servers: "s3", Ask: true, LossNotification: neverNotified, Clock: "none",
			Grace:   5 * time.Second, // until TCP sends a release again that a cut has held up
			Modules: []string{awsS3}, Options: s3LockfileOptions(), Open: openS3Lockfile,
		},
	}
}
