package remedies

import "lockcheck/checker"

// table has the advice against each cause.
func table() map[string][]Advice {
	fence := Advice{Fence, Contains, "the resource refuses the holder with the lower token; a check on writes alone is not enough",
		[]string{"repro/holder-pause-fenced-LOCK", "repro/fence-on-writes-only"}}
	compare := Advice{CAS, Contains, "the resource refuses a write computed from an old version; whoever is refused reads again",
		[]string{"claim/cas-often", "claim/cas-rare"}}
	inDatabase := Advice{Database, Contains, "who lost the connection no longer reaches the data; not behind a pooler",
		[]string{"claim/database-inside", "claim/database-pooled"}}
	asking := Advice{Ask, Contains, "the service no longer vouches for the old holder; while it does not answer, the resource refuses the rightful holder, too",
		[]string{"claim/ask-paused-LOCK", "claim/ask-server-stopped"}}
	once := Advice{Idempotency, Contains, "the resource refuses a job that was done before, whoever did it",
		[]string{"claim/jobs-paused/control"}}
	deadlines := Advice{Deadlines, Prevents, "an answer that comes too late is no grant", []string{"repro/redislock-late-answer/control"}}
	return map[string][]Advice{
		checker.CausePaused: {
			fence, inDatabase, compare, once, asking,
			{LongerLease, Rarer, "a pause within the longer lease is harmless; others wait as much longer for the lock of a holder that died",
				[]string{"repro/holder-pause-LOCK/control", "claim/ten-times", "claim/ten-times/control"}},
			{Check, Softens, "a holder that wakes up before the look notices; one that is stopped between look and write, or whose write is late, does not",
				[]string{"claim/database-outside"}},
			{Renewal, Useless, "a stopped process renews nothing", []string{"claim/renewed-and-paused"}},
			{OtherLock, Useless, "every lock with a lease has it", []string{"repro/holder-pause-LOCK", "repro/holder-pause-zookeeper"}},
		},
		checker.CauseCutOff: {
			fence, inDatabase, compare, once, asking,
			{Probed, Rarer, "it gives up a silent connection before the server does, which the watch alone does not; a holder that still hears the server can notice too late",
				[]string{"repro/postgres-cut/control", "repro/postgres-cut"}},
			{LongerLease, Rarer, "cuts within the longer lease are harmless", []string{"repro/consul-silent-loss/control"}},
			{Check, Softens, "the holder runs, and can see that its deadline is over; a write that is late passes all the same",
				[]string{"claim/database-outside"}},
			{Renewal, Useless, "what is cut off cannot renew", []string{"repro/consul-silent-loss"}},
		},
		checker.CauseUnrenewed: {
			fence, inDatabase, compare, once, asking,
			{EndsWaiting, Rarer, "no waiter is granted the lock in an abandoned session; a holder's session can still end", []string{"repro/etcd-given-up-session/control"}},
			{KeepAlive, Rarer, "the client notices the missing answers, but notifies the holder late", []string{"repro/etcd-lease-watch"}},
			{LongerLease, Rarer, "gaps within the longer lease are harmless", []string{"repro/consul-silent-loss/control"}},
		},
		checker.CauseOutlasted: {
			{Renewal, Prevents, "a healthy holder keeps its lease; a stopped one does not", []string{"claim/section-beyond-ttl", "claim/renewed-and-paused"}},
			{LongerLease, Prevents, "if no section is longer than the lease", []string{"claim/ten-times", "claim/section-beyond-ttl/control"}},
			fence, compare, once, asking,
			{Check, Softens, "the holder gives up what it has done; a write that is late passes all the same", []string{"claim/database-outside"}},
		},
		checker.CauseValidity: {
			deadlines,
			{OtherSetting, Prevents, "a client that counts the validity from the sending of the request, not from the answer",
				[]string{"repro/redislock-late-answer"}},
			fence, compare, once, asking,
			{Check, Useless, "by what its client said, the lock is still valid", []string{"repro/redlock-clock-jump"}},
		},
		checker.CauseRenewedByOther: {
			{OtherSetting, Prevents, "a renewal by compare-and-set, which renews the lock only if its holder still has it", []string{"repro/postgres-upsert-renewal/control", "repro/redsync-4.12.0-extend/control"}},
			fence, compare, once, asking,
		},
		checker.CauseInFlight: {
			fence, inDatabase, compare, once, asking,
			{Check, Useless, "the write was sent in time, and came late", []string{"claim/database-outside"}},
		},
		checker.CauseExpiredGrant: {
			deadlines,
			{OtherSetting, Prevents, "a version that looks after the grant whether its claim is still there (etcd from 3.5)", []string{"repro/etcd-11456/control"}},
			{Fence, Contains, "if the token is that of the own claim; the revision in the header of etcd's answer is not",
				[]string{"repro/header-revision-fence/control", "repro/header-revision-fence"}},
			compare, once, asking,
		},
		checker.CauseReleasedByOther: {
			{OwnerChecked, Prevents, "the release of a late holder does nothing then", []string{"repro/redis-unsafe-release/control"}},
			fence, compare, once, asking,
			{LongerLease, Rarer, "fewer holders are late", []string{"repro/holder-pause-LOCK/control"}},
		},
		checker.CauseLateRelease: {
			{OwnSession, Prevents, "each attempt has a key of its own, which no earlier release can name", []string{"repro/etcd-late-unlock/control"}},
			fence, compare, once, asking,
		},
		checker.CauseClock: {
			{OtherLock, Prevents, "one that ends neither by the wall clocks of its servers nor by those of its clients: etcd from 3.5, ZooKeeper, Consul, PostgreSQL's own locks",
				[]string{"claim/clock-forward-etcd", "claim/clock-forward-zookeeper", "claim/clock-forward-consul", "claim/clock-forward-postgres-session"}},
			fence, compare, once,
			{Check, Useless, "the holder is within its validity by its own clock", []string{"repro/redlock-clock-jump"}},
		},
		checker.CauseServerLost: {
			{Watched, Prevents, "its connection ends with the server, and the holder is told of that unless it is cut off", []string{"repro/postgres-restart/control"}},
			{OnDisk, Prevents, "Redis: appendonly yes, appendfsync always; the lock redis-aof here",
				[]string{"repro/redis-restart-loss/control", "repro/redis-restart-loss", "repro/redis-everysec-power-loss/control"}},
			{OtherLock, Prevents, "one that has a grant on the disks of a majority before it answers: etcd, ZooKeeper, Consul. Asynchronous replication does not do that, nor Redlock on servers that come back empty",
				[]string{"repro/redis-failover-loss", "claim/redlock-minority", "claim/redlock-restart"}},
			fence, compare, once,
			{Check, Useless, "the holder is within its validity", []string{"repro/redis-restart-loss"}},
		},
		checker.CauseServerFault: {
			fence, compare, once,
			{KeepAlive, Rarer, "who learns that its lease has ended does not write; it learns of that late", []string{"repro/etcd-lease-watch"}},
			{OtherSetting, Rarer, "a client that asks for its renewals again elsewhere; etcd 3.5.15 where a resumed leader revokes leases",
				[]string{"repro/etcd-lease-retry", "repro/etcd-leader-resume/control"}},
		},
		checker.CauseTwice: {
			{OneServer, Prevents, "the servers of the cluster tell each other nothing of their locks", []string{"repro/galera-getlock/control", "repro/galera-forupdate/control"}},
			{OtherSetting, Prevents, "no pooling by transactions; a version of the library without the bug",
				[]string{"repro/pgbouncer-leak/control", "repro/redsync-4.12.0-extend/control"}},
			{OtherLock, Prevents, "one that grants it once", []string{"repro/pgbouncer-leak/control"}},
			compare, once,
			{Fence, Contains, "if the two grants have tokens that differ", []string{"repro/header-revision-fence/control", "repro/header-revision-fence"}},
			{Renewal, Useless, "the holder is within its validity", []string{"repro/redsync-4.12.0-extend"}},
		},
		checker.CauseUnlocked: {
			{Obeyed, Prevents, "a worker that was not granted the lock does not use the data", []string{"claim/acquire-ignored/control"}},
			{CAS, Softens, "a write computed from an old version is refused, whoever sends it; one computed from the newest is accepted, also without the lock",
				[]string{"claim/cas-often"}},
			{Fence, Softens, "a worker without a grant has no token, so the resource refuses it once a holder has used the data; before that it has nothing to compare",
				fence.Shown},
			{Idempotency, Softens, "a job that was done before is refused; the first time it is accepted, also without the lock", once.Shown},
		},
		checker.CauseUnexplained: {
			compare, fence, once, asking,
		},
	}
}
