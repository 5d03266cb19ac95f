package appfile

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockcheck/history"
	"lockcheck/internal/application/ask"
	"lockcheck/internal/application/resource"
	"lockcheck/internal/spelling"
)

// kind is which of the kinds an invariant is, and its text.
func (i invariant) kind() (kind, text string, err error) {
	for _, k := range []struct{ kind, text string }{
		{history.InvariantOnce, i.Once}, {history.InvariantKept, i.Kept}, {history.InvariantNever, i.Never},
		{history.InvariantAlways, i.Always}, {history.InvariantEventually, i.Eventually},
	} {
		if k.text == "" {
			continue
		}
		if kind != "" {
			return "", "", fieldError(k.kind, "an invariant has one kind, and this one is %s, too; split it in two", kind)
		}
		kind, text = k.kind, k.text
	}
	if kind == "" {
		return "", "", fmt.Errorf("an invariant needs one of the keys %s, with a query, a URL or a command", strings.Join(history.InvariantKinds(), ", "))
	}
	return kind, text, nil
}

func (f file) invariantsInto(a *App) error {
	names := make(map[string]bool)
	for n, i := range f.Invariants {
		q, err := f.question(a, n, i)
		switch {
		case err != nil:
		case names[q.Invariant.Name]:
			err = fieldError("name", "another invariant is called %q; give one of them another name", q.Invariant.Name)
		case slices.Contains([]string{history.InvariantWork, history.InvariantLeader}, q.Invariant.Name):
			err = fieldError("name", "%q is the name of another question; choose another name", q.Invariant.Name)
		}
		if err != nil {
			return &atError{err, []any{"invariants", n}}
		}
		names[q.Invariant.Name] = true
		a.Questions = append(a.Questions, q)
	}
	kept := slices.IndexFunc(a.Questions, func(q ask.Question) bool { return q.Invariant.Kind == history.InvariantKept })
	if kept >= 0 && a.Load == nil {
		return &atError{fieldError("kept", "nothing says what must be kept: add load with a command that prints \"accepted ID\""), []any{"invariants", kept}}
	}
	return nil
}

// draftTable matches the placeholder that Draft writes for the name of a table.
var draftTable = regexp.MustCompile(`\bFROM TABLE\b`)

func (f file) question(a *App, n int, i invariant) (ask.Question, error) {
	kind, text, err := i.kind()
	if err != nil {
		return ask.Question{}, err
	}
	switch {
	case draftTable.MatchString(text):
		return ask.Question{}, fieldError(kind, "it is still the draft of lockcheck init: replace TABLE by the name of your table")
	case i.Within != 0 && kind != history.InvariantEventually && kind != history.InvariantKept:
		return ask.Question{}, fieldError("within", "it goes with %s and %s only; leave it out", history.InvariantEventually, history.InvariantKept)
	case i.Within < 0:
		return ask.Question{}, fieldError("within", "it must be positive, as in within: 30s")
	}
	q := ask.Question{Invariant: history.Invariant{
		Name: cmp.Or(i.Name, kind+"-"+strconv.Itoa(n+1)), Kind: kind, Question: text, On: i.On,
		Within: i.Within,
	}}
	if kind == history.InvariantEventually {
		q.Invariant.Within = cmp.Or(i.Within, defaultWithin)
	}
	return q, f.ask(a, &q)
}

func (f file) workInto(a *App) error {
	if f.Work == nil {
		if len(a.Says[history.Did]) == 0 && a.Load == nil && !a.Resource {
			return fieldError("work", "nothing would show that the application did anything: give a load, lines (app.says.did), a resource (app.resource), or work with a question whose answer changes when work was done")
		}
		return nil
	}
	return f.add(a, history.InvariantWork, *f.Work, "a question whose answer changes when work was done")
}

func (f file) leaderInto(a *App) error {
	if f.App.Leader == nil {
		return nil
	}
	if err := f.add(a, history.InvariantLeader, *f.App.Leader, "a question whose answer is the name or the number of the replica that leads"); err != nil {
		return &atError{err, []any{"app", history.InvariantLeader}}
	}
	return nil
}

