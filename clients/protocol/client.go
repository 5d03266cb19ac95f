package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Limits beyond which a client is regarded as broken.
const (
	// maxLine is the longest line of the client's output, in bytes.
	maxLine = 1 << 20
	// maxIgnored is how many events the client may send that are not about a lock which it holds.
	maxIgnored = 10_000
	// maxWaiting is how many requests may wait until the client reads its input.
	maxWaiting = 1000
	// HelloTime is how long the client may take to answer hello.
	HelloTime = 30 * time.Second
)

// Part is the part of the protocol that a client broke.
type Part string

// The parts of the protocol.
const (
	Opening Part = "opening" // hello
	Lines   Part = "lines"   // form and length of lines
	Answers Part = "answers" // exactly one for each request, of a kind that its operation allows
	Clock   Part = "clock"   // until without now
	Until   Part = "until"   // until cannot be the end of a validity
	Events  Part = "events"  // too many events
	Input   Part = "input"   // the client does not read its input
	Ending  Part = "ending"  // the client ends too late, or its output ends before its input
)

// ViolationError says that the client broke the protocol.
type ViolationError struct {
	Part Part
	Rule string // the broken rule, in words
	Line string // the client's line, shortened; "" if no line broke the rule
	// At is when the line was read, in ns of CLOCK_MONOTONIC; 0 if no line broke the rule.
	At int64
}

func (e *ViolationError) Error() string {
	if e.Line == "" {
		return "the client broke the protocol: " + e.Rule
	}
	return fmt.Sprintf("the client broke the protocol: %s: %s", e.Rule, e.Line)
}

// EndedError says that the client ended before its input did.
type EndedError struct{ Exit string }

func (e *EndedError) Error() string { return "the client ended by itself: " + e.Exit }

// Client is a running client. Its methods may be called concurrently.
type Client struct {
	program  *program
	trace    func(Traced)
	now      func() int64 // ns
	requests chan []byte
	// ending is closed when Close begins. From then on the client may end.
	ending    chan struct{}
	closeOnce func() error
	// failed is closed when the client can no longer be used; why is the reason.
	failed chan struct{}
	why    error
	fail   func(error)
	// Name is the library's name and version as the client states them.
	Name string
	// clock: the client has stated its time, so it may send until.
	clock bool
	left  []string

	mu            sync.Mutex
	last          int64
	open          map[int64]*call
	answered      int64                    // when the last request was answered
	lost          map[string]chan struct{} // by attempt
	ignored       int
	input, output sync.WaitGroup // the goroutines that write to the client and read from it
}

// call is a request that was not answered yet.
type call struct {
	request Request
	sent    int64
	answer  chan Answer
}

// Answer is a client's answer.
type Answer struct {
	Line
	// Sent is when the request was sent, and Received when the answer was read, in ns of CLOCK_MONOTONIC.
	Sent, Received int64
}

