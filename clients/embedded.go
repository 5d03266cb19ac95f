//go:build embedded

package clients

import "context"

// EmbeddedOnly: the program has no client libraries, and so no locks that need servers.
const EmbeddedOnly = true

func notLinked() (Lock, error) { return nil, ErrEmbeddedOnly }

func openConsul(Config) (Lock, error)             { return notLinked() }
func openConsulSemaphore(Config) (Lock, error)    { return notLinked() }
func openEtcd(Config) (Lock, error)               { return notLinked() }
func openEtcdElection(Config) (Lock, error)       { return notLinked() }
func openEtcdHeaderRevision(Config) (Lock, error) { return notLinked() }
func openEtcdV3Lock(Config) (Lock, error)         { return notLinked() }
func openEtcdV3LockRetry(Config) (Lock, error)    { return notLinked() }
func openGaleraForUpdate(Config) (Lock, error)    { return notLinked() }
func openGaleraInsert(Config) (Lock, error)       { return notLinked() }
func openGetLock(Config) (Lock, error)            { return notLinked() }
func openMariaDB(Config) (Lock, error)            { return notLinked() }
func openMemcachedAdd(Config) (Lock, error)       { return notLinked() }
func openNATS(Config) (Lock, error)               { return notLinked() }
func openNATSDelete(Config) (Lock, error)         { return notLinked() }
func openNATSFraction(Config) (Lock, error)       { return notLinked() }
func openNATSUpdate(Config) (Lock, error)         { return notLinked() }
func openPostgresInsert(Config) (Lock, error)     { return notLinked() }
func openPostgresLease(Config) (Lock, error)      { return notLinked() }
func openPostgresUpsert(Config) (Lock, error)     { return notLinked() }
func openPostgresPooled(Config) (Lock, error)     { return notLinked() }
func openPostgresRow(Config) (Lock, error)        { return notLinked() }
func openPostgresSession(Config) (Lock, error)    { return notLinked() }
func openPostgresXact(Config) (Lock, error)       { return notLinked() }
func openRedis(Config) (Lock, error)              { return notLinked() }
func openRedisCluster(Config) (Lock, error)       { return notLinked() }
func openRedisFailover(Config) (Lock, error)      { return notLinked() }
func openRedisLockLib(Config) (Lock, error)       { return notLinked() }
func openRedisNoExpiry(Config) (Lock, error)      { return notLinked() }
func openRedisReentrant(Config) (Lock, error)     { return notLinked() }
func openRedisUnsafeRelease(Config) (Lock, error) { return notLinked() }
func openRedisWait(Config) (Lock, error)          { return notLinked() }
func openRedlock(Config) (Lock, error)            { return notLinked() }
func openRedsync(Config) (Lock, error)            { return notLinked() }
func openZooKeeper(Config) (Lock, error)          { return notLinked() }
func openZooKeeperHerd(Config) (Lock, error)      { return notLinked() }
func openZooKeeperLib(Config) (Lock, error)       { return notLinked() }

func watchEtcd(context.Context, Config, <-chan struct{}, func(Observation)) error {
	return ErrEmbeddedOnly
}
