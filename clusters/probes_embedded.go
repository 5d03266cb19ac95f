//go:build embedded

package clusters

import (
	"context"
	"time"

	"lockcheck/clients"
)

// notLinked stands for the probes that need a client library.
type notLinked struct{}

func (notLinked) Ready(context.Context, string) error { return clients.ErrEmbeddedOnly }
func (notLinked) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, clients.ErrEmbeddedOnly
}
func (notLinked) Version(context.Context, string) (string, error) { return "", clients.ErrEmbeddedOnly }

// leaderNotLinked stands for the probes of servers with a leader. Others must not have the method Leads, by
// which schedules know that there is a leader.
type leaderNotLinked struct{ notLinked }

func (leaderNotLinked) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}

func (clusterProbes) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}

func (replicationProbes) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}

func (sentinelProbes) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}

func (clusterProbes) TransferLeader(context.Context, string) error { return clients.ErrEmbeddedOnly }

func (replicationProbes) TransferLeader(context.Context, string) error {
	return clients.ErrEmbeddedOnly
}

func (natsProbes) TransferLeader(context.Context, string) error { return clients.ErrEmbeddedOnly }

type (
	redisProbes struct {
		notLinked
		version string
	}
	clusterProbes     struct{ redisProbes }
	replicationProbes struct{ redisProbes }
	sentinelProbes    struct{ redisProbes }
	zookeeperProbes   = leaderNotLinked
)

func askPostgres(context.Context, string, string, any) error { return clients.ErrEmbeddedOnly }

func askDatabase(context.Context, string, string, string, any) error { return clients.ErrEmbeddedOnly }

func askMaria(context.Context, string, string, any) error { return clients.ErrEmbeddedOnly }
