//go:build !embedded

package ask

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/go-sql-driver/mysql"
)

const mysqlPort = "3306"

// mySQL asks MySQL or MariaDB. Each question has a transaction of its own that can only read.
type mySQL struct {
	*conns
	connector driver.Connector
	query     string
	limits    string
	db        *sql.DB   // nil if there is no connection
	conn      *sql.Conn // the only one of db
	tx        *sql.Tx   // nil if there is none
}

func openMySQL(q Question) (*mySQL, error) {
	u, err := parseURL(q.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "mysql" && u.Scheme != "mariadb" || u.Hostname() == "" {
		return nil, errors.New("the connection needs a URL with mysql:// or mariadb:// and a host")
	}
	config, err := mysql.ParseDSN("/?" + u.RawQuery)
	if err != nil {
		return nil, err
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr = "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), mysqlPort))
	config.DBName = strings.TrimPrefix(u.Path, "/")
	config.Logger = &mysql.NopLogger{} // the errors say the same
	// The text is one statement: it cannot end the transaction and go on outside.
	config.MultiStatements = false
	network := newConns()
	config.DialFunc = network.dial
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(q.Timeout, DefaultTimeout)
	return &mySQL{
		conns: network, connector: connector, query: q.Text,
		// The server gives up a query that nobody waits for. The setting of each kind of server is a comment to
		// the other one.
		limits: fmt.Sprintf("SET SESSION /*M!100101 max_statement_time = %f */ /*!50708 max_execution_time = %d */",
			limit.Seconds(), max(1, limit.Milliseconds())),
	}, nil
}

func (m *mySQL) ready(ctx context.Context) (err error) {
	m.refill()
	if m.db == nil {
		if err := m.connect(ctx); err != nil {
			return err
		}
	}
	m.tx, err = m.conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	return err
}

func (m *mySQL) connect(ctx context.Context) (err error) {
	m.db = sql.OpenDB(m.connector)
	if m.conn, err = m.db.Conn(ctx); err != nil {
		return err
	}
	// MariaDB commits before a statement that changes a table's definition, and executes it outside the transaction.
	if _, err = m.conn.ExecContext(ctx, "SET SESSION TRANSACTION READ ONLY"); err != nil {
		return err
	}
	_, err = m.conn.ExecContext(ctx, m.limits)
	if refused := new(mysql.MySQLError); errors.As(err, &refused) {
		return nil // a server that knows neither setting
	}
	return err
}

func (m *mySQL) ask(ctx context.Context, a *answer) error {
	m.refill()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rows, err := m.tx.QueryContext(ctx, m.query)
	if err != nil {
		return m.conns.bounded(err)
	}
	if err = addRows(rows, a); err != nil {
		cancel() // or Close would read all that is left
	}
	return a.bounded(m.conns.bounded(errors.Join(err, rows.Close())))
}

// addRows adds the rows of the first result.
func addRows(rows *sql.Rows, a *answer) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("the statement returns no rows, so it is no question")
	}
	a.name(names)
	values, places := make([]sql.RawBytes, len(names)), make([]any, len(names))
	for i := range values {
		places[i] = &values[i]
	}
	columns := make([]string, len(names))
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for i, value := range values {
			if columns[i] = string(value); value == nil {
				columns[i] = null
			}
		}
		if err := a.add(joined(columns)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (m *mySQL) settle(_ context.Context, failed bool) {
	if m.db == nil {
		return
	}
	var broken error
	if !failed {
		broken = m.tx.Rollback()
	}
	if failed || broken != nil {
		m.cut() // a transaction that is open would ask the server
		if m.conn != nil {
			_ = m.conn.Close()
		}
		_ = m.db.Close()
		m.db, m.conn, m.tx = nil, nil, nil
	}
}
