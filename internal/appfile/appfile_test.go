package appfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
	"lockcheck/internal/application/ask"
)

// write puts files into a folder and returns the path of the app file among them.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "billing")
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "app.yaml")
}

const compose = `
services:
  biller:
    build: .
    restart: on-failure:3
    environment: {DATABASE: postgres}
    depends_on: [db]
  db:
    image: postgres:17
    environment: {POSTGRES_USER: bill, POSTGRES_PASSWORD: "p/w", POSTGRES_DB: bills}
    expose: ["5432"]
  maria:
    image: mariadb:11
    environment: {MARIADB_ROOT_PASSWORD: root, MARIADB_DATABASE: bills}
    expose: ["3306"]
  redis:
    image: redis:7
    expose: ["6379"]
  cache:
    image: memcached
    expose: ["11211"]
`

func TestCompose(t *testing.T) {
	a, err := Read(write(t, map[string]string{
		"compose.yaml": compose, "Dockerfile": "FROM scratch", "app.yaml": `
app:
  compose: compose.yaml
  service: biller
  replicas: 3
  leader: {ask: GET leader, on: redis}
  clock:
    command: [date, +%s]
    redis: {command: [redis-cli, time]}
  says: {holding: 'got (?P<key>\S+)', releasing: [bye, ciao], did: 'did (?P<id>\S+)'}
faults: {may hit: [biller, redis]}
load: {command: [python3, load.py]}
invariants:
  - once: SELECT job FROM bills GROUP BY job HAVING count(*) > 1
    on: db
    name: billed-once
  - kept: SELECT job FROM bills
    on: maria
  - eventually: GET leader
    on: redis
    within: 10s
  - never: http://biller/two-leaders
  - always: ./check.sh
`}))
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "billing" || a.Restart != "on-failure" || a.Lease != defaultLease || a.Every != defaultEvery {
		t.Errorf("name %q, restart %q, lease %s, every %s", a.Name, a.Restart, a.Lease, a.Every)
	}
	if want := []string{"biller-1", "biller-2", "biller-3"}; !slices.Equal(a.Replicas, want) {
		t.Errorf("replicas %q, want %q", a.Replicas, want)
	}
	var hittable []string
	for _, s := range a.Servers {
		if a.Hittable(s) {
			hittable = append(hittable, s.Name)
		}
		if want := map[string]string{"biller": "date +%s", "redis": "redis-cli time"}[s.Service]; strings.Join(s.ClockCommand, " ") != want {
			t.Errorf("the clock of %s is %q, want %q", s.Name, s.ClockCommand, want)
		}
		if s.Replica != (s.Service == "biller") || s.Replica && !s.Later {
			t.Errorf("%s: replica %t, later %t", s.Name, s.Replica, s.Later)
		}
	}
	slices.Sort(hittable)
	if want := []string{"biller-1", "biller-2", "biller-3", "redis"}; !slices.Equal(hittable, want) {
		t.Errorf("faults may hit %q, want %q", hittable, want)
	}
	want := []ask.Question{
		{Invariant: history.Invariant{Name: "billed-once", Kind: "once", On: "db"}, Kind: ask.Postgres, URL: "postgres://bill:p%2Fw@db:5432/bills"},
		{Invariant: history.Invariant{Name: "kept-2", Kind: "kept", On: "maria"}, Kind: ask.MySQL, URL: "mysql://root:root@maria:3306/bills"},
		{Invariant: history.Invariant{Name: "eventually-3", Kind: "eventually", On: "redis", Within: 10 * time.Second}, Kind: ask.Redis, URL: "redis://redis:6379/"},
		{Invariant: history.Invariant{Name: "never-4", Kind: "never"}, Kind: ask.HTTP, URL: "http://biller/two-leaders"},
		{Invariant: history.Invariant{Name: "always-5", Kind: "always"}, Kind: ask.Shell},
		{Invariant: history.Invariant{Name: "leader", Kind: "leader", On: "redis"}, Kind: ask.Redis, URL: "redis://redis:6379/"},
	}
	if len(a.Questions) != len(want) {
		t.Errorf("%d questions, want %d", len(a.Questions), len(want))
	}
	for i, q := range a.Questions {
		q.Invariant.Question, q.Text = "", ""
		if i >= len(want) || q.Invariant != want[i].Invariant || q.Kind != want[i].Kind || q.URL != want[i].URL {
			t.Errorf("question %d is %+v", i+1, q)
		}
	}
	if len(a.Says[history.Releasing]) != 2 || len(a.Says[history.Accepted]) != 1 {
		t.Errorf("it says %v", a.Says)
	}
}

