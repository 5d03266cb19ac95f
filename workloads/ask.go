package workloads

import (
	"context"
	"errors"
	"time"

	"lockcheck/clients"
)

const (
	// askLimit is how long an access waits for its turn and for what the service says.
	// Then it is refused: nobody knows.
	askLimit = time.Second
	// askTry bounds one question. A server that is stopped must not use up the limit
	// while another one could answer.
	askTry   = 250 * time.Millisecond
	askPause = 20 * time.Millisecond
)

// errNoTurn is why the service was not even asked.
var errNoTurn = errors.New("others waited for an answer for too long")

// lockService is the lock service as the guard asks it.
type lockService struct {
	asker clients.Asker
	lock  clients.Lock
}

// openService returns nil for a guard that asks nobody.
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

// failed says why a client of a user's can do nothing more; nil if it can.
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

// complaint ends the client and says what it did wrong, if it is one of a user's.
func (s *lockService) complaint() error {
	if s == nil {
		return nil
	}
	if _, can := s.lock.(clients.Failing); !can {
		return nil
	}
	return s.lock.Close()
}

// holds asks whether the grant of an access is in force, again and again until there is
// an answer, or can be none, or ctx ends. Where nobody is to be asked every grant is.
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
