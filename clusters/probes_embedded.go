//go:build embedded

package clusters

import (
	"context"
	"errors"
	"time"
)

// errNotLinked: probes ask servers by client libraries, of which this build has none.
var errNotLinked = errors.New("this build cannot ask servers: make build makes the whole program")

// notLinked stands for all probes.
type notLinked struct{}

// noLeader stands for those that tell a leader.
type noLeader struct{ notLinked }

func (noLeader) Leads(context.Context, string) (bool, error) { return false, errNotLinked }

func (notLinked) Ready(context.Context, string) error              { return errNotLinked }
func (notLinked) Clock(context.Context, string) (time.Time, error) { return time.Time{}, errNotLinked }
func (notLinked) Version(context.Context, string) (string, error)  { return "", errNotLinked }

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

func askPostgres(context.Context, string, string, string, any) error { return errNotLinked }

func askMaria(context.Context, string, string, any) error { return errNotLinked }

func (clusterProbes) Leads(context.Context, string) (bool, error)     { return false, errNotLinked }
func (replicationProbes) Leads(context.Context, string) (bool, error) { return false, errNotLinked }
func (sentinelProbes) Leads(context.Context, string) (bool, error)    { return false, errNotLinked }
