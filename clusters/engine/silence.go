package engine

import (
	"context"
	"fmt"
	"io"
	"time"
)

// SilentError says that an engine has stopped answering. It is a deadline that has passed.
type SilentError struct{ For time.Duration }

func (e *SilentError) Error() string {
	return fmt.Sprintf("the Docker engine has said nothing for %s: if it is stuck, restart it", e.For)
}

// Is makes it a context.DeadlineExceeded.
func (e *SilentError) Is(target error) bool { return target == context.DeadlineExceeded }

// limits are how long an engine may be silent.
type limits struct {
	answer time.Duration // to a question, or to a request that makes or removes something
	output time.Duration // while it makes an image; a download may take its time
}

// usualLimits are those of every engine but in tests.
func usualLimits() limits { return limits{answer: time.Minute, output: 10 * time.Minute} }

// answering returns the context for a question, which an engine that is stuck never answers.
func (l limits) answering(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.answer, &SilentError{For: l.answer})
}

// watchdog ends a context when the engine was not heard for the limit.
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

// heard says that the engine does something.
func (w *watchdog) heard() { w.timer.Reset(w.limit) }

// end ends the context, too.
func (w *watchdog) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// hearing is a stream from or to the engine that is heard when something is read of it.
func (w *watchdog) hearing(stream io.Reader) io.Reader { return heardStream{stream, w} }

type heardStream struct {
	stream   io.Reader
	watchdog *watchdog
}

func (s heardStream) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	s.watchdog.heard()
	return n, err
}
