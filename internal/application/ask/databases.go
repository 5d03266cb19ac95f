//go:build !embedded

package ask

import "fmt"

// openDatabase makes the source of a question that a client library asks.
func openDatabase(q Question) (source, error) {
	switch q.Kind {
	case Postgres:
		return openPostgres(q)
	case MySQL:
		return openMySQL(q)
	case Redis:
		return openRedis(q)
	}
	return nil, fmt.Errorf("unknown kind of question %q", q.Kind)
}
