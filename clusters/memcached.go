package clusters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"lockcheck/clusters/agent"
)

const memcachedPort = 11211

// memcachedSpec is one memcached with its default of 64 MB.
func memcachedSpec() Spec {
	return Spec{
		Name: "memcached", Nodes: 1, Image: "memcached",
		Server: func(int) Server {
			return Server{
				Program: "memcached", Port: memcachedPort, Probes: memcachedProbes{},
				Command: func(Place) []string { return []string{"memcached", "-u", "memcache", "-l", "0.0.0.0"} },
				NoClock: errMonotonicTime, NoWipe: errNothingOnDisk,
			}
		},
	}
}

// errMonotonicTime is why a step of memcached's wall clock can neither be proven nor would matter.
var errMonotonicTime = errors.New("memcached looks at the wall clock when it starts, and counts seconds by the monotonic clock from then on")

// memcachedProbes asks memcached.
type memcachedProbes struct{}

var _ agent.Probes = memcachedProbes{}

// memcachedStat returns one line of the answer to stats, over a new connection.
func memcachedStat(ctx context.Context, address, name string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err := io.WriteString(conn, "stats\r\n"); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() && lines.Text() != "END" {
		if value, found := strings.CutPrefix(lines.Text(), "STAT "+name+" "); found {
			return value, nil
		}
	}
	return "", errors.Join(lines.Err(), fmt.Errorf("memcached does not tell %s", name))
}

func (memcachedProbes) Ready(ctx context.Context, address string) error {
	_, err := memcachedStat(ctx, address, "pid")
	return err
}

func (memcachedProbes) Clock(ctx context.Context, address string) (time.Time, error) {
	text, err := memcachedStat(ctx, address, "time")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err
}

func (memcachedProbes) Version(ctx context.Context, address string) (string, error) {
	return memcachedStat(ctx, address, "version")
}
