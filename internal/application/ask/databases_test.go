//go:build !embedded

package ask

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/history"
)

// server starts one server on Docker, which is removed with the test.
func server(t *testing.T, name string) *clusters.Node {
	t.Helper()
	clustertest.Engine(t, name)
	spec, known := clusters.ByName(name)
	if !known {
		t.Fatalf("no servers %q", name)
	}
	run := fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())
	cluster, err := clusters.Start(t.Context(), clusters.Request{
		Run: run, Spec: spec, Binary: clustertest.Binary(t), Progress: t.Logf,
		Labels: map[string]string{engine.RunLabel: run, engine.OwnerLabel: "test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return cluster.Servers()[0]
}

// outages stops, continues, kills and restarts a server. What a question answers does not change, except that it
// cannot be asked meanwhile.
func outages(a *asker, node *clusters.Node, name string, answer history.Type) {
	a.Helper()
	signal := func(s agent.Signal) {
		a.Helper()
		if _, err := node.Host.Signal(a.Context(), s); err != nil {
			a.Fatal(err)
		}
	}
	signal(agent.Stop)
	if e := a.answers(name, history.Info); !strings.Contains(e.Error, "no answer within") {
		a.Errorf("%s: a server that is stopped: %q", name, e.Error)
	}
	signal(agent.Continue)
	a.answers(name, answer)
	if _, err := node.Kill(a.Context()); err != nil {
		a.Fatal(err)
	}
	a.answers(name, history.Info)
	if _, err := node.Restart(a.Context()); err != nil {
		a.Fatal(err)
	}
	a.answers(name, answer)
}

// final says so, and returns when the asker has ended.
func (a *asker) final() {
	a.Helper()
	if _, err := io.WriteString(a.input, Final+"\n"); err != nil {
		a.Fatal(err)
	}
	a.wait()
}

// database is an SQL server and what is said differently to it.
type database struct {
	kind, url, driver, source string
	hang, flood               string
	refusal                   string // of statements that change something
	hanging                   string // counts the sessions in which hang runs
}

// postgresOf is a PostgreSQL of ours, and mariaOf a MariaDB.
func postgresOf(node *clusters.Node) database {
	url := "postgres://postgres@" + node.Address + "/postgres"
	return database{
		kind: Postgres, url: url, driver: "pgx", source: url,
		hang: "SELECT pg_sleep(3600)", flood: "SELECT generate_series(1, 1000000000)",
		refusal: "read-only transaction",
		hanging: "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'",
	}
}

func mariaOf(node *clusters.Node) database {
	return database{
		kind: MySQL, url: "mysql://lockcheck@" + node.Address + "/lockcheck", driver: "mysql", source: "lockcheck@tcp(" + node.Address + ")/lockcheck",
		hang: "SELECT SLEEP(3600)", flood: "SELECT seq FROM seq_1_to_1000000000",
		refusal: "READ ONLY transaction",
		hanging: "SELECT count(*) FROM information_schema.processlist WHERE state = 'User sleep'",
	}
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	node := server(t, "postgres")
	onSQL(t, node, postgresOf(node))
	for _, c := range []struct {
		text string
		want outcome
	}{
		{"SELECT repeat('x', 30000000)", outcome{kind: history.Info, error: "more than"}},
		{"SELECT repeat('x', 10000000)", outcome{kind: history.Fail, rows: []string{strings.Repeat("x", shownSize) + "…"}}},
		{"SELECT FROM bills LIMIT 1", outcome{kind: history.Fail, rows: []string{""}}},
		{"SET search_path = 'x'", outcome{kind: history.Info, error: "no question"}},
		{"-- SELECT job FROM bills", outcome{kind: history.Info, error: "no question"}},
		// Rows before an error are no answer.
		{"SELECT 1 / (3 - n) FROM generate_series(1, 3) AS n", outcome{kind: history.Info, error: "division by zero"}},
	} {
		asked(t, patient(question(history.InvariantNever, Postgres, postgresOf(node).url, c.text)), c.want)
	}
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	node := server(t, "mariadb")
	onSQL(t, node, mariaOf(node))
	asked(t, patient(question(history.InvariantNever, MySQL, mariaOf(node).url, "DO 1")), outcome{kind: history.Info, error: "no question"})
}

// patient is a question that is answered however slow the machine is.
func patient(q Question) Question {
	q.Timeout = clustertest.Slow(time.Minute)
	return q
}

// onSQL asks an SQL server everything that both kinds answer alike.
func onSQL(t *testing.T, node *clusters.Node, d database) {
	db, err := sql.Open(d.driver, d.source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	do := func(statement string) {
		t.Helper()
		// A connection of before an outage fails once.
		clustertest.Eventually(t, time.Minute, func() error {
			_, err := db.ExecContext(t.Context(), statement)
			return err
		})
	}
	do("CREATE TABLE bills (job varchar(20), paid int)")
	do("INSERT INTO bills VALUES ('job-1', 5), ('job-2', NULL)")
	table := []string{"job-1\t5", "job-2\tNULL"}
	t.Run("answers", func(t *testing.T) { sqlAnswers(t, d, table) })
	t.Run("hangs", func(t *testing.T) { sqlHangs(t, d, db) })
	t.Run("history", func(t *testing.T) { sqlHistory(t, node, d, do) })
}

func sqlAnswers(t *testing.T, d database, table []string) {
	once, always, kept := history.InvariantOnce, history.InvariantAlways, history.InvariantKept
	for _, c := range []struct {
		kind, text string
		want       outcome
	}{
		{kept, "SELECT * FROM bills ORDER BY job", outcome{kind: history.OK, rows: table}},
		{once, "SELECT * FROM bills ORDER BY job", outcome{kind: history.Fail, rows: table}},
		{once, "SELECT * FROM bills WHERE job = 'job-3'", outcome{kind: history.OK}},
		{always, "SELECT * FROM bills WHERE job = 'job-3'", outcome{kind: history.Fail}},
		{once, "SELECT ''", outcome{kind: history.Fail, rows: []string{""}}},
		{once, "SELECT * FROM no_such_table", outcome{kind: history.Info, error: "no_such_table"}},
		{once, "SELEKT", outcome{kind: history.Info, error: "syntax"}},
		{once, "INSERT INTO bills VALUES ('job-3', 1)", outcome{kind: history.Info, error: d.refusal}},
		{once, "DELETE FROM bills", outcome{kind: history.Info, error: d.refusal}},
		{once, "DROP TABLE bills", outcome{kind: history.Info, error: d.refusal}},
		{once, "ROLLBACK; DELETE FROM bills", outcome{kind: history.Info, error: "syntax"}},
		{once, d.flood, outcome{kind: history.Fail, rows: numbers(20), count: maxRows}},
		{kept, d.flood, outcome{kind: history.Info, error: "more than"}},
		// Whatever came before has changed nothing.
		{kept, "SELECT * FROM bills ORDER BY job", outcome{kind: history.OK, rows: table}},
	} {
		if d.kind == Postgres && strings.HasPrefix(c.text, "ROLLBACK;") {
			c.want.error = "multiple commands"
		}
		asked(t, patient(question(c.kind, d.kind, d.url, c.text)), c.want)
	}
}

// sqlHangs: a query that hangs is given up, by the server, too, and the next one begins on another connection.
func sqlHangs(t *testing.T, d database, db *sql.DB) {
	q := question(history.InvariantNever, d.kind, d.url, d.hang)
	q.Timeout = 2 * time.Second
	a := started(t, q)
	clustertest.Eventually(t, time.Minute, func() error { return sessions(t, db, d, func(n int) bool { return n > 0 }) })
	for range 2 {
		if e := a.answers(history.InvariantNever, history.Info); e.Error != "no answer within 2s" {
			t.Errorf("%q", e.Error)
		}
	}
	a.stop()
	clustertest.Eventually(t, time.Minute, func() error { return sessions(t, db, d, func(n int) bool { return n == 0 }) })
}

// sessions returns an error unless the number of sessions in which a query hangs fits.
func sessions(t *testing.T, db *sql.DB, d database, fits func(int) bool) error {
	n := 0
	err := db.QueryRowContext(t.Context(), d.hanging).Scan(&n)
	if err == nil && !fits(n) {
		err = fmt.Errorf("%d sessions hang", n)
	}
	return err
}

// sqlHistory follows several invariants through a violation and outages.
func sqlHistory(t *testing.T, node *clusters.Node, d database, do func(string)) {
	once := question(history.InvariantOnce, d.kind, d.url, "SELECT job FROM bills GROUP BY job HAVING count(*) > 1")
	eventually := question(history.InvariantEventually, d.kind, d.url, "SELECT 1 FROM bills WHERE paid = 7")
	kept := question(history.InvariantKept, d.kind, d.url, "SELECT job FROM bills ORDER BY job, paid")
	for _, q := range []*Question{&once, &eventually, &kept} {
		q.Timeout = 2 * time.Second
	}
	a := started(t, once, eventually, kept)
	a.answers(history.InvariantOnce, history.OK)
	a.answers(history.InvariantEventually, history.Fail)
	do("INSERT INTO bills VALUES ('job-1', 7)")
	if e := a.answers(history.InvariantOnce, history.Fail); len(e.Answer.Rows) != 1 || e.Answer.Rows[0] != "job-1" || len(e.Answer.Columns) != 1 {
		t.Errorf("the counterexample is %+v", e.Answer)
	}
	a.answers(history.InvariantEventually, history.OK)
	outages(a, node, history.InvariantOnce, history.Fail)
	do("DELETE FROM bills WHERE paid = 7")
	a.answers(history.InvariantOnce, history.OK)
	a.final()
	for name, want := range map[string]history.Type{history.InvariantOnce: history.OK, history.InvariantEventually: history.Fail, history.InvariantKept: history.OK} {
		if e := a.last(name); e.Type != want {
			t.Errorf("%s: the last event is %+v, want %s", name, e, want)
		}
	}
}

func TestRedis(t *testing.T) {
	t.Parallel()
	node := server(t, "redis")
	url := "redis://" + node.Address
	client := redis.NewClient(&redis.Options{Addr: node.Address})
	t.Cleanup(func() { _ = client.Close() })
	never, always, kept := history.InvariantNever, history.InvariantAlways, history.InvariantKept
	for _, command := range [][]any{{"RPUSH", "jobs", "job-1", "job-2"}, {"SET", "leader", "w1"}, {"SET", "failed", "0"}, {"SET", "empty", ""}, {"HSET", "paid", "job-1", "5"}} {
		if err := client.Do(t.Context(), command...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		kind, text string
		want       outcome
	}{
		{kept, "LRANGE jobs 0 -1", outcome{kind: history.OK, rows: []string{"job-1", "job-2"}}},
		{never, "LRANGE jobs 0 -1", outcome{kind: history.Fail, rows: []string{"job-1", "job-2"}}},
		{never, "LRANGE others 0 -1", outcome{kind: history.OK}}, {always, "LRANGE others 0 -1", outcome{kind: history.Fail}},
		{never, "GET leader", outcome{kind: history.Fail, rows: []string{"w1"}}}, {always, "GET leader", outcome{kind: history.OK, rows: []string{"w1"}}},
		{never, "GET nobody", outcome{kind: history.OK}}, {never, "GET empty", outcome{kind: history.OK}}, {never, "GET failed", outcome{kind: history.OK}},
		{never, "EXISTS nobody", outcome{kind: history.OK}}, {never, "EXISTS leader", outcome{kind: history.Fail, rows: []string{"1"}}},
		{never, "HGETALL paid", outcome{kind: history.Fail, rows: []string{"job-1", "5"}}},
		{never, "MGET leader nobody", outcome{kind: history.Fail, rows: []string{"w1", "NULL"}}},
		{never, `EVAL "return {{'job-1', 5}, {'job-2', false}}" 0`, outcome{kind: history.Fail, rows: []string{"job-1\t5", "job-2\tNULL"}}},
		{never, `EVAL "return redis.error_reply('no such thing')" 0`, outcome{kind: history.Info, error: "no such thing"}},
		{never, `EVAL "return {1, redis.error_reply('no such thing')}" 0`, outcome{kind: history.Info, error: "no such thing"}},
		{never, "LRANGE leader 0 -1", outcome{kind: history.Info, error: "WRONGTYPE"}},
		{never, "NOSUCHCOMMAND", outcome{kind: history.Info, error: "unknown command"}},
		{never, `EVAL "local t = {} for i = 1, 100001 do t[i] = i end return t" 0`, outcome{kind: history.Fail, rows: numbers(20), count: maxRows}},
		{kept, `EVAL "local t = {} for i = 1, 100001 do t[i] = i end return t" 0`, outcome{kind: history.Info, error: "more than"}},
		{kept, `EVAL "local t = {} for i = 1, 100000 do t[i] = 1 end return #t" 0`, outcome{kind: history.OK, rows: []string{"100000"}}},
		{never, `EVAL "return string.rep('x', 30000000)" 0`, outcome{kind: history.Info, error: "more than"}},
	} {
		asked(t, patient(question(c.kind, Redis, url, c.text)), c.want)
	}
	hangs := question(never, Redis, url, "BLPOP nothing 0")
	hangs.Timeout = time.Second
	asked(t, hangs, outcome{kind: history.Info, error: "no answer within 1s"})

	asks := question(never, Redis, url, "SMEMBERS done-twice")
	asks.Timeout = 2 * time.Second
	a := started(t, asks)
	a.answers(never, history.OK)
	if err := client.SAdd(t.Context(), "done-twice", "job-1").Err(); err != nil {
		t.Fatal(err)
	}
	if e := a.answers(never, history.Fail); len(e.Answer.Rows) != 1 || e.Answer.Rows[0] != "job-1" {
		t.Errorf("the counterexample is %+v", e.Answer)
	}
	// It keeps nothing on disk, so a killed one has lost its data.
	if _, err := node.Host.Signal(t.Context(), agent.Stop); err != nil {
		t.Fatal(err)
	}
	a.answers(never, history.Info)
	if _, err := node.Host.Signal(t.Context(), agent.Continue); err != nil {
		t.Fatal(err)
	}
	a.answers(never, history.Fail)
	if _, err := node.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.answers(never, history.Info)
	if _, err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.answers(never, history.OK)
	a.final()
	if e := a.last(never); e.Type != history.OK {
		t.Errorf("the last event is %+v", e)
	}
	onReplica(t, node, url)
}

// onReplica: a Redis that refuses a command because of what it is says nothing about the invariant.
func onReplica(t *testing.T, node *clusters.Node, url string) {
	client := redis.NewClient(&redis.Options{Addr: node.Address})
	defer client.Close()
	q := patient(question(history.InvariantNever, Redis, url, "SET a b"))
	asked(t, q, outcome{kind: history.Fail, rows: []string{"OK"}})
	if err := errors.Join(client.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(), client.ConfigSet(t.Context(), "replica-serve-stale-data", "yes").Err()); err != nil {
		t.Fatal(err)
	}
	asked(t, q, outcome{kind: history.Info, error: "READONLY"})
	if err := client.ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err(); err != nil {
		t.Fatal(err)
	}
	asked(t, patient(question(history.InvariantNever, Redis, url, "GET a")), outcome{kind: history.Info, error: "MASTERDOWN"})
}
