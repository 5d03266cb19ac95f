// Command go-lock makes leaselock a client of lockcheck.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lockcheck/clients/serve"
	"lockcheck/examples/go-lock/leaselock"
)

func main() {
	if err := serve.Run(open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type lock struct{ service *leaselock.Client }

func open(s serve.Setup) (serve.Lock, string, error) {
	return lock{leaselock.New(s.Servers[0].Address())}, "leaselock 1.0", nil
}

func (l lock) Acquire(ctx context.Context, a serve.Attempt) (serve.Grant, error) {
	held, err := l.service.TryLock(ctx, a.Key, a.ID, a.TTL)
	if errors.Is(err, leaselock.ErrNotHeld) {
		return serve.Grant{}, serve.ErrBusy
	}
	return serve.Grant{Held: held, Token: held.Token, Until: held.Until}, err
}

func (l lock) Renew(ctx context.Context, g serve.Grant) (serve.Grant, error) {
	held := g.Held.(*leaselock.Lock)
	err := l.service.Extend(ctx, held)
	g.Until = held.Until
	return g, known(err)
}

func (l lock) Release(ctx context.Context, g serve.Grant) error {
	return known(l.service.Unlock(ctx, g.Held.(*leaselock.Lock)))
}

func known(err error) error {
	if errors.Is(err, leaselock.ErrNotHeld) {
		return serve.ErrNotHeld
	}
	return err
}
