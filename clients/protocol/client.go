package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds on what a client may do before it is regarded as broken.
const (
	// maxLine is the longest line of its output, in bytes.
	maxLine = 1 << 20
	// maxIgnored is how many lines it may write that answer nothing and say nothing of a
	// lock that it holds.
	maxIgnored = 10_000
	// maxWaiting is how many requests may wait for it to read its input.
	maxWaiting = 1000
	// HelloTime is how long it may take to begin.
	HelloTime = 30 * time.Second
)

// Part is what of the protocol a client broke.
type Part string

// The parts.
const (
	Opening Part = "opening" // hello
	Lines   Part = "lines"   // their form and length
	Answers Part = "answers" // one to each request, of a kind that it has
	Clock   Part = "clock"   // until without now
	Until   Part = "until"   // it cannot be the end of a validity
	Events  Part = "events"  // too many of them
	Input   Part = "input"   // it is not read
	Ending  Part = "ending"  // too late, or output that ends before the input
)

// ViolationError says that the client broke the protocol.
type ViolationError struct {
	Part Part
	Rule string // that it broke, in words
	Line string // what it wrote, shortened; "" if that is not a line
	// At is when the line was read, in ns of CLOCK_MONOTONIC; 0 if that is not a line.
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

// Client is a running client. Its methods may be called side by side.
type Client struct {
	program  *program
	trace    func(Traced)
	now      func() int64 // ns
	requests chan []byte
	// ending is closed when the client is being closed: it may end now.
	ending    chan struct{}
	closeOnce func() error
	// failed is closed when the client can do nothing more; why says why.
	failed chan struct{}
	why    error
	fail   func(error)
	// Name and version of the library, as it says.
	Name string
	// clock: it told its time, and may name the end of a validity.
	clock bool
	left  []string

	mu            sync.Mutex
	last          int64
	open          map[int64]*call
	answered      int64                    // when the last of these was
	lost          map[string]chan struct{} // by attempt
	ignored       int
	input, output sync.WaitGroup // those who write and read them
}

// call is a request that was not answered yet.
type call struct {
	request Request
	sent    int64
	answer  chan Answer
}

// Answer of a client.
type Answer struct {
	Line
	// Sent and Received are when the request was sent and the answer was read, in ns of
	// CLOCK_MONOTONIC.
	Sent, Received int64
}

// Start starts a client and says hello. The fields of the request that are not the caller's
// are filled in.
func Start(ctx context.Context, command Command, hello Request) (*Client, error) {
	c, err := Launch(command)
	if err != nil {
		return nil, err
	}
	if err := c.begin(ctx, hello); err != nil {
		c.fail(err) // it is not waited for, and accused of nothing more
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// Launch starts a client to which Hello is still to be said.
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

// Hello says hello, and judges nothing but the form of the answer. Its errors are those of
// Call.
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

// begin says hello, and holds the clock of the client against ours.
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

// Call sends a request and waits for its answer until ctx is done. Its error is that of ctx,
// a *ViolationError or an *EndedError; the answer then says only when the request was sent.
func (c *Client) Call(ctx context.Context, request Request) (Answer, error) {
	return c.call(ctx, request, nil)
}

// Acquire is Call without an end, for a request that is taken back once ctx is done: the
// client still has to answer it.
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

// Post sends a request, after those posted before it, and returns what waits for its answer
// as Call does.
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

// Send sends a request whose answer, if it has one, nobody waits for.
func (c *Client) Send(request Request) error {
	_, err := c.send(request)
	return err
}

// send numbers a request and sends it, unless the input of the client has ended.
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

// Notified returns the channel that is closed when the client says that the lock of an
// attempt is lost. The caller says Forget when it is done with the attempt.
func (c *Client) Notified(attempt string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := make(chan struct{})
	c.lost[attempt] = lost
	return lost
}

// Forget ends what Notified began.
func (c *Client) Forget(attempt string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lost, attempt)
}

// Failed says why the client can do nothing more; nil if it can.
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

// idleAt says whether the client had answered everything before a moment, and was asked nothing
// since. One that does one thing at a time does not see the end of its input before that.
func (c *Client) idleAt(moment int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) == 0 && c.answered <= moment
}

// Close ends the input of the client and waits for it to end. One that has not after five
// seconds is killed, at once if it had failed. Its error is a *ViolationError if the client
// broke the protocol until then, or an *EndedError if it ended before its input did. To be
// killed is no violation of one that gave its last answer less than a second before, or none.
func (c *Client) Close() error { return c.closeOnce() }

// Left names the processes that the client had started and that had to be killed, once Close
// has returned.
func (c *Client) Left() []string { return c.left }

func (c *Client) end() error {
	close(c.ending)
	err := c.close()
	if failed := c.Failed(); !errors.Is(failed, errClosed) {
		return errors.Join(failed, err)
	}
	return err
}

// close ends the program, and judges what it wrote until then.
func (c *Client) close() error {
	patience := exitTime
	if c.Failed() != nil {
		patience = 0
	}
	killed := c.now() + patience.Nanoseconds()
	late, left, err := c.program.close(patience)
	c.left = left
	judge := func() {
		if late && c.idleAt(killed-allowedTime.Nanoseconds()) {
			c.violated(Ending, fmt.Sprintf("it did not end within %s of the end of its input", exitTime), nil, 0)
		}
	}
	judge() // before half a line, which it was killed in, is taken for a wrong one
	c.output.Wait()
	judge() // an answer that was not read before
	c.fail(errClosed)
	c.input.Wait()
	return errors.Join(err, c.program.Output.Close())
}
