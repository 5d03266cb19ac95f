//go:build !embedded

package clusters

import (
	"bufio"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"lockcheck/clusters/agent"
)

// redisProbes asks a server of Redis or of its fork.
type redisProbes struct {
	// version is the field of INFO with the server's version. Valkey's redis_version is only the Redis version
	// that it is compatible with.
	version string
}

var _ agent.Probes = redisProbes{}

// redisOptions are for a single question, whose answer or failure counts. There is no retry.
func redisOptions(address string) *redis.Options {
	return &redis.Options{Addr: address, Protocol: 2, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true}
}

// ask connects anew for one question.
func (redisProbes) ask(address string, question func(*redis.Client) error) error {
	client := redis.NewClient(redisOptions(address))
	return errors.Join(question(client), client.Close())
}

func (p redisProbes) Ready(ctx context.Context, address string) error {
	return p.ask(address, func(c *redis.Client) error { return c.Ping(ctx).Err() })
}

func (p redisProbes) Clock(ctx context.Context, address string) (now time.Time, err error) {
	err = p.ask(address, func(c *redis.Client) error {
		now, err = c.Time(ctx).Result()
		return err
	})
	return now, err
}

func (p redisProbes) Version(ctx context.Context, address string) (version string, err error) {
	err = p.ask(address, func(c *redis.Client) error {
		info, err := c.Info(ctx, "server").Result()
		version = infoField(info, p.version)
		return err
	})
	return version, err
}

// infoField finds a field in the answer to INFO.
func infoField(info, name string) string {
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