// add adds a question that is no invariant. The error for a missing question says what the question is for.
func (f file) add(a *App, kind string, of question, what string) error {
	q := ask.Question{Invariant: history.Invariant{Name: kind, Kind: kind, Question: of.Ask, On: of.On}}
	switch {
	case draftTable.MatchString(of.Ask):
		return fieldError("ask", "it is still the draft of lockcheck init: replace TABLE by the name of your table")
	case of.Ask == "":
		return fieldError("ask", "it is missing: %s", what)
	}
	if err := f.ask(a, &q); err != nil {
		return err
	}
	a.Questions = append(a.Questions, q)
	return nil
}

// ask finds out how a question is asked.
func (f file) ask(a *App, q *ask.Question) error {
	text := q.Invariant.Question
	switch {
	case q.Invariant.On == history.Resource && a.Resource:
		if !resource.ValidKey(text) {
			return fieldError(q.Invariant.Kind, "%q is no key of the resource", text)
		}
		q.Kind, q.Text = ask.Resource, text
	case q.Invariant.On != "":
		address, err := f.connection(a, q.Invariant.On)
		if err != nil {
			return fieldError("on", "%w", err)
		}
		q.URL, q.Text = address, text
		if q.Kind, err = kindOf(address); err != nil {
			return fieldError("on", "%w", err)
		}
	case strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://"):
		if _, err := url.Parse(text); err != nil {
			return fieldError(q.Invariant.Kind, "%w", err)
		}
		q.Kind, q.URL = ask.HTTP, text
	default:
		q.Kind, q.Text = ask.Shell, text
	}
	return nil
}

func kindOf(address string) (string, error) {
	scheme, _, _ := strings.Cut(address, "://")
	switch scheme {
	case "postgres", "postgresql":
		return ask.Postgres, nil
	case "mysql", "mariadb":
		return ask.MySQL, nil
	case "redis":
		return ask.Redis, nil
	}
	return "", fmt.Errorf("%q: it must begin with postgres://, mysql:// or redis://", address)
}

// connection is where the database with a name is: as the file says, or as its service in the Compose file does.
func (f file) connection(a *App, name string) (string, error) {
	if address, said := f.Connections[name]; said {
		return address, nil
	}
	i := slices.IndexFunc(a.Servers, func(s Server) bool { return s.Service == name })
	if i < 0 {
		var known []string
		for _, s := range a.Servers {
			known = append(known, s.Service)
		}
		return "", fmt.Errorf("there is neither a connection nor a service %q%s", name, spelling.Hint(name, known))
	}
	if address := addressOf(a.Servers[i]); address != "" {
		return address, nil
	}
	return "", fmt.Errorf("nothing says how to reach %q: add connections: {%s: \"postgres://user:password@%s/database\"}", name, name, name)
}

// addressOf derives the URL of a database from the variables that its official image takes.
func addressOf(s Server) string {
	get := func(names ...string) string {
		for _, name := range names {
			for _, assignment := range s.Environment {
				if value, is := strings.CutPrefix(assignment, name+"="); is {
					return value
				}
			}
		}
		return ""
	}
	at := func(scheme, user, password, database string, port int) string {
		u := url.URL{Scheme: scheme, Host: s.Service + ":" + strconv.Itoa(cmp.Or(s.Port, port)), Path: "/" + database}
		if user != "" {
			u.User = url.UserPassword(user, password)
		}
		return u.String()
	}
	const postgresPort, mysqlPort, redisPort = 5432, 3306, 6379
	if password := get("POSTGRES_PASSWORD"); password != "" || get("POSTGRES_HOST_AUTH_METHOD") != "" {
		user := cmp.Or(get("POSTGRES_USER"), "postgres")
		return at("postgres", user, password, cmp.Or(get("POSTGRES_DB"), user), postgresPort)
	}
	if database := get("MARIADB_DATABASE", "MYSQL_DATABASE"); database != "" {
		if user := get("MARIADB_USER", "MYSQL_USER"); user != "" {
			return at("mysql", user, get("MARIADB_PASSWORD", "MYSQL_PASSWORD"), database, mysqlPort)
		}
		return at("mysql", "root", get("MARIADB_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD"), database, mysqlPort)
	}
	if s.Port == redisPort {
		return at("redis", "", "", "", redisPort)
	}
	return ""
}
