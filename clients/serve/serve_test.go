package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// fake is a lock whose results the test chooses.
type fake struct {
	acquire func(ctx context.Context, a Attempt) (Grant, error)
	release error
	renewal Grant
}

func (f fake) Acquire(ctx context.Context, a Attempt) (Grant, error) { return f.acquire(ctx, a) }
func (f fake) Release(context.Context, Grant) error                  { return f.release }
func (f fake) Renew(context.Context, Grant) (Grant, error)           { return f.renewal, nil }

// session is a running client, to which a test sends requests.
type session struct {
	t       *testing.T
	input   *io.PipeWriter
	answers *bufio.Scanner
	ended   chan error
}

func start(t *testing.T, lock Lock) *session {
	t.Helper()
	input, requests := io.Pipe()
	answers, output := io.Pipe()
	s := &session{t: t, input: requests, answers: bufio.NewScanner(answers), ended: make(chan error, 1)}
	go func() {
		s.ended <- run(func(Setup) (Lock, string, error) { return lock, "fake 1", nil }, input, output)
		output.Close()
	}()
	s.send(`{"id":1,"op":"hello","protocol":1,"worker":"w1","servers":[],"ttl_ms":2000,"timeout_ms":1000}`)
	s.receive()
	return s
}

func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.input, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) receive() string {
	s.t.Helper()
	if !s.answers.Scan() {
		s.t.Fatal("no answer", s.answers.Err())
	}
	return s.answers.Text()
}

func grant(g Grant, err error) fake {
	return fake{acquire: func(context.Context, Attempt) (Grant, error) { return g, err }}
}

const acquire = `{"id":2,"op":"acquire","key":"k","attempt":"w1-1","ttl_ms":2000,"wait_ms":0}`

func TestAnswers(t *testing.T) {
	refused := grant(Grant{}, nil)
	refused.release = fmt.Errorf("of the library: %w", ErrNotHeld)
	for name, c := range map[string]struct {
		lock     Lock
		requests []string
		want     string // the last answer
	}{
		"granted":           {grant(Grant{Token: 7}, nil), []string{acquire}, `{"id":2,"ok":{"token":7}}`},
		"busy":              {grant(Grant{}, fmt.Errorf("of the library: %w", ErrBusy)), []string{acquire}, `{"busy":{},"id":2}`},
		"no effect":         {grant(Grant{}, NoEffect(errors.New("refused"))), []string{acquire}, `{"error":{"effect":"none","text":"refused"},"id":2}`},
		"unknown":           {grant(Grant{}, errors.New("reset")), []string{acquire}, `{"error":{"text":"reset"},"id":2}`},
		"released":          {grant(Grant{}, nil), []string{acquire, `{"id":3,"op":"release","key":"k","attempt":"w1-1"}`}, `{"id":3,"ok":{}}`},
		"not held":          {refused, []string{acquire, `{"id":3,"op":"release","key":"k","attempt":"w1-1"}`}, `{"id":3,"not_held":{}}`},
		"never seen":        {refused, []string{`{"id":3,"op":"release","key":"k","attempt":"w1-1"}`}, `{"error":{"text":"this client does not have it"},"id":3}`},
		"work":              {refused, []string{`{"id":3,"op":"work","ms":1}`}, `{"id":3,"ok":{}}`},
		"not known":         {refused, []string{acquire, `{"id":3,"op":"holds","attempt":"w1-1"}`}, `{"error":{"effect":"none","text":"holds is not supported"},"id":3}`},
		"not known of none": {refused, []string{`{"id":3,"op":"holds","attempt":"w1-1"}`}, `{"error":{"effect":"none","text":"holds is not supported"},"id":3}`},
		"renewed":           {refused, []string{acquire, `{"id":3,"op":"renew","attempt":"w1-1","ttl_ms":2000}`}, `{"id":3,"ok":{}}`},
		"cannot renew":      {struct{ Lock }{refused}, []string{acquire, `{"id":3,"op":"renew","attempt":"w1-1"}`}, `{"error":{"effect":"none","text":"renew is not supported"},"id":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, c.lock)
			var last string
			for _, request := range c.requests {
				s.send(request)
				last = s.receive()
			}
			if last != c.want {
				t.Errorf("got %s, want %s", last, c.want)
			}
			s.input.Close()
			if err := <-s.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUntil: the end of the validity is converted to the protocol's clock, and is never later than the lock
// stated. It may be earlier by the time between two reads of the clocks.
func TestUntil(t *testing.T) {
	before := history.Now()
	s := start(t, grant(Grant{Until: time.Now().Add(time.Hour)}, nil))
	s.send(acquire)
	var answer struct{ OK struct{ Until int64 } }
	if err := json.Unmarshal([]byte(s.receive()), &answer); err != nil {
		t.Fatal(err)
	}
	if until, hour := answer.OK.Until, time.Hour.Nanoseconds(); until < before || until > history.Now()+hour {
		t.Errorf("until %d, want an hour from now, %d", until, history.Now()+hour)
	}
}

func TestLost(t *testing.T) {
	lost := make(chan struct{})
	s := start(t, grant(Grant{Lost: lost}, nil))
	s.send(acquire)
	s.receive()
	close(lost)
	if got, want := s.receive(), `{"attempt":"w1-1","event":"lost"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCancel: a cancelled acquire ends, and meanwhile other requests are answered.
func TestCancel(t *testing.T) {
	s := start(t, fake{acquire: func(ctx context.Context, _ Attempt) (Grant, error) {
		<-ctx.Done()
		return Grant{}, ctx.Err()
	}})
	s.send(strings.Replace(acquire, `"wait_ms":0`, `"wait_ms":3600000`, 1))
	s.send(`{"id":3,"op":"work","ms":1}`)
	if got, want := s.receive(), `{"id":3,"ok":{}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.send(`{"id":4,"op":"cancel","of":2}`)
	if got, want := s.receive(), `{"error":{"text":"context canceled"},"id":2}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNoRequest(t *testing.T) {
	s := start(t, grant(Grant{}, nil))
	s.send("not JSON")
	if err := <-s.ended; err == nil {
		t.Error("a line that is no request was read without an error")
	}
}
