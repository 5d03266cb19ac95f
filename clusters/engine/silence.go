package engine

import (
	"context"
	"fmt"
	"io"
	"time"
)

// SilentError says that the engine has stopped answerContext. It matches context.DeadlineExceeded.
type SilentError struct{ For time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("the Docker engine has said nothing for %s: if it is stuck, restart it", e.For)
}

// Is makes errors.Is match context.DeadlineExceeded.
func (e *SilentError) Is(target error) bool { return target == context.DeadlineExceeded }

// limits is how long an engine may be silent.
type limits struct {
	answer time.Duration // after a question, or a request that creates or removes something
	output time.Duration // while it builds or transfers an image; a download may take long
}

func usualLimits() limits { return limits{answer: time.Minute, output: 10 * time.Minute} }

// answerContext returns the context for a request that a stuck engine would never answer.
func (l limits) answerContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.answer, &SilentError{For: l.answer})
}

// watchdog cancels a context when the engine has been silent for the limit.
type watchdog struct {
	limit  time.Duration
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

func watched(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watchdog{limit: limit, cancel: cancel}
	w.timer = time.AfterFunc(limit, func() { cancel(&SilentError{For: limit}) })
	return ctx, w
}

// heard restarts the limit, because the engine did something.
func (w *watchdog) heard() { w.timer.Reset(w.limit) }

// end stops the watchdog and cancels its context.
func (w *watchdog) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// watching wraps a stream to or from the engine so that every read restarts the limit.
func (w *watchdog) watching(stream io.Reader) io.Reader { return watchedStream{stream, w} }

type watchedStream struct {
	stream   io.Reader
	watchdog *watchdog
}

func (s watchedStream) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	s.watchdog.heard()
	return n, err
}
