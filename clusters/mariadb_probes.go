//go:build !embedded

package clusters

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"

	"lockcheck/clusters/agent"
)

// mariaProbes asks MariaDB.
type mariaProbes struct{}

var _ agent.Probes = mariaProbes{}

// askMaria makes one connection for one question with one answer.
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

func (mariaProbes) Ready(ctx context.Context, address string) error {
	var one int
	return askMaria(ctx, address, "SELECT 1", &one)
}

// Clock asks for SYSDATE: NOW is the time at which the statement began.
func (mariaProbes) Clock(ctx context.Context, address string) (now time.Time, err error) {
	err = askMaria(ctx, address, "SELECT SYSDATE(6)", &now)
	return now, err
}

func (mariaProbes) Version(ctx context.Context, address string) (version string, err error) {
	err = askMaria(ctx, address, "SELECT VERSION()", &version)
	return version, err
}
