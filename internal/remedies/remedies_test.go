package remedies

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/workloads"
)

// TestTable: each cause has advice, and nothing else has. The advice names each existing remedy at most once,
// with a reason and a run that shows it. Remedies that help come before those that do not.
func TestTable(t *testing.T) {
	order := map[Effect]int{Prevents: 1, Contains: 2, Rarer: 3, Softens: 4, Useless: 5}
	for _, c := range checker.Causes() {
		if len(For(c.Name)) == 0 {
			t.Errorf("%s: no advice", c.Name)
		}
		seen, last := map[string]bool{}, 0
		for _, a := range For(c.Name) {
			if ByName(a.Remedy).Name == "" || seen[a.Remedy] || a.Why == "" || len(a.Shown) == 0 || order[a.Effect] < last || order[a.Effect] == 0 {
				t.Errorf("%s: wrong: %+v", c.Name, a)
			}
			seen[a.Remedy], last = true, order[a.Effect]
			if c.Inherent && a.Remedy == OtherLock && a.Effect != Useless {
				t.Errorf("%s: it is inherent, and another lock helps", c.Name)
			}
		}
	}
	if n := len(checker.Causes()); len(table()) != n {
		t.Errorf("advice against %d causes, and there are %d", len(table()), n)
	}
}

// TestLacks: what a lock does not support is reported, and nothing else is.
func TestLacks(t *testing.T) {
	for _, c := range []struct{ lock, remedy, want string }{
		{"memory", Fence, ""},
		{"redis", Fence, "has no fencing token"},
		{"redis", CAS, ""},
		{"redis", Ask, ""},
		{"redis", Database, "has no database for the data"},
		{"postgres-xact", Database, ""},
		{"postgres-pgbouncer", Database, "connects to a pooler, and that connection does not show who has the lock"},
		{"postgres-xact", LongerLease, "has no lease"},
		{"postgres-xact", Check, "has no lease"},
		{"redis", Renewal, ""},
		{"etcd", Renewal, "renews its lease by itself, and tells no deadline"},
		{"etcd", LongerLease, ""},
		{"zookeeper", LongerLease, ""},
		{"postgres-session", Watched, ""},
		{"postgres-pgbouncer", Watched, "connects to a pooler, and that connection does not show who has the lock"},
		{"zookeeper-lib", Watched, "ends with its session, which outlasts a connection"},
	} {
		info, known := clients.ByName(c.lock)
		if got := ByName(c.remedy).Lacks(info, info.TTL); !known || got != c.want {
			t.Errorf("%s on %s: %q, want %q", c.remedy, c.lock, got, c.want)
		}
	}
}

// TestLacksLonger: a lease that the service does not grant is not offered.
func TestLacksLonger(t *testing.T) {
	zookeeper, _ := clients.ByName("zookeeper")
	for lease, want := range map[time.Duration]string{
		clients.ZooKeeperMaxTTL / longer:                  "",
		clients.ZooKeeperMaxTTL/longer + time.Millisecond: "allows no lease above 1m0s",
	} {
		if got := ByName(LongerLease).Lacks(zookeeper, lease); got != want {
			t.Errorf("a lease of %s: %q, want %q", lease, got, want)
		}
	}
}

// TestGuardOf: a fencing token is best, then data that only the lock's own connection can reach.
func TestGuardOf(t *testing.T) {
	for lock, want := range map[string]workloads.Guard{
		"memory": workloads.Fence, "postgres-lease": workloads.Fence,
		"postgres-session": workloads.Database, "postgres-xact": workloads.Database, "postgres-row": workloads.Database,
		"postgres-pgbouncer": workloads.CompareAndSet, "postgres-insert": workloads.CompareAndSet,
		"redis": workloads.CompareAndSet, "none": workloads.CompareAndSet,
	} {
		info, known := clients.ByName(lock)
		if got := GuardOf(info); !known || got != want {
			t.Errorf("%s: %s, want %s", lock, got, want)
		}
	}
}

