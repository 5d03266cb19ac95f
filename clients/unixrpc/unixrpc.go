// Package unixrpc connects lockcheck's own processes with JSON over HTTP on a Unix socket. A socket in a shared
// folder stays reachable while a worker's network is cut off, and needs no port on the host.
package unixrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// Client calls one server.
type Client struct {
	http   *http.Client
	socket string
}

// NewClient returns a client of the server behind the socket. It dials on the first call.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{
		http:   &http.Client{Transport: &http.Transport{DialContext: dial}},
		socket: socket,
	}
}

// Call sends the request to the named method and decodes the answer into reply.
func (c *Client) Call(ctx context.Context, method string, request, reply any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://unix/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s on %s: %s", method, c.socket, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(reply)
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// NeverSent reports whether a Call failed before it reached the server.
func NeverSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Method makes a handler of a function from request to reply.
func Method[Request, Reply any](f func(Request) Reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// If the reply cannot be delivered, the outcome is unknown to the caller.
		_ = json.NewEncoder(w).Encode(f(request))
	}
}

// Serve creates the socket and answers requests on it until ctx is done. It first removes a socket left behind
// by a killed server.
func Serve(ctx context.Context, socket string, methods map[string]http.HandlerFunc) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for name, handler := range methods {
		mux.HandleFunc("/"+name, handler)
	}
	server := &http.Server{Handler: mux}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
