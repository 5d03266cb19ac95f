//go:build !embedded

package clusters

import (
	"context"
	"database/sql"
	"errors"

	"github.com/go-sql-driver/mysql"
)

// askMaria asks MariaDB a question with a single value as its answer.
func askMaria(ctx context.Context, address, question string, answer any) error {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = "lockcheck", "tcp", address
	config.ParseTime = true
	config.Params = map[string]string{"time_zone": "'+00:00'"}
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	return errors.Join(db.QueryRowContext(ctx, question).Scan(answer), db.Close())
}