// TestBars: what a remedy cannot do for a workload is reported, and nothing else is.
func TestBars(t *testing.T) {
	for workload, want := range map[string][]string{ // the remedies that go with each workload
		history.WorkloadSet:       {Fence, Database, CAS, Ask, Renewal, LongerLease, Check},
		history.WorkloadJobs:      {Fence, CAS, Idempotency, Ask, Renewal, LongerLease, Check},
		history.WorkloadReadWrite: {CAS, Renewal, LongerLease, Check},
		history.WorkloadMutex:     {Renewal, LongerLease},
		history.WorkloadSemaphore: {Renewal, LongerLease},
	} {
		w, _ := workloads.ByName(workload)
		var fit []string
		for _, r := range All() {
			if r.Change != (Change{}) && r.Bars(w) == "" {
				fit = append(fit, r.Name)
			}
		}
		want = append(want, Watched, Probed, Deadlines, KeepAlive, OwnSession, EndsWaiting, OneServer) // changes of the client go with every workload
		if !slices.Equal(fit, want) {
			t.Errorf("%s: %q, want %q", workload, fit, want)
		}
	}
}

// TestOffers: the header says what a user's lock supports. Older histories do not, and then nothing is
// reported as lacking.
func TestOffers(t *testing.T) {
	find := func(h history.Header, remedy string) Offer {
		for _, o := range Offers(checker.CausePaused, h) {
			if o.Remedy == remedy {
				return o
			}
		}
		t.Fatalf("no %s for %+v", remedy, h)
		return Offer{}
	}
	own := history.Header{Lock: "of my own", Lease: time.Second, Supports: []string{}}
	if o := find(own, Fence); o.Lacks != "has no fencing token" {
		t.Errorf("without tokens: %+v", o)
	}
	own.Supports = []string{history.SupportsToken}
	if o := find(own, Fence); o.Lacks != "" || o.InForce {
		t.Errorf("with tokens: %+v", o)
	}
	own.Supports = nil
	if o := find(own, Fence); o.Lacks != "" {
		t.Errorf("of old: %+v", o)
	}
	if o := find(own, Check); o.InForce {
		t.Errorf("without a look at the deadline: %+v", o)
	}
	own.Checked = true
	if o := find(own, Check); !o.InForce {
		t.Errorf("with a look at the deadline: %+v", o)
	}
	own.Guard = string(workloads.Fence)
	if o := find(own, Fence); !o.InForce {
		t.Errorf("with a fence: %+v", o)
	}
}

// TestOptions: a client option is offered by its name, and only for a lock that has it. A setting of servers
// is offered only for a lock on such servers.
func TestOptions(t *testing.T) {
	for _, c := range []struct{ cause, lock, want string }{ // the remedy prevents the cause, or makes it rarer
		{checker.CauseServerLost, "postgres-session", "--lock postgres-session+watch-connection, another lock"},
		{checker.CauseServerLost, "postgres-xact+keep-alives", "--lock postgres-xact+keep-alives+watch-connection, another lock"},
		{checker.CauseServerLost, "postgres-session+watch-connection", "another lock"},
		{checker.CauseServerLost, "postgres-pgbouncer", "another lock"},
		{checker.CauseServerLost, "mariadb", "another lock"},
		{checker.CauseServerLost, "zookeeper-lib", "another lock"},
		{checker.CauseServerLost, "redis", "grants on disk, another lock"},
		{checker.CauseServerLost, "redis-aof", "another lock"},
		{checker.CauseServerLost, "redis-failover", "another lock"},
		{checker.CauseServerLost, "of my own", "grants on disk, another lock"},
		{checker.CauseCutOff, "postgres-session", "--lock postgres-session+keep-alives+watch-connection"},
		{checker.CauseCutOff, "postgres-session+watch-connection", "--lock postgres-session+watch-connection+keep-alives"},
		{checker.CauseCutOff, "postgres-session+keep-alives", "--lock postgres-session+keep-alives+watch-connection"},
		{checker.CauseCutOff, "postgres-session+watch-connection+keep-alives", ""},
		{checker.CauseCutOff, "postgres-pgbouncer", ""},
		{checker.CauseCutOff, "mariadb", ""},
		{checker.CauseCutOff, "zookeeper-lib", "--ttl 5s"},
		{checker.CauseValidity, "redislock", "--lock redislock+call-deadlines, another setting"},
		{checker.CauseValidity, "nats-kv", "another setting"},
		{checker.CauseServerFault, "etcd-v3lock", "--lock etcd-v3lock+watch-keepalive, another setting"},
		{checker.CauseServerFault, "etcd", "another setting"},
		{checker.CauseTwice, "galera-getlock", "--lock galera-getlock+one-server, another setting, another lock"},
		{checker.CauseTwice, "redis", "another setting, another lock"},
	} {
		var names []string
		for _, o := range Offers(c.cause, history.Header{Lock: c.lock, Workload: history.WorkloadSet}) {
			if o.Helps() && o.Effect != Contains {
				names = append(names, cmp.Or(ByName(o.Remedy).Change.Flag(c.lock, time.Second), o.Remedy))
			}
		}
		if got := strings.Join(names, ", "); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.cause, c.lock, got, c.want)
		}
	}
}

