//go:build embedded

package clusters

import (
	"context"
	"time"

	"lockcheck/clients"
)

// notLinked stands for all probes that need a client library.
type notLinked struct{}

func (notLinked) Ready(context.Context, string) error { return clients.ErrEmbeddedOnly }
func (notLinked) Clock(context.Context, string) (time.Time, error) {
	return time.Time{}, clients.ErrEmbeddedOnly
}
func (notLinked) Version(context.Context, string) (string, error) { return "", clients.ErrEmbeddedOnly }
func (notLinked) Leads(context.Context, string) (bool, error)     { return false, clients.ErrEmbeddedOnly }

type (
	redisProbes struct {
		notLinked
		version string
	}
	clusterProbes     struct{ redisProbes }
	replicationProbes struct{ redisProbes }
	sentinelProbes    struct{ redisProbes }
	zookeeperProbes   = notLinked
)

func askPostgres(context.Context, string, string, any) error { return clients.ErrEmbeddedOnly }

func askDatabase(context.Context, string, string, string, any) error { return clients.ErrEmbeddedOnly }

func askMaria(context.Context, string, string, any) error { return clients.ErrEmbeddedOnly }
