package guide

import (
	"slices"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
)

// End is what ends a lock whose holder does not release it.
type End string

const (
	EndsTransaction End = "transaction" // the holder's transaction, with which the data commits or rolls back
	EndsConnection  End = "connection"  // the holder's connection, which no clock ends
	EndsSession     End = "session"     // a session that the client keeps alive and the service times out
	EndsLease       End = "lease"       // a lease that ends unless the program renews it
	EndsNever       End = "never"       // an operator must remove the lock
)

// Family is all locks that end, and fail, in the same way. Its texts describe mechanism: they follow from how
// the locks work and need no run. Evidence is what runs have measured.
type Family struct {
	Name  string
	Locks []string // implementations, by the names of --lock
	End   End
	// Ends says what ends the lock, such as a clock. Survives says what a restart of the servers leaves of
	// the lock. Breaks says when two workers can act as the holder, and Behind what makes that harmless.
	Ends, Survives, Breaks, Behind string
	// GivesWay lists the kinds of fault under which, by its mechanism, the service grants the lock again
	// although its holder is healthy.
	GivesWay []string
	// TokenRestarts says when fencing tokens start again, so that an old holder outranks a new one; "" for
	// tokens that only grow, and for locks without tokens.
	TokenRestarts string
	// Condition is what the locks need from their environment; "" for nothing.
	Condition string
}

// Families lists all families.
func Families() []Family {
	const clockStep, restart, powerLoss = "clock:one server", "kill:one server", "power-loss:one server"
	const guardOfData = "version column or unique key"
	return []Family{
		{
			Name: "transaction of a database", Locks: []string{"postgres-xact", "postgres-row"}, End: EndsTransaction,
			Ends: "its transaction; no clock", Survives: "nothing; the transaction rolls back",
			Breaks: "the holder goes on after its connection ended", Behind: "data written in that transaction",
		}, {
			Name: "connection to a database", Locks: []string{"postgres-session", "mariadb"}, End: EndsConnection,
			Ends: "its connection; no clock", Survives: "nothing; holders learn it at their next query",
			Breaks: "the holder goes on after its connection ended", Behind: "data written through that connection, or a unique row",
			Condition: "connect to the server itself: a pooler in transaction mode shares connections",
		}, {
			Name: "session of etcd", Locks: []string{"etcd", "etcd-election", "etcd-v3lock", "etcd-v3lock-retry"}, End: EndsSession,
			Ends: "a lease by the leader's monotonic clock (3.4: wall clock)", Survives: "all, by Raft",
			Breaks: "a holder is paused or cut off past its lease", Behind: "fence by the create revision of its key",
		}, {
			Name: "session of ZooKeeper", Locks: []string{"zookeeper", "zookeeper-lib"}, End: EndsSession,
			Ends: "a session by the leader's monotonic clock", Survives: "all, by its log",
			Breaks: "a pause outlasts its session; with zookeeper-lib also cut off", Behind: "fence by the czxid of its node",
		}, {
			Name: "session of Consul", Locks: []string{"consul"}, End: EndsSession,
			Ends: "a session by the leader's monotonic clock, within twice its TTL", Survives: "keys and sessions",
			Breaks: "a holder is paused or cut off: it is not told", Behind: guardOfData,
			TokenRestarts: "LockIndex is 1 again after the key was deleted",
		}, {
			Name: "Lease of Kubernetes", Locks: []string{"k8s-lease"}, End: EndsSession,
			Ends: "each candidate's monotonic clock", Survives: "all, by etcd",
			Breaks: "a leader is paused or cut off; client-go promises no single leader", Behind: "resourceVersion of each written object (cas)",
			TokenRestarts: "leaseTransitions is 0 again in a Lease that was recreated",
		}, {
			Name: "key of NATS JetStream", Locks: []string{"nats-kv"}, End: EndsLease,
			GivesWay: []string{clockStep, "crash:one server", "power-loss:servers"},
			Ends:     "a TTL by the servers' wall clocks", Survives: "what was synced: by default every two minutes",
			Breaks: "a pause outlasts its TTL; a clock steps; all servers lose power", Behind: "fence by the revision of its key",
		}, {
			Name: "row with an expiry", Locks: []string{"postgres-lease"}, End: EndsLease,
			GivesWay: []string{clockStep},
			Ends:     "a lease by the database's wall clock", Survives: "all, by its log",
			Breaks: "a pause outlasts its lease; the database's clock steps", Behind: "fence by the counter in its row",
		}, {
			Name: "key of one Redis", Locks: []string{"redis", "redislock", "redis-reentrant", "valkey"}, End: EndsLease,
			GivesWay: []string{clockStep, restart},
			Ends:     "a TTL by the server's wall clock", Survives: "nothing",
			Breaks: "a pause outlasts its TTL; the server restarts; its clock steps", Behind: guardOfData,
		}, {
			Name: "key of one Redis that syncs each write", Locks: []string{"redis-aof"}, End: EndsLease,
			GivesWay: []string{clockStep},
			Ends:     "a TTL by the server's wall clock", Survives: "all, by its append-only file",
			Breaks: "a pause outlasts its TTL; the server's clock steps", Behind: guardOfData,
		}, {
			Name: "key of one Redis that syncs each second", Locks: []string{"redis-aof-everysec"}, End: EndsLease,
			GivesWay: []string{clockStep, powerLoss},
			Ends:     "a TTL by the server's wall clock", Survives: "all but the last second",
			Breaks: "a pause outlasts its TTL; the server loses power; its clock steps", Behind: guardOfData,
		}, {
			Name: "key of a replicated Redis", Locks: []string{"redis-failover", "redis-wait", "redis-cluster", "valkey-cluster"}, End: EndsLease,
			GivesWay: []string{clockStep, restart},
			Ends:     "a TTL by the primary's wall clock", Survives: "what was replicated",
			Breaks: "a holder is paused; a primary dies before it replicates", Behind: guardOfData,
		}, {
			Name: "Redlock", Locks: []string{"redlock", "redsync"}, End: EndsLease,
			GivesWay: []string{clockStep, restart},
			Ends:     "TTLs by the wall clocks of a majority", Survives: "nothing, unless each write is synced",
			Breaks: "a holder is paused; a clock steps or a server restarts", Behind: guardOfData,
		}, {
			Name: "key of memcached", Locks: []string{"memcached-add"}, End: EndsLease,
			GivesWay: []string{restart},
			Ends:     "a TTL by the server's monotonic clock", Survives: "nothing",
			Breaks: "a holder is paused; the server restarts or evicts the key", Behind: guardOfData,
		}, {
			Name: "record in an object store", Locks: []string{"s3-conditional"}, End: EndsLease,
			Ends: "a lease by the waiting client's monotonic clock", Survives: "untested",
			Breaks: "a pause outlasts its lease", Behind: "fence by the epoch in its record",
			Condition: "the store must compare and write in one step, data too",
		}, {
			Name: "mark that somebody removes", Locks: []string{"file", "postgres-insert", "galera-insert", "redis-noexpiry", "s3-lockfile"}, End: EndsNever,
			Ends: "its release", Survives: "all",
			Breaks: "its holder dies", Behind: "nothing: it blocks",
		},
	}
}

