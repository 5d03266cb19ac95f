//go:build embedded

package clusters

import (
	"context"
	"time"

	"lockcheck/clients"
)

// notLinked stands for all probes.
type notLinked struct{}

// noLeader stands for those that tell a leader.
type noLeader struct{ notLinked }

func (noLeader) Leads(context.Context, string) (bool, error) { return false, clients.ErrEmbeddedOnly }

func (notLinked) Ready(context.Context, string) error { return clients.ErrEmbeddedOnly }
func (notLinked) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, clients.ErrEmbeddedOnly
}
func (notLinked) Version(context.Context, string) (string, error) { return "", clients.ErrEmbeddedOnly }

type (
	redisProbes struct {
		notLinked
		version string
	}
	clusterProbes     struct{ redisProbes }
	replicationProbes struct{ redisProbes }
	sentinelProbes    struct{ redisProbes }
	mariaProbes       = notLinked
	postgresProbes    = notLinked
	zookeeperProbes   = noLeader
	consulProbes      = noLeader
)

func askPostgres(context.Context, string, string, string, any) error { return clients.ErrEmbeddedOnly }

func askMaria(context.Context, string, string, any) error { return clients.ErrEmbeddedOnly }

func (clusterProbes) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}
func (replicationProbes) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}
func (sentinelProbes) Leads(context.Context, string) (bool, error) {
	return false, clients.ErrEmbeddedOnly
}
