package clients

import (
	"context"
	"errors"
	"net"
	"slices"
)

var errNoServers = errors.New("this lock needs a server")

// rotated returns the servers in an order that begins with the n-th, counted from 0, modulo their number.
func rotated(servers []string, n int) []string {
	n %= len(servers)
	return slices.Concat(servers[n:], servers[:n])
}

// firstThatAccepts dials the servers in turn until one accepts the connection.
func firstThatAccepts(dialer *net.Dialer, servers []string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		var errs []error
		for _, server := range servers {
			conn, err := dialer.DialContext(ctx, network, server)
			if err == nil {
				return conn, nil
			}
			errs = append(errs, err)
		}
		return nil, errors.Join(errs...)
	}
}
