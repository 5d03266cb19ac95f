package workloads

import (
	"errors"
	"fmt"
	"time"

	"lockcheck/clients"
	"lockcheck/history"
)

// ServiceConfig is what the resource needs to use a lock service.
type ServiceConfig struct {
	Lock string `json:"lock"`
	// Definition is the definition of a user's own lock; nil for one of lockcheck's locks.
	Definition *clients.Definition `json:"definition,omitempty"`
	Nodes      []string            `json:"nodes"`  // addresses of its servers
	TTL        time.Duration       `json:"ttl_ns"` // lease of a session, for a client that needs one
	// Folder and Timeout are those of the workers.
	Folder  string        `json:"folder"`
	Timeout time.Duration `json:"timeout_ns"`
}

// ofUser reports whether the client is a user's own, which is started on command.
func (c *ServiceConfig) ofUser() bool { return c != nil && c.Definition != nil }

// openAs opens the lock for the resource, as an interface that not every lock implements. When stop is closed,
// it gives up waiting for a user's own client to start.
func openAs[Needed any](c ResourceConfig, stop <-chan struct{}) (Needed, clients.Lock, error) {
	var none Needed
	if c.Service == nil {
		return none, nil, fmt.Errorf("guard %s: no lock service", c.Guard)
	}
	info, known := clients.Find(c.Service.Lock, c.Service.Definition)
	if !known {
		return none, nil, fmt.Errorf("guard %s: unknown lock %q", c.Guard, c.Service.Lock)
	}
	lock, err := info.Open(clients.Config{
		Worker: history.Resource, Nodes: c.Service.Nodes, TTL: c.Service.TTL,
		Folder: c.Service.Folder, Timeout: c.Service.Timeout, Stop: stop,
	})
	if err != nil {
		return none, nil, fmt.Errorf("guard %s: %w", c.Guard, err)
	}
	needed, can := lock.(Needed)
	if !can {
		return none, nil, errors.Join(fmt.Errorf("guard %s: lock %s %s", c.Guard, info.Name, c.Guard.Lacks(info)), lock.Close())
	}
	return needed, lock, nil
}
