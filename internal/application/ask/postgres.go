//go:build !embedded

package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// postgres asks PostgreSQL. Each question has a transaction of its own that can only read; it says so itself, for a
// setting of the session would reach the application through a pool such as PgBouncer.
type postgres struct {
	*conns
	config *pgconn.Config
	query  string
	begin  string
	conn   *pgconn.PgConn // nil if there is none
}

func openPostgres(q Question) (*postgres, error) {
	config, err := pgconn.ParseConfig(q.URL)
	if err != nil {
		return nil, err
	}
	network := newConns()
	config.DialFunc = network.dial
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		frontend := pgproto3.NewFrontend(r, w)
		frontend.SetMaxBodyLen(carried) // it makes room for a message as soon as it knows the length
		return frontend
	}
	limit := cmp.Or(q.Timeout, DefaultTimeout)
	return &postgres{
		conns: network, config: config, query: q.Text,
		// The server gives up a query that nobody waits for, even if it does not hear of that.
		begin: fmt.Sprintf("BEGIN READ ONLY; SET LOCAL statement_timeout = %d", max(1, limit.Milliseconds())),
	}, nil
}

func (p *postgres) ready(ctx context.Context) (err error) {
	p.refill()
	if p.conn == nil {
		if p.conn, err = pgconn.ConnectConfig(ctx, p.config); err != nil {
			return err
		}
	}
	return p.conn.Exec(ctx, p.begin).Close()
}

// ask sends the query by the extended protocol, which takes a single statement: the text cannot end the transaction
// and go on outside.
func (p *postgres) ask(ctx context.Context, a *answer) error {
	p.refill()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := p.conn.ExecParams(ctx, p.query, nil, nil, nil, nil)
	a.name(pgColumns(result.FieldDescriptions()))
	for result.NextRow() {
		if err := a.add(pgRow(result.Values())); err != nil {
			cancel() // or Close would read all that is left
			_, _ = result.Close()
			return a.bounded(err)
		}
	}
	columns := len(result.FieldDescriptions())
	tag, err := result.Close()
	if err == nil && columns == 0 && !tag.Select() {
		return fmt.Errorf("the statement %s returns no rows, so it is no question", tag)
	}
	if announced := new(pgproto3.ExceededMaxBodyLenErr); errors.As(err, &announced) {
		err = errTooLarge
	}
	return a.bounded(p.conns.bounded(err))
}

func pgColumns(fields []pgconn.FieldDescription) []string {
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = field.Name
	}
	return names
}

func pgRow(values [][]byte) string {
	columns := make([]string, len(values))
	for i, value := range values {
		if columns[i] = string(value); value == nil {
			columns[i] = null
		}
	}
	return joined(columns)
}

func (p *postgres) settle(ctx context.Context, failed bool) {
	if p.conn == nil {
		return
	}
	var broken error
	if !failed {
		broken = p.conn.Exec(ctx, "ROLLBACK").Close()
	}
	if failed || broken != nil {
		// An error of the query leaves a connection that works; a new one costs little, and is surely clean.
		_ = p.conn.Close(ctx)
		p.conn = nil
	}
}
