package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interrupts delivers what asks the program to end.
func interrupts() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

// interruptible turns the first signal into the closing of a channel, which ends
// a run in good order, and the second into the end of the context.
func (s *system) interruptible(ctx context.Context) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	first := make(chan struct{})
	go func() {
		select {
		case <-s.signals:
			close(first)
		case <-ctx.Done():
			return
		}
		select {
		case <-s.signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, first, cancel
}

// interruptedTimeout is how long an interrupted command may take to stop.
const interruptedTimeout = 5 * time.Second

// untilInterrupted does something that the first signal ends.
func (s *system) untilInterrupted(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		return err
	case <-s.signals:
	}
	cancel()
	select {
	case <-done:
	case <-s.signals:
	case <-time.After(interruptedTimeout):
	}
	return &exitError{code: exitInterrupted}
}