func TestOnThisMachine(t *testing.T) {
	a, err := Read(write(t, map[string]string{"app.yaml": `
app: {command: [python3, app.py], environment: {A: b}, restart: always, lease: 2s}
invariants: [{never: ./check.sh}]
work: {ask: ./count.sh}
`}))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Servers) != 0 || !slices.Equal(a.Replicas, []string{"billing-1", "billing-2"}) || a.Lease != 2*time.Second || a.Restart != "always" {
		t.Errorf("got %+v", a)
	}
	if work := a.Questions[1]; work.Invariant.Kind != history.InvariantWork || work.Kind != ask.Shell {
		t.Errorf("the work is %+v", work)
	}
}

// TestResource: an application that keeps data in the resource needs no invariants, and may ask for its keys.
func TestResource(t *testing.T) {
	for _, c := range []struct {
		text     string
		hittable bool
	}{
		{"app: {command: [a], resource: true}", false},
		{"app: {command: [a], resource: true}\nfaults: {may hit: [billing-1, resource]}\ninvariants: [{never: twice, on: resource}]", true},
	} {
		a, err := Read(write(t, map[string]string{"app.yaml": c.text}))
		if err != nil || !a.Resource || a.ResourceHittable() != c.hittable {
			t.Errorf("%v: %+v", err, a)
		}
		for _, q := range a.Questions {
			if q.Kind != ask.Resource || q.Text != "twice" {
				t.Errorf("%+v", q)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	const app = "app: {command: [a]}\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing to test", "app: {}\ninvariants: [{never: a}]", "line 1: command: name what is to be tested"},
		{"no invariants", app, "invariants: the file has none"},
		{"an unknown key", "app: {comand: [a]}", `there is no key "comand"`},
		{"two kinds", app + "invariants:\n  - never: a\n    once: b", "line 3: never: an invariant has one kind, and this one is once, too"},
		{"no kind", app + "invariants:\n  - name: a", "line 3: an invariant needs one of the keys once, kept"},
		{"two of one name", app + "work: {ask: a}\ninvariants: [{never: a, name: b}, {once: a, name: b}]", `another invariant is called "b"`},
		{"within of never", app + "invariants: [{never: a, within: 3s}]", "within: it goes with eventually and kept"},
		{"an unknown connection", app + "connections: {postgres: postgres://x}\ninvariants: [{never: a, on: postgre}]", `neither a connection nor a service "postgre"`},
		{"an unknown database", app + "connections: {o: oracle://x}\ninvariants: [{never: a, on: o}]", "it must begin with postgres://, mysql:// or redis://"},
		{"kept without a load", app + "work: {ask: a}\ninvariants: [{kept: a}]", "line 3: kept: nothing says what must be kept"},
		{"nothing shows work", app + "invariants: [{never: a}]", "work: nothing would show that the application did anything"},
		{"a hold without an end", "app: {command: [a], says: {holding: a}}\ninvariants: [{never: a}]", "nothing says when a hold ends"},
		{"an end without a hold", "app: {command: [a], says: {released: a}}\ninvariants: [{never: a}]", "nothing says when a hold begins"},
		{"work without a name", "app: {command: [a], says: {did: a}}\ninvariants: [{never: a}]", "has no group id; put (?P<id>\\S+)"},
		{"an unknown group", "app: {command: [a], says: {did: '(?P<id>a)(?P<job>b)'}}\ninvariants: [{never: a}]", `a group "job"`},
		{"a pattern that does not compile", "app: {command: [a], says: {did: '(?P<id>a'}}\ninvariants: [{never: a}]", "missing closing )"},
		{"a fault for nobody", app + "faults: {may hit: [biler]}\ninvariants: [{never: a}]", `there is no service "biler"`},
		{"a service without a Compose file", "app: {service: a, command: [a]}\ninvariants: [{never: a}]", "add compose: and its path"},
		{"a Compose file without a service", "app: {compose: compose.yaml}\ninvariants: [{never: a}]", "which service of compose.yaml is the application"},
		{"a database without a password", "app: {compose: compose.yaml, service: biller}\ninvariants: [{never: a, on: cache}]", `nothing says how to reach "cache"`},
		{"an invariant that is called as a question", app + "work: {ask: a}\ninvariants: [{never: a, name: leader}]", `line 3: name: "leader" is the name of another question`},
		{"a leader without a question", "app: {command: [a], leader: {on: db}}\nwork: {ask: a}\ninvariants: [{never: a}]", "line 1: ask: it is missing: a question whose answer is the name or the number of the replica"},
		{"a leader that is told by nobody", "app: {command: [a], leader: {ask: a, on: db}}\nwork: {ask: a}\ninvariants: [{never: a}]", `line 1: on: there is neither a connection nor a service "db"`},
		{"a key that the resource cannot have", "app: {command: [a], resource: true}\ninvariants: [{never: SELECT 1, on: resource}]", "line 2: never: \"SELECT 1\" is no key"},
		{"a resource that there is not", "app: {command: [a], says: {did: '(?P<id>a)'}}\ninvariants: [{never: a, on: resource}]", `neither a connection nor a service "resource"`},
		{"two resources", "app: {command: [a], resource: true}\nconnections: {resource: redis://x}", "line 1: resource: lockcheck's resource would have the name"},
		{"the clock of this machine", "app: {command: [a], clock: {command: [date]}}\ninvariants: [{never: a}]", "clock: an application on this machine has the clock of the machine"},
		{"the clock of nobody", "app: {compose: compose.yaml, service: biller, clock: {redi: {command: [date]}}}\ninvariants: [{never: a}]", `clock: there is no service "redi"`},
		{"a clock without a command", "app: {compose: compose.yaml, service: biller, clock: {redis: {comand: [date]}}}\ninvariants: [{never: a}]", "line 1: clock: redis: name the command"},
		{"too many replicas", "app: {command: [a], replicas: 10}\ninvariants: [{never: a}]", "use 1 to 9 replicas"},
	} {
		_, err := Read(write(t, map[string]string{"app.yaml": c.text, "compose.yaml": compose, "Dockerfile": "FROM scratch"}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestDraft: the first file for a Compose file can be read once its table has a name.
func TestDraft(t *testing.T) {
	path := write(t, map[string]string{"compose.yaml": compose, "Dockerfile": "FROM scratch", "app.yaml": ""})
	var text strings.Builder
	if err := Draft(&text, filepath.Join(filepath.Dir(path), "compose.yaml"), ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{text.String(), "once: it is still the draft"}, {strings.Replace(text.String(), "TABLE", "bills", 1), "ask: it is still the draft"},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text.String(), "TABLE", "bills")), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := Read(path)
	if err != nil {
		t.Fatalf("%v in\n%s", err, &text)
	}
	if len(a.Replicas) != 3 || a.Replicas[0] != "biller-1" || a.Questions[0].Kind != ask.Postgres || len(a.Questions) != 2 {
		t.Errorf("got %+v of\n%s", a, &text)
	}
	if err := Draft(&text, filepath.Join(filepath.Dir(path), "compose.yaml"), "biler"); err == nil {
		t.Error("a service that there is not is drafted")
	}
}

// TestWith: variables are added for replicas alone, in place of those of the same name, and the application stays as it is.
func TestWith(t *testing.T) {
	right := "right"
	environment := map[string]*string{"FORM": &right}
	here := App{Environment: []string{"FORM=", "FORMER=1"}}
	if got := here.With(environment).Environment; !slices.Equal(got, []string{"FORMER=1", "FORM=right"}) {
		t.Errorf("on this machine: %q", got)
	}
	docker := App{Servers: []Server{{Replica: true}, {}}}
	docker.Servers[0].Environment = []string{"A=1", "FORM=wrong"}
	with := docker.With(environment)
	if got := with.Servers[0].Environment; !slices.Equal(got, []string{"A=1", "FORM=right"}) {
		t.Errorf("on Docker: %q", got)
	}
	if len(with.Servers[1].Environment) != 0 || here.Environment[0] != "FORM=" || docker.Servers[0].Environment[1] != "FORM=wrong" {
		t.Errorf("others changed: %+v", docker.Servers)
	}
}
