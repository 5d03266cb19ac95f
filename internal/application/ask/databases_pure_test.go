//go:build !embedded

package ask

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"lockcheck/history"
)

// TestSplitWords: a command line means what it means to redis-cli.
func TestSplitWords(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
		err  error
	}{
		{"GET key", []string{"GET", "key"}, nil},
		{"  GET \t key \n", []string{"GET", "key"}, nil},
		{"ZRANGEBYSCORE jobs (1 5", []string{"ZRANGEBYSCORE", "jobs", "(1", "5"}, nil},
		{"KEYS job:*;[a|b]", []string{"KEYS", "job:*;[a|b]"}, nil},
		{`SET a\b "c d"`, []string{"SET", `a\b`, "c d"}, nil},
		{`EVAL "return {'a', \"b\"}" 0`, []string{"EVAL", `return {'a', "b"}`, "0"}, nil},
		{`ECHO "\x41\n\t\\\q\xzz"`, []string{"ECHO", "A\n\t\\qxzz"}, nil},
		{`ECHO 'it\'s \n'`, []string{"ECHO", `it's \n`}, nil},
		{`ECHO ""`, []string{"ECHO", ""}, nil},
		{`ECHO a"b c"`, []string{"ECHO", "ab c"}, nil},
		{`ECHO "a"b`, nil, errUnbalanced},
		{`ECHO "a`, nil, errUnbalanced},
		{`ECHO 'a\'`, nil, errUnbalanced},
		{`ECHO "\`, nil, errUnbalanced},
		{"", nil, errNoCommand},
		{" \n", nil, errNoCommand},
	} {
		if got, err := splitWords(c.line); !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v, want %q, %v", c.line, got, err, c.want, c.err)
		}
	}
}

// TestCheckDatabases: a connection that cannot be is refused at once, and its password is not repeated.
func TestCheckDatabases(t *testing.T) {
	for _, c := range []struct {
		kind, url, text string
		good            bool
	}{
		{Postgres, "postgres://a:secret@b/c", "SELECT 1", true}, {Postgres, "postgres://a:secret@b:x/c", "SELECT 1", false},
		{Postgres, "postgres://a:secret@b/c", "", false},
		{MySQL, "mysql://a:secret@b/c", "SELECT 1", true}, {MySQL, "mariadb://a:secret@b:1/c?tls=false", "SELECT 1", true},
		{MySQL, "mysql://a:secret@b:x/c", "SELECT 1", false}, {MySQL, "mysql:secret", "SELECT 1", false},
		{MySQL, "mysql://a:secret@b/c?tls=secret", "SELECT 1", false},
		{Redis, "redis://:secret@b:1/2", "GET a", true}, {Redis, "rediss://b", "GET a", true},
		{Redis, "redis://:secret@b:x", "GET a", false}, {Redis, "redis://b", `GET "a`, false}, {Redis, "http://:secret@b", "GET a", false},
		{"oracle", "oracle://a:secret@b", "SELECT 1", false},
	} {
		err := question(history.InvariantNever, c.kind, c.url, c.text).Check()
		if (err == nil) != c.good || err != nil && strings.Contains(err.Error(), "a:secret") {
			t.Errorf("%s %s %q: %v", c.kind, c.url, c.text, err)
		}
	}
}
