// Command leader writes a plan that other programs follow. An election in etcd is meant to ensure that only one
// replica at a time writes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // Compose restarts the container
	}
}

func run(ctx context.Context) error {
	db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Getenv("ETCD")}})
	if err != nil {
		return err
	}
	session, err := concurrency.NewSession(etcd, concurrency.WithTTL(3))
	if err != nil {
		return err
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	election := concurrency.NewElection(session, "/planner")
	if err := election.Campaign(ctx, name); err != nil {
		return err
	}
	term := election.Rev()
	if err := write(ctx, db, "none yet", term); err != nil {
		return err
	}
	fmt.Println("leading planner in term", term)
	defer fmt.Println("deposed planner")
	return lead(ctx, db, session, term)
}

func lead(ctx context.Context, db *pgx.Conn, session *concurrency.Session, term int64) error {
	for n := 1; ; n++ {
		select {
		case <-session.Done():
			return errors.New("the session with etcd is over")
		default:
		}
		time.Sleep(300 * time.Millisecond) // stands for computing the plan
		if err := write(ctx, db, fmt.Sprintf("plan %d of term %d", n, term), term); err != nil {
			return err
		}
		fmt.Printf("wrote %d/%d\n", term, n)
	}
}

// write replaces the plan and records the term that wrote it.
func write(ctx context.Context, db *pgx.Conn, body string, term int64) error {
	condition := "true"
	if os.Getenv("FORM") == "right" {
		condition = "term <= $2"
	}
	written, err := db.Exec(ctx, `WITH written AS (UPDATE plan SET body = $1, term = $2 WHERE `+condition+` RETURNING term)
		INSERT INTO plan_history (term) SELECT term FROM written`, body, term)
	if err == nil && written.RowsAffected() == 0 {
		return errors.New("a later leader has written its plan")
	}
	return err
}
