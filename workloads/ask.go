package workloads

import (
	"context"
	"errors"
	"time"

	"lockcheck/clients"
)

const (
	// askLimit is how long an access waits for its turn and for the service's answer. After that it is refused,
	// because it is unknown whether the grant is in force.
	askLimit = time.Second
	// askTry bounds one request. A stopped server must not use up askLimit while another server could answer.
	askTry   = 250 * time.Millisecond
	askPause = 20 * time.Millisecond
)

// errNoTurn: the service was not asked, because earlier accesses waited for their answers for too long.
var errNoTurn = errors.New("others waited for an answer for too long")

// lockService is the lock service that the guard asks.
type lockService struct {
	asker clients.Asker
	lock  clients.Lock
}

// openService returns nil for a guard that asks no service.
func openService(c ResourceConfig, stop <-chan struct{}) (*lockService, error) {
	if c.Guard != Ask {
		return nil, nil
	}
	asker, lock, err := openAs[clients.Asker](c, stop)
	if err != nil {
		return nil, err
	}
	return &lockService{asker: asker, lock: lock}, nil
}

func (s *lockService) Close() error {
	if s == nil {
		return nil
	}
	return s.lock.Close()
}

// failed returns why a user's own client can no longer be used; nil if it can.
func (s *lockService) failed() error {
	if s == nil {
		return nil
	}
	client, can := s.lock.(clients.Failing)
	if !can {
		return nil
	}
	return client.Failed()
}

// complaint closes a user's own client and returns what it did wrong. It does nothing for lockcheck's clients.
func (s *lockService) complaint() error {
	if s == nil {
		return nil
	}
	if _, can := s.lock.(clients.Failing); !can {
		return nil
	}
	return s.lock.Close()
}

// holds asks whether the grant of an access is in force. It repeats the question until there is an answer, the
// client has failed, or ctx ends. Without a service, every grant is regarded as in force.
func (s *lockService) holds(ctx context.Context, a Access) (bool, error) {
	if s == nil {
		return true, nil
	}
	err := errNoTurn
	for ctx.Err() == nil {
		var holds bool
		holds, err = bounded(ctx, askTry, alreadyClosed, func(ctx context.Context) (bool, error) {
			return s.asker.Holds(ctx, clients.Grant{Key: a.Key, ID: a.Grant, Token: a.Token})
		})
		if err == nil || s.failed() != nil {
			return holds, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(askPause):
		}
	}
	return false, err
}