// FamilyOf returns the family of a lock, for any use and any version of its servers; false for locks that
// should not be chosen and for users' own locks.
func FamilyOf(lock string) (Family, bool) {
	name := lock
	if i := strings.IndexAny(lock, "@+,"); i >= 0 {
		name = lock[:i]
	}
	for _, f := range Families() {
		if slices.Contains(f.Locks, name) {
			return f, true
		}
	}
	return Family{}, false
}

// guardText describes a guard: what the resource checks at each access. Guards are ordered by how little a
// program can do wrong with them.
type guardText struct {
	name, text string
	// alone: the guard does not depend on the lock, so runs with any lock count.
	alone bool
}

func guardTexts() []guardText {
	return []guardText{
		{history.GuardDatabase, "write the data in the lock's transaction or through its connection", false},
		{history.GuardFence, "pass the token with each read and write; the resource refuses a lower one than it has seen", false},
		{history.GuardVersions, "compare-and-set: each write names the version that it read, and fails if there is another", true},
		{history.GuardIdempotency, "send the same idempotency key each time; the other side does the work of a key once", true},
		{history.GuardNone, "no check: two can act at once", false},
	}
}

func guardNamed(name string) guardText {
	all := guardTexts()
	i := slices.IndexFunc(all, func(g guardText) bool { return g.name == name })
	return all[i]
}

// infoOf is the table entry or lock file of a lock, for any version of its servers.
func infoOf(lock string) (clients.Info, bool) {
	name, _, _ := strings.Cut(lock, "@")
	if !lockfile.IsPath(name) { // a page asks tens of thousands of times and needs no servers
		return clients.ByName(name)
	}
	found, err := lockfile.Find(name)
	return found.Info, err == nil
}

// noServers is the product of a lock that needs no servers.
const noServers = "none"

// productOf is the product that runs the servers of a cluster: "redis" for one Redis, for five and for Redis
// Cluster.
func productOf(servers string) string {
	name, _, _ := strings.Cut(servers, "-")
	return strings.TrimSuffix(name, "5") // of five servers for Redlock
}

// Products lists what --have accepts, and the aliases of these names.
func Products() (names []string, aliases map[string]string) {
	for _, f := range Families() {
		for _, lock := range f.Locks {
			if info, _ := infoOf(lock); info.Servers != noServers && !slices.Contains(names, productOf(info.Servers)) {
				names = append(names, productOf(info.Servers))
			}
		}
	}
	return names, map[string]string{"k8s": "kubernetes", "postgresql": "postgres", "zk": "zookeeper", "minio": "s3", "disk": noServers, "nothing": noServers}
}
