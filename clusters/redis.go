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

const redisPort = 6379

// redisSpec is a number of independent Redis servers that keep nothing: the snapshots
// that Redis makes now and then unless it is told otherwise are switched off.
func redisSpec(name string, nodes int, sizes ...int) Spec {
	return Spec{
		Name: name, Nodes: nodes, Sizes: sizes, Image: "redis", Official: true,
		Server: func(int) Server { return redisServer("redis") },
	}
}

// valkeySpec is one Valkey, the fork of Redis, as durable as redisSpec.
func valkeySpec() Spec {
	return Spec{
		Name: "valkey", Nodes: 1, Image: "valkey", Official: true,
		Server: func(int) Server { return redisServer("valkey") },
	}
}

// redisAOFSpec is one Redis that has written to its disk whatever it answers.
func redisAOFSpec() Spec {
	return Spec{
		Name: "redis-aof", Nodes: 1, Image: "redis", Official: true,
		Server: func(int) Server {
			server := redisServer("redis", "--appendonly", "yes", "--appendfsync", "always")
			command := server.Command
			server.Command = func(p Place) []string { return append(command(p), "--dir", p.Folder) }
			server.NoWipe = nil
			return server
		},
	}
}

// redisServer is a server of Redis or of its fork, whose programs differ by name
// only. It keeps nothing, unless the arguments say otherwise.
func redisServer(program string, args ...string) Server {
	return Server{
		Program: program, Port: redisPort, Probes: redisProbes{version: program + "_version"},
		Command: func(Place) []string {
			return append([]string{
				program + "-server", "--bind", "0.0.0.0", "--protected-mode", "no",
				"--save", "", "--appendonly", "no", "--dir", "/tmp",
			}, args...)
		},
		NoWipe: errNothingOnDisk,
		// jemalloc's start calls the clock before libfaketime is ready; the debug
		// malloc of libc, loaded after it, breaks the circle.
		ClockEnv: []string{
			"LD_PRELOAD=" + faketimeLibrary + ":/lib/x86_64-linux-gnu/libc_malloc_debug.so.0",
		},
	}
}

// redisProbes asks a Redis server, or one that speaks like it.
type redisProbes struct {
	// version is the field of INFO: Valkey's redis_version names the Redis that it
	// pretends to be.
	version string
}

var _ agent.Probes = redisProbes{}

// redisOptions are for one question: its answer or its failure counts, and that
// of no retry.
func redisOptions(address string) *redis.Options {
	return &redis.Options{Addr: address, Protocol: 2, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true}
}

// ask makes one connection for one question.
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