// TestOffersOfSharedLocks: a remedy that does not go with the workload is not offered. A remedy that does not
// protect readers does not make the cause harmless for them.
func TestOffersOfSharedLocks(t *testing.T) {
	supports := []string{history.SupportsToken, history.SupportsAsk}
	for workload, want := range map[string]map[string]Effect{ // "" for a remedy that is lacking
		history.WorkloadSet:       {Fence: Contains, CAS: Contains},
		history.WorkloadReadWrite: {Fence: "", CAS: Rarer},
		history.WorkloadSemaphore: {Fence: "", CAS: ""},
	} {
		h := history.Header{Lock: "of my own", Lease: time.Second, Supports: supports, Workload: workload}
		for _, o := range Offers(checker.CausePaused, h) {
			effect, listed := want[o.Remedy]
			if listed && (o.Lacks != "") != (effect == "") || effect != "" && o.Effect != effect {
				t.Errorf("%s, %s: %s, lacks %q", workload, o.Remedy, o.Effect, o.Lacks)
			}
		}
	}
}

// TestForLock: an experiment on the lock itself is used if there is one, and the nearest experiment comes
// first.
func TestForLock(t *testing.T) {
	for _, c := range []struct{ name, lock, want string }{
		{"repro/holder-pause-fenced-LOCK", "etcd", "repro/holder-pause-fenced-etcd"},
		{"repro/holder-pause-fenced-LOCK", "redis", "repro/holder-pause-fenced-memory"},
		{"repro/holder-pause-LOCK/control", "redis", "repro/holder-pause-redis/control"},
		{"repro/holder-pause-LOCK", "of my own", "repro/holder-pause-memory"},
		{"repro/holder-pause-LOCK", "etcd+watchdog", "repro/holder-pause-memory"},
		{"claim/ask-paused-LOCK", "memory", "claim/ask-paused-redis"},
		{"repro/etcd-11456", "etcd", "repro/etcd-11456"},
	} {
		if got := forLock(c.name, c.lock); got != c.want {
			t.Errorf("%s for %s: %s, want %s", c.name, c.lock, got, c.want)
		}
	}
	for _, c := range [][2]string{
		{"repro/etcd-11456/control", "lockcheck repro etcd-11456 --control"},
		{"claim/ten-times/control", "lockcheck repro claims run --only claim/ten-times/control"},
	} {
		if got := Command(c[0]); got != c[1] {
			t.Errorf("%s: %s", c[0], got)
		}
	}
	for _, c := range []struct{ lock, shown, want string }{
		{"memory", "claim/ask-paused-LOCK claim/ask-server-stopped", "claim/ask-server-stopped claim/ask-paused-redis"},
		{"redis", "claim/ask-paused-LOCK claim/ask-server-stopped", "claim/ask-paused-redis claim/ask-server-stopped"},
		{"redislock", "repro/etcd-11456/control repro/redislock-late-answer/control", "repro/redislock-late-answer/control repro/etcd-11456/control"},
		{"etcd", "claim/ten-times repro/fence-on-writes-only", "claim/ten-times repro/fence-on-writes-only"},
		{"memory-redlock", "claim/ten-times claim/cas-often", "claim/cas-often claim/ten-times"},
		{"of my own", "claim/ten-times claim/cas-often", "claim/ten-times claim/cas-often"},
		{"zookeeper", "repro/holder-pause-LOCK repro/holder-pause-zookeeper", "repro/holder-pause-zookeeper"},
	} {
		if got := strings.Join((Advice{Shown: strings.Fields(c.shown)}).Experiments(c.lock), " "); got != c.want {
			t.Errorf("for %s: %s, want %s", c.lock, got, c.want)
		}
	}
	for _, c := range (Advice{Shown: []string{"repro/holder-pause-LOCK"}}).Experiments("zookeeper") {
		if strings.Contains(c, "LOCK") {
			t.Error(c)
		}
	}
}
