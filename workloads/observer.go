package workloads

import (
	"context"
	"fmt"
	"io"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
)

// ObserverConfig is the configuration of the observer of a lock service.
type ObserverConfig struct {
	Lock  string   `json:"lock"`
	Nodes []string `json:"nodes"` // addresses of the lock's servers
	// Prefix begins the keys to report. Other keys belong to other runs.
	Prefix string `json:"prefix,omitempty"`
}

// RunObserver records what the lock service itself has on record about the queues of keys, until its input
// ends. No fault is aimed at the observer.
func RunObserver(ctx context.Context, config ObserverConfig, input io.Reader, output io.Writer) error {
	info, known := clients.ByName(config.Lock)
	if !known || info.Observe == nil {
		return fmt.Errorf("observer: lock %q cannot be observed", config.Lock)
	}
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		_, _ = io.Copy(io.Discard, input)
	}()
	record := NewEmitter(history.Service, output)
	err := info.Observe(ctx, clients.Config{Worker: history.Service, Nodes: config.Nodes}, stop, func(o clients.Observation) {
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
