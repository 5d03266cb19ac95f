package remedies

import (
	"cmp"
	"slices"
	"strings"

	"lockcheck/clients"
)

// madeOn has the lock of each experiment in the table that exists for one lock only. For the others see
// perLock.
func madeOn() map[string]string {
	return map[string]string{
		"claim/acquire-ignored/control":           "redis",
		"claim/ask-server-stopped":                "memory",
		"claim/cas-often":                         "none",
		"claim/cas-rare":                          "none",
		"claim/clock-forward-consul":              "consul",
		"claim/clock-forward-etcd":                "etcd",
		"claim/clock-forward-postgres-session":    "postgres-session",
		"claim/clock-forward-zookeeper":           "zookeeper",
		"claim/database-inside":                   "postgres-session",
		"claim/database-outside":                  "postgres-session",
		"claim/database-pooled":                   "postgres-pgbouncer",
		"claim/jobs-paused/control":               "redis",
		"claim/redlock-minority":                  "redlock",
		"claim/redlock-restart":                   "redlock",
		"claim/renewed-and-paused":                "redis",
		"claim/section-beyond-ttl":                "redis",
		"claim/section-beyond-ttl/control":        "redis",
		"claim/ten-times":                         "redis",
		"claim/ten-times/control":                 "redis",
		"repro/consul-silent-loss":                "consul",
		"repro/consul-silent-loss/control":        "consul",
		"repro/etcd-11456/control":                "etcd-v3lock",
		"repro/etcd-leader-resume/control":        "etcd-v3lock-retry",
		"repro/etcd-lease-retry":                  "etcd-v3lock-retry",
		"repro/etcd-lease-watch":                  "etcd-v3lock+watch-keepalive",
		"repro/fence-on-writes-only":              "memory",
		"repro/galera-forupdate/control":          "galera-forupdate+one-server",
		"repro/galera-getlock/control":            "galera-getlock+one-server",
		"repro/header-revision-fence":             "etcd-header-revision",
		"repro/header-revision-fence/control":     "etcd-v3lock",
		"repro/pgbouncer-leak/control":            "postgres-session",
		"repro/postgres-cut":                      "postgres-session+watch-connection",
		"repro/postgres-cut/control":              "postgres-session+keep-alives+watch-connection",
		"repro/postgres-restart/control":          "postgres-session+watch-connection",
		"repro/redis-everysec-power-loss/control": "redis-aof",
		"repro/redis-failover-loss":               "redis-failover",
		"repro/redis-restart-loss":                "redis",
		"repro/redis-restart-loss/control":        "redis-aof",
		"repro/redis-unsafe-release/control":      "redis",
		"repro/redislock-late-answer":             "redislock",
		"repro/redislock-late-answer/control":     "redislock+call-deadlines",
		"repro/redlock-clock-jump":                "redlock",
		"repro/postgres-upsert-renewal/control":   "postgres-lease",
		"repro/etcd-given-up-session/control":     "etcd+stop-waiting",
		"repro/etcd-late-unlock/control":          "etcd+session-per-attempt",
		"repro/redsync-4.12.0-extend":             "redsync-4.12.0",
		"repro/redsync-4.12.0-extend/control":     "redsync",
	}
}

// LockOfExperiment is the lock of an experiment in the table of remedies; "" for another name.
func LockOfExperiment(name string) string {
	for _, p := range perLock {
		if rest, is := strings.CutPrefix(name, p.name); is {
			return strings.TrimSuffix(rest, "/control")
		}
	}
	return madeOn()[name]
}

// onDocker says whether a lock needs servers on Docker. An unknown lock may need them.
func onDocker(lock string) bool {
	info, known := clients.ByName(lock)
	return !known || info.Servers != "none" && !strings.HasPrefix(info.Servers, "memory")
}

// OnDocker says whether an experiment needs Docker.
func OnDocker(experiment string) bool { return onDocker(LockOfExperiment(experiment)) }

// nearest orders experiments for a reader who has run a lock. Experiments on the same servers come first. If
// the lock needs no Docker, experiments that need Docker come last.
func nearest(names []string, lock string) {
	own, known := clients.ByName(lock)
	if !known {
		return
	}
	distance := func(name string) int {
		info, _ := clients.ByName(LockOfExperiment(name))
		switch {
		case info.Servers == own.Servers:
			return 0
		case !onDocker(lock) && OnDocker(name):
			return 2
		}
		return 1
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
}
