package workloads

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
)

// ObserverConfig is the configuration of the observer of a lock service.
type ObserverConfig struct {
	Lock  string   `json:"lock"`
	Redis bool     `json:"redis,omitempty"` // the lock is a user's own, on one Redis or Valkey
	Nodes []string `json:"nodes"`           // addresses of the lock's servers
	// Prefix begins the keys to report. Other keys belong to other runs.
	Prefix string `json:"prefix,omitempty"`
	// Workers are the names of workers by IP address, if they can be told apart by that.
	Workers map[string]string `json:"workers,omitempty"`
}

// observe returns how the service is observed; nil if it cannot be.
func (c ObserverConfig) observe() func(context.Context, clients.Config, <-chan struct{}, func(clients.Observation)) error {
	if c.Redis {
		return clients.WatchRedis
	}
	info, _ := clients.ByName(c.Lock)
	return info.Observe
}

// lockName matches what follows the prefix in the name of a lock. Keys next to it, such as a queue of waiters, are not
// reported: a waiter may remove them.
var lockName = regexp.MustCompile(`^k\d+$`)

// removal is the event of a key that a worker removed. It reports false if the key is not named as a lock, or if the
// connection belongs to no worker.
func (c ObserverConfig) removal(o clients.Observation) (e history.Event, is bool) {
	name, ours := strings.CutPrefix(o.Key, c.Prefix)
	host, _, _ := net.SplitHostPort(o.From)
	worker := c.Workers[host]
	return history.Event{F: history.Dropped, Type: history.Info, Key: o.Key, Client: worker, Note: o.Command}, ours && lockName.MatchString(name) && worker != ""
}

// RunObserver records what the lock service itself has on record about the queues of keys, until its input
// ends. No fault is aimed at the observer.
func RunObserver(ctx context.Context, config ObserverConfig, input io.Reader, output io.Writer) error {
	observe := config.observe()
	if observe == nil {
		return fmt.Errorf("observer: lock %q cannot be observed", config.Lock)
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		_, _ = io.Copy(io.Discard, input)
	}()
	record := NewEmitter(history.Service, output)
	err := observe(ctx, clients.Config{Worker: history.Service, Nodes: config.Nodes}, stop, func(o clients.Observation) {
		if o.From != "" {
			if e, is := config.removal(o); is {
				record.Emit(e)
			}
			return
		}
		if !strings.HasPrefix(o.Key, config.Prefix) {
			return
		}
		event := history.Event{F: history.Claimed, Type: history.Info, Key: o.Key, Token: o.Token}
		if o.Gone {
			event.F = history.Dropped
		}
		record.Emit(event)
	})
	if err != nil {
		// The observer's record ends early, but the run's does not depend on it.
		record.Emit(history.Event{F: history.Unobserved, Type: history.Info, Error: err.Error()})
		<-stop
	}
	return record.Err()
}
