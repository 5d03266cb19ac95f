package guide

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"lockcheck/reports"
)

// Story is a user's question, and the answer that must come out. If new evidence changes the answer, a test
// names the story.
type Story struct {
	Text string
	Query
	Lock, Guard string // the expected first choice; "" for none
	Why         string
	Shown       string // the command of a run that shows it
}

// Stories lists all stories.
func Stories() []Story {
	return []Story{
		{
			Text:  "A nightly billing job takes up to 10 minutes and must never bill twice. We have PostgreSQL and Redis.",
			Query: Query{Need: NeedOnce, Have: []string{"postgres", "redis"}, Work: 10 * time.Minute},
			Lock:  "postgres-session", Guard: "idempotency-key",
			Why:   "The advisory lock keeps a second job from starting; a unique (job, date) row, inserted in the transaction of the result, keeps it from billing when the lock ended too early or the first job was done.",
			Shown: "lockcheck repro claims run --only claim/jobs-paused",
		}, {
			Text:  "One controller of a cluster acts at a time in Kubernetes; another must take over within 30 seconds.",
			Query: Query{Need: NeedFailover, Have: []string{"kubernetes"}, Failover: 30 * time.Second},
			Lock:  "k8s-lease", Guard: "cas",
			Why:   "client-go does not promise a single leader, so each write must carry the resourceVersion that it was decided on, and a leader that loses must exit.",
			Shown: "lockcheck repro k8s-stopped-leader",
		}, {
			Text:  "One process refills a cache entry. Two of them only waste a query. Redis is there.",
			Query: Query{Need: NeedWaste, Have: []string{"redis"}},
			Lock:  "redis", Guard: "none",
			Why:   "A lease that now and then is held twice costs a query; more servers or a quorum would cost more than that.",
			Shown: "lockcheck repro holder-pause-redis",
		}, {
			Text:  "Our service elects a leader. etcd is there; a new leader must be there within 10 seconds.",
			Query: Query{Need: NeedFailover, Have: []string{"etcd"}, Failover: 10 * time.Second},
			Lock:  "etcd", Guard: "fence",
			Why:   "A paused leader writes after its session ended; the create revision of its key, passed with each write, makes that harmless.",
			Shown: "lockcheck repro holder-pause-fenced-etcd",
		}, {
			Text:  "Each replica migrates the PostgreSQL schema when it is deployed; a migration takes up to 5 minutes.",
			Query: Query{Need: NeedData, Have: []string{"postgres"}, Work: 5 * time.Minute},
			Lock:  "postgres-session", Guard: "database",
			Why:   "The lock is in the database that is changed and ends with the connection that changes it. Through a pooler in transaction mode it protects nothing.",
			Shown: "lockcheck repro claims run --only claim/database-inside",
		}, {
			Text:  "We have MariaDB and nothing else, and must not lose updates.",
			Query: Query{Need: NeedInfra, Have: []string{"mariadb"}},
			Lock:  "mariadb", Guard: "cas",
			Why:   "GET_LOCK keeps others away while its connection lives; a version column refuses what is written after that.",
			Shown: "lockcheck repro claims run --only claim/cas-rare",
		}, {
			Text:  "cron runs on three hosts that share a disk and nothing else; one of them should do the work.",
			Query: Query{Need: NeedInfra, Have: []string{"none"}},
			Why:   "A file that is made exclusively stays when its maker dies, and no clock ends it. Nothing in the file tells a dead host from a slow one.",
			Shown: "lockcheck repro claims run --only claim/file-orphan",
		}, {
			Text:  "We charge cards through a payment provider, once an order. PostgreSQL and Redis are there.",
			Query: Query{Need: NeedOnce, Have: []string{"postgres", "redis"}, External: true},
			Lock:  "postgres-session", Guard: "idempotency-key",
			Why:   "No lock can take a charge back: the holder may be paused between asking the lock and charging. Only the provider can refuse the second one. The lock saves calls.",
			Shown: "lockcheck repro claims run --only claim/jobs-paused",
		}, {
			Text:  "A computation takes six hours, longer than any lease we would set. PostgreSQL, Redis and etcd are there.",
			Query: Query{Need: NeedLong, Have: []string{"postgres", "redis", "etcd"}, Work: 6 * time.Hour},
			Lock:  "postgres-session", Guard: "database",
			Why:   "A connection has no lease to outlive. A restart of the server ends it unnoticed, so write the result through it, and keep what was computed until then. A session that its client renews is the second choice; a plain lease must be renewed by the program.",
			Shown: "lockcheck repro postgres-restart",
		}, {
			Text:  "We run Kafka with ZooKeeper, and one consumer at a time writes a ledger that must not lose entries.",
			Query: Query{Need: NeedData, Have: []string{"zookeeper"}},
			Lock:  "zookeeper", Guard: "fence",
			Why:   "A session can end while its holder is paused. The czxid of the holder's node grows with each grant, and the ledger refuses an older one.",
			Shown: "lockcheck repro holder-pause-fenced-zookeeper",
		}, {
			Text:  "We run Consul, and one worker at a time updates records that must not be lost.",
			Query: Query{Need: NeedData, Have: []string{"consul"}},
			Lock:  "consul", Guard: "cas",
			Why:   "A holder that is cut off is not told. LockIndex starts again when the key is deleted, so compare the version of the data, not the lock's token.",
			Shown: "lockcheck repro consul-silent-loss",
		}, {
			Text:  "An inventory counter is changed hundreds of times a second, for milliseconds each. PostgreSQL and Redis are there.",
			Query: Query{Need: NeedData, Have: []string{"postgres", "redis"}, Work: 10 * time.Millisecond},
			Lock:  "postgres-row", Guard: "database",
			Why:   "The row that is changed is the lock, for as long as its transaction. One UPDATE that computes and checks in the database needs no lock of yours. A version check with retries wastes work on a row that everybody changes.",
			Shown: "lockcheck test --lock postgres-row --nemesis pause",
		}, {
			Text:  "Batch jobs rewrite a manifest in an S3 bucket, one at a time, and must not lose entries. There is no database.",
			Query: Query{Need: NeedData, Have: []string{"s3"}},
			Lock:  "s3-conditional", Guard: "fence",
			Why:   "A paused job may write after another job has taken over. A data store that compares epochs refuses this write. If the manifest is in the bucket, store the epoch in it, and write with the ETag that was read (If-Match). A lock file without a lease stays when its job dies. Not every store that speaks S3 compares and writes in one step.",
			Shown: "lockcheck repro holder-pause-fenced-s3-conditional",
		},
	}
}

// Stories writes each story with the decision that follows from the present evidence.
func (e Evidence) Stories(w io.Writer, o reports.TerminalOptions) error {
	p := page{width: width(o)}
	for i, s := range Stories() {
		answer := "no lock"
		if d := e.Decide(s.Query); len(d.Choices) > 0 {
			answer = d.Choices[0].name()
		}
		p.writeIndented(fmt.Sprintf("%2d  ", i+1), s.Text)
		p.writeIndented("    → ", answer+". "+s.Why)
		p.line("      " + o.CommandLine(s.command()))
		p.line("      " + o.CommandLine(s.Shown))
		p.line("")
	}
	p.writeIndented("", External)
	_, err := io.WriteString(w, p.b.String())
	return err
}

// command asks the question of the story.
func (s Story) command() string {
	args := []string{"lockcheck guide --need " + string(s.Need), "--have " + strings.Join(s.Have, ",")}
	if s.Work > 0 {
		args = append(args, "--work "+short(s.Work))
	}
	if s.Failover > 0 {
		args = append(args, "--failover "+short(s.Failover))
	}
	if s.External {
		args = append(args, "--external")
	}
	return strings.Join(slices.Clip(args), " ")
}
