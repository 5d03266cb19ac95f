package clienttest

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"lockcheck/clients/protocol"
	"lockcheck/history"
)

// Service is a lock service in the memory of a test, whose clients are goroutines. It waits only for channels
// and timers. So inside a bubble of testing/synctest everything runs in fake time.
type Service struct {
	// Down: no client can reach the service.
	Down bool

	began time.Time
	start int64

	mu    sync.Mutex
	last  int64 // the last result of Now
	held  map[string]grant
	token uint64
}

type grant struct {
	holder string
	token  uint64
	until  int64
}

// NewService returns a service without grants.
func NewService() *Service {
	return &Service{began: time.Now(), start: history.Now(), held: make(map[string]grant)}
}

// Now returns the time, in ns, on the clock that the service shares with its clients and their judges. It
// starts at CLOCK_MONOTONIC and follows time.Now, which may be fake. No two calls return the same value. So
// times also order events that happen at one moment of fake time.
func (s *Service) Now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tick()
}

func (s *Service) tick() int64 {
	s.last = max(s.last+1, s.start+time.Since(s.began).Nanoseconds())
	return s.last
}

// Command returns a client with a behaviour that is a goroutine. It panics if there is no such behaviour.
func (s *Service) Command(name string) protocol.Command {
	b := byName(name)
	return protocol.Command{Args: []string{name}, Now: s.Now, Run: func() (protocol.Process, error) {
		t := newThread(s)
		go func() {
			newClient(t).run(b.play)
			t.end("exit status 0")
		}()
		return protocol.Process{Control: t, Input: writeEnd{t.in}, Output: readEnd{t.out}, Errors: readEnd{t.errs}}, nil
	}}
}

// errDown is the error of a service that is down.
var errDown = errors.New("the service cannot be reached")

// ask implements service.
func (s *Service) ask(method, key, id string, ttl time.Duration) (reply, error) {
	if s.Down {
		return reply{}, errDown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.tick()
	current := s.held[key]
	if now >= current.until {
		current = grant{}
	}
	mine := current.holder == id
	switch method {
	case "acquire":
		if current.holder != "" {
			return reply{Holder: current.holder}, nil
		}
		s.token++
		current, mine = grant{holder: id, token: s.token, until: now + ttl.Nanoseconds()}, true
	case "renew":
		if mine {
			current.until = now + ttl.Nanoseconds()
		}
	case "release":
		if mine {
			current.until = now
		}
	case "holder":
	default:
		return reply{}, fmt.Errorf("there is no method %q", method)
	}
	s.held[key] = current
	return reply{Done: mine, Holder: current.holder, Token: current.token}, nil
}

// thread is a client that is a goroutine, with the goroutines that it starts. They end at their next call of a
// method once the client has ended.
type thread struct {
	service       *Service
	in, out, errs *pipe
	ended, halted chan struct{}

	mu     sync.Mutex
	how    string // how the client ended; "" if it has not
	isHalt bool
	left   bool // a process that the client has started still holds its outputs
}

func newThread(s *Service) *thread {
	return &thread{service: s, in: newPipe(), out: newPipe(), errs: newPipe(), ended: make(chan struct{}), halted: make(chan struct{})}
}

func (t *thread) end(how string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.how != "" {
		return
	}
	t.how = how
	t.in.closeReader()
	if !t.left {
		t.closeOutputs()
	}
	close(t.ended)
}

func (t *thread) closeOutputs() {
	t.out.closeWriter()
	t.errs.closeWriter()
}

// onlyIfRunning returns only while the client runs. While the client is stopped it blocks, and after its end it
// ends the goroutine.
func (t *thread) onlyIfRunning() {
	select {
	case <-t.halted:
		<-t.ended
	default:
	}
	select {
	case <-t.ended:
		runtime.Goexit()
	default:
	}
}

func (t *thread) stdin() io.ReadCloser   { return input{t} }
func (t *thread) stdout() io.WriteCloser { return output{t, t.out} }
func (t *thread) stderr() io.Writer      { return output{t, t.errs} }
func (t *thread) now() int64             { return t.service.Now() }
func (t *thread) connect(string) service { return t.service }

// ignoreSignals does nothing, because a goroutine receives no signals.
func (t *thread) ignoreSignals() {}

func (t *thread) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.ended:
	}
	t.onlyIfRunning()
}

func (t *thread) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
}

func (t *thread) exit(status int) { t.end(fmt.Sprintf("exit status %d", status)); t.onlyIfRunning() }
func (t *thread) kill()           { _ = t.Kill(); t.onlyIfRunning() }
func (t *thread) stop()           { _ = t.Stop(); t.onlyIfRunning() }

// Ended implements protocol.Control, as do the methods below.
func (t *thread) Ended() <-chan struct{} { return t.ended }

func (t *thread) Exit() string {
	<-t.ended
	return t.how
}

func (t *thread) Kill() error {
	t.end("signal: killed")
	return nil
}

func (t *thread) Stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isHalt {
		t.isHalt = true
		close(t.halted)
	}
	return nil
}

func (t *thread) Left() ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left {
		return nil, nil
	}
	return []string{"sleep (process 4711)"}, nil
}

func (t *thread) KillLeft() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = false
	t.closeOutputs()
	return nil
}

// input is the client's end of its input.
type input struct{ *thread }

func (i input) Read(into []byte) (int, error) {
	n, err := i.in.Read(into)
	i.onlyIfRunning()
	return n, err
}

func (i input) Close() error {
	i.in.closeReader()
	return nil
}

// output is the client's end of one of its outputs.
type output struct {
	*thread
	to *pipe
}

func (o output) Write(text []byte) (int, error) {
	o.onlyIfRunning()
	n, err := o.to.Write(text)
	o.onlyIfRunning()
	return n, err
}

func (o output) Close() error {
	o.to.closeWriter()
	return nil
}