// Start starts a client and sends hello. It sets the fields of the request that are not the caller's.
func Start(ctx context.Context, command Command, hello Request) (*Client, error) {
	c, err := Launch(command)
	if err != nil {
		return nil, err
	}
	if err := c.begin(ctx, hello); err != nil {
		c.fail(err) // close then neither waits for the client nor reports another violation
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Launch starts a client without sending hello.
func Launch(command Command) (*Client, error) {
	program, err := command.start()
	if err != nil {
		return nil, err
	}
	c := &Client{
		program: program, trace: command.Trace, now: command.Clock(), requests: make(chan []byte, maxWaiting), ending: make(chan struct{}), failed: make(chan struct{}),
		open: make(map[int64]*call), lost: make(map[string]chan struct{}),
	}
	c.closeOnce = sync.OnceValue(c.end)
	var once sync.Once
	c.fail = func(why error) { once.Do(func() { c.why = why; close(c.failed) }) }
	c.output.Go(c.read)
	c.input.Go(c.write)
	return c, nil
}

// Hello sends hello, and judges only the form of the answer. Its errors are those of Call.
func (c *Client) Hello(ctx context.Context, request Request) (Answer, error) {
	request.Op = Hello
	answer, err := c.Call(ctx, request)
	if err == nil && answer.OK != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Name, c.clock = answer.OK.Client, answer.OK.Now != 0
	}
	return answer, err
}

// begin sends hello, and checks the client's version and its clock against ours.
func (c *Client) begin(ctx context.Context, request Request) error {
	ctx, cancel := context.WithTimeout(ctx, HelloTime)
	defer cancel()
	answer, err := c.Hello(ctx, request)
	switch ok := answer.OK; {
	case errors.Is(err, context.DeadlineExceeded):
		return &ViolationError{Part: Opening, Rule: fmt.Sprintf("it did not answer hello within %s", HelloTime)}
	case err != nil:
		return err
	case answer.Error != nil:
		return fmt.Errorf("the client refused hello: %s", answer.Error.Text)
	case ok.Protocol != Version:
		return &ViolationError{Part: Opening, Rule: fmt.Sprintf("it speaks version %d of the protocol, not %d", ok.Protocol, Version)}
	case ok.Now != 0 && (ok.Now < answer.Sent || ok.Now > answer.Received):
		return &ViolationError{Part: Opening, Rule: fmt.Sprintf(
			"its clock is not CLOCK_MONOTONIC: now was %d, and must be between %d and %d", ok.Now, answer.Sent, answer.Received)}
	default:
		return nil
	}
}

// Call sends a request and waits for its answer until ctx is done. The error is that of ctx, a *ViolationError
// or an *EndedError. With an error, only Sent of the answer is valid.
func (c *Client) Call(ctx context.Context, request Request) (Answer, error) {
	return c.call(ctx, request, nil)
}

// Acquire is Call without a deadline. When ctx is done, it cancels the request with the operation cancel, and
// still waits for the client's answer.
func (c *Client) Acquire(ctx context.Context, request Request) (Answer, error) {
	return c.call(context.WithoutCancel(ctx), request, ctx.Done())
}

func (c *Client) call(ctx context.Context, request Request, cancel <-chan struct{}) (Answer, error) {
	pending, err := c.send(request)
	if err != nil {
		return Answer{}, err
	}
	return c.await(ctx, pending, cancel)
}

// Post sends a request without waiting. Requests are sent in the order of Post. The returned function waits for
// the answer as Call does.
func (c *Client) Post(request Request) (await func(context.Context) (Answer, error), err error) {
	pending, err := c.send(request)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (Answer, error) { return c.await(ctx, pending, nil) }, nil
}

func (c *Client) await(ctx context.Context, pending *call, cancel <-chan struct{}) (Answer, error) {
	for {
		select {
		case answer := <-pending.answer:
			return answer, nil
		case <-cancel:
			cancel = nil
			if _, err := c.send(Request{Op: Cancel, Of: pending.request.ID}); err != nil {
				return Answer{}, err
			}
		case <-ctx.Done():
			return Answer{Sent: pending.sent}, ctx.Err()
		case <-c.failed:
			return Answer{Sent: pending.sent}, c.why
		}
	}
}

// Send sends a request and ignores its answer.
func (c *Client) Send(request Request) error {
	_, err := c.send(request)
	return err
}

// send numbers a request and sends it, unless the client's input has ended.
func (c *Client) send(request Request) (*call, error) {
	select {
	case <-c.ending:
		return nil, errClosed
	default:
	}
	pending := &call{answer: make(chan Answer, 1)}
	c.mu.Lock()
	c.last++
	request.ID = c.last
	pending.request, pending.sent = request, c.now()
	if request.Op != Cancel {
		c.open[request.ID] = pending
	}
	c.mu.Unlock()
	return pending, c.enqueue(request, pending.sent)
}

// Notified returns a channel that is closed when the client reports that the lock of an attempt is lost. The
// caller calls Forget when it no longer needs the channel.
func (c *Client) Notified(attempt string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := make(chan struct{})
	c.lost[attempt] = lost
	return lost
}

// Forget undoes Notified.
func (c *Client) Forget(attempt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lost, attempt)
}

// Failed returns why the client can no longer be used; nil if it can.
func (c *Client) Failed() error {
	select {
	case <-c.failed:
		return c.why
	default:
		return nil
	}
}

// errClosed is the failure of a client that was closed.
var errClosed = errors.New("the client was closed")

// idleSince reports whether at moment the client had answered all requests, and has received none since. A client
// that handles one request at a time does not notice the end of its input before that.
func (c *Client) idleSince(moment int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0 && c.answered <= moment
}

// Close ends the client's input and waits for the client to end. After five seconds it kills the client, or at
// once if the client has failed.
//
// The error is a *ViolationError if the client broke the protocol before, or an *EndedError if the client ended
// before its input. Being killed is no violation if the client had answered its last request less than a second
// before, or not yet.
func (c *Client) Close() error { return c.closeOnce() }

// Left names the processes started by the client that had to be killed. It is valid once Close has returned.
func (c *Client) Left() []string { return c.left }

func (c *Client) end() error {
	close(c.ending)
	err := c.close()
	if failed := c.Failed(); !errors.Is(failed, errClosed) {
		return errors.Join(failed, err)
	}
	return err
}

// close ends the program, and judges what the program wrote until then.
func (c *Client) close() error {
	patience := exitTime
	if c.Failed() != nil {
		patience = 0
	}
	killed := c.now() + patience.Nanoseconds()
	late, left, err := c.program.close(patience)
	c.left = left
	judge := func() {
		if late && c.idleSince(killed-allowedTime.Nanoseconds()) {
			c.violated(Ending, fmt.Sprintf("it did not end within %s of the end of its input", exitTime), nil, 0)
		}
	}
	judge() // first: half a line, caused by the kill, must not count as a malformed line
	c.output.Wait()
	judge() // again: an answer may only have been read by now
	c.fail(errClosed)
	c.input.Wait()
	return errors.Join(err, c.program.Output.Close())
}
