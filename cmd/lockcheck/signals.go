package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// interrupts delivers the signals that ask the program to end.
func interrupts() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

// interruptible closes a channel at the first signal, which ends a run cleanly, and cancels the context
// at the second.
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

// untilInterrupted runs something until it is done or the first signal comes.
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
