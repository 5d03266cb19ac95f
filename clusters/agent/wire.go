package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"lockcheck/clusters/disk"
	"lockcheck/history"
)

// request and reply are one line each, the two of a call.
type request struct {
	ID     int64 `json:"id"`
	Method string
	Signal Signal        `json:",omitempty"`
	Cut    Cut           `json:",omitzero"`
	Target string        `json:",omitempty"` // address to dial, ID of a cut, folder, or member
	Span   time.Duration `json:",omitempty"` // clock offset or time limit
	Speed  float64       `json:",omitempty"` // of a clock
	Fault  disk.Fault    `json:",omitzero"`
	// Until is the deadline of the call on the monotonic clock, which caller and agent share. A stopped agent
	// may read a request long after it was sent. 0 for no deadline.
	Until int64 `json:",omitempty"`
}

type reply struct {
	ID int64 `json:"id"`
	// Now is the agent's monotonic clock when it replied.
	Now       int64          `json:",omitempty"`
	Error     string         `json:",omitempty"`
	NoAnswer  bool           `json:",omitempty"` // the error is ErrNoAnswer
	Refused   bool           `json:",omitempty"` // the error is ErrRefused
	NoLeader  bool           `json:",omitempty"` // the error is ErrNoLeader
	Yes       bool           `json:",omitempty"`
	NoClock   bool           `json:",omitempty"` // the error is ErrClock
	Moment    Moment         `json:",omitzero"`
	Processes []Process      `json:",omitempty"`
	Dropped   int64          `json:",omitempty"`
	Names     []string       `json:",omitempty"`
	Reading   Reading        `json:",omitzero"`
	Sighting  Sighting       `json:",omitzero"`
	Text      string         `json:",omitempty"`
	Span      time.Duration  `json:",omitempty"`
	NoLoss    bool           `json:",omitempty"` // the error is ErrNoLoss
	Lost      disk.Report    `json:",omitzero"`
	Condition disk.Condition `json:",omitzero"`
}

// ErrOtherClock is the error of every call to an agent whose monotonic clock is not ours. The times in a
// history would come from two clocks.
var ErrOtherClock = errors.New("the engine is on another machine, and its clock is not ours: run lockcheck there")

// callLimit bounds a call whose context has no deadline.
const callLimit = 30 * time.Second

// Serve answers calls from the input until it ends. Questions run concurrently, because a probe that hangs must
// not keep a fault from being healed. Actions run one after another. An action whose caller has given up is not
// performed, because it could undo a later one.
func Serve(ctx context.Context, host Host, input io.Reader, output io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu, actions sync.Mutex
	answers := json.NewEncoder(output)
	lines := bufio.NewScanner(input)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("agent: %q: %w", lines.Text(), err)
		}
		go func() {
			answer := perform(ctx, host, r, &actions)
			mu.Lock()
			defer mu.Unlock()
			// If the reader is gone no caller is left.
			_ = answers.Encode(answer)
		}()
	}
	return lines.Err()
}

// isAction says whether a method is an action. A change of members is none: a server takes seconds to leave its cluster,
// and a fault of another server must not wait for that. If its caller has given up, its context has ended, too.
func isAction(method string) bool {
	switch method {
	case "signal", "cut", "offers", "heal", "set-clock", "set-clock-rate", "wipe", "lose-power", "set-disk", "transfer-leader":
		return true
	}
	return false
}

func perform(ctx context.Context, host Host, r request, actions sync.Locker) (answer reply) {
	if r.Until != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Until-history.Now()))
		defer cancel()
	}
	answer.ID = r.ID
	defer func() { answer.Now = history.Now() }()
	if isAction(r.Method) {
		actions.Lock()
		defer actions.Unlock()
		if ctx.Err() != nil {
			answer.Error = "too late: " + ctx.Err().Error()
			return answer
		}
	}
	var err error
	switch r.Method {
	case "signal":
		answer.Moment, err = host.Signal(ctx, r.Signal)
	case "processes":
		answer.Processes, err = host.Processes(ctx)
	case "cut":
		answer.Moment, err = host.Cut(ctx, r.Cut)
	case "offers":
		err = host.Offers(ctx, r.Cut)
	case "await-held":
		answer.Sighting, answer.Yes, err = host.AwaitHeld(ctx, r.Target)
	case "heal":
		answer.Moment, answer.Dropped, err = host.Heal(ctx, r.Target)
	case "dropped":
		answer.Dropped, err = host.Dropped(ctx, r.Target)
	case "cuts":
		answer.Names, err = host.Cuts(ctx)
	case "names":
		answer.Names, err = host.Names(ctx)
	case "ask-dns":
		err = host.AskDNS(ctx, r.Target, r.Span)
	case "dial":
		err = host.Dial(ctx, r.Target, r.Span)
	case "answer":
		answer.Span, err = host.Answer(ctx, r.Target, r.Span)
	case "set-clock":
		answer.Moment, err = host.SetClock(ctx, r.Span)
	case "set-clock-rate":
		answer.Moment, err = host.SetClockRate(ctx, r.Speed)
	case "clock":
		answer.Reading, err = host.Clock(ctx)
	case "wipe":
		answer.Moment, err = host.Wipe(ctx, r.Target)
	case "files":
		answer.Names, err = host.Files(ctx, r.Target)
	case "lose-power":
		answer.Moment, err = host.LosePower(ctx)
	case "set-disk":
		answer.Moment, err = host.SetDisk(ctx, r.Fault)
	case "check-disk":
		answer.Condition, err = host.CheckDisk(ctx)
	case "sync-disk":
		err = host.SyncDisk(ctx)
	case "lost":
		answer.Lost, err = host.Lost(ctx)
	case "ready":
		err = host.Ready(ctx)
	case "version":
		answer.Text, err = host.Version(ctx)
	case "leads":
		answer.Yes, err = host.Leads(ctx)
	case "transfer-leader":
		answer.Moment, err = host.TransferLeader(ctx)
	case "members":
		answer.Names, err = host.Members(ctx)
	case "remove-member":
		err = host.RemoveMember(ctx, r.Target)
	case "add-member":
		err = host.AddMember(ctx, r.Target)
	default:
		err = fmt.Errorf("unknown method %q", r.Method)
	}
	if err != nil {
		answer.Error = err.Error()
		answer.NoAnswer, answer.NoLeader = errors.Is(err, ErrNoAnswer), errors.Is(err, ErrNoLeader)
		answer.Refused, answer.NoClock = errors.Is(err, ErrRefused), errors.Is(err, ErrClock)
		answer.NoLoss = errors.Is(err, ErrNoLoss)
	}
	return answer
}

// Remote is the Host behind an agent process.
type Remote struct {
	// lines go to the agent through one goroutine, so that a caller can give up on an agent that reads nothing.
	lines chan message
	gone  chan struct{} // closed when err is set

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan reply
	err     error // why no more answers will come
}

// message is an encoded request.
type message struct {
	id   int64
	text []byte
}

var _ Host = (*Remote)(nil)

// errGone is the error of calls after the agent's output has ended.
var errGone = errors.New("the agent is gone")

// Connect talks to the agent behind two streams. When the agent's output has ended, lastWords returns what the
// agent wrote on its standard error; it may block until that is known.
func Connect(input io.Writer, output io.Reader, lastWords func() string) *Remote {
	r := &Remote{lines: make(chan message), gone: make(chan struct{}), waiting: make(map[int64]chan reply)}
	go r.transmit(input)
	go r.receive(output, lastWords)
	return r
}

func (r *Remote) transmit(input io.Writer) {
	for {
		select {
		case l := <-r.lines:
			if _, err := input.Write(l.text); err != nil {
				r.deliver(reply{ID: l.id, Error: "agent: " + err.Error()})
			}
		case <-r.gone:
			return
		}
	}
}

func (r *Remote) receive(output io.Reader, lastWords func() string) {
	answers := json.NewDecoder(output)
	for {
		var answer reply
		err := answers.Decode(&answer)
		var garbled *json.SyntaxError
		switch {
		case err == nil:
			r.deliver(answer)
			continue
		case errors.As(err, &garbled): // the agent may still run, so its last words are not awaited
			r.close(fmt.Errorf("%w: %w", errGone, err))
		default:
			r.close(goneWith(lastWords()))
		}
		return
	}
}

// goneWith is errGone with what the agent wrote on its standard error.
func goneWith(words string) error {
	if words = strings.TrimSpace(words); words == "" {
		return errGone
	}
	return fmt.Errorf("%w: %s", errGone, words)
}

func (r *Remote) deliver(answer reply) {
	if waiter := r.forget(answer.ID); waiter != nil {
		waiter <- answer
	}
}

// forget removes a call from the waiting ones and returns its channel.
func (r *Remote) forget(id int64) chan<- reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiter := r.waiting[id]
	delete(r.waiting, id)
	return waiter
}

func (r *Remote) close(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = cause
	close(r.gone)
	for id, waiter := range r.waiting {
		delete(r.waiting, id)
		waiter <- reply{Error: cause.Error()}
	}
}

func (r *Remote) call(ctx context.Context, call request) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if deadline, set := ctx.Deadline(); set {
		call.Until = history.Now() + time.Until(deadline).Nanoseconds()
	}
	asked := history.Now()
	waiter, err := r.send(ctx, call)
	if err != nil {
		return reply{}, err
	}
	select {
	case answer := <-waiter:
		switch {
		case answer.Now != 0 && (answer.Now < asked || answer.Now > history.Now()):
			return answer, ErrOtherClock
		case answer.NoAnswer:
			return answer, fmt.Errorf("%s: %w", call.Target, ErrNoAnswer)
		case answer.Refused:
			return answer, fmt.Errorf("%s: %w", call.Target, ErrRefused)
		case answer.NoLeader:
			return answer, ErrNoLeader
		case answer.NoClock:
			return answer, clockError(answer.Error)
		case answer.NoLoss:
			return answer, ErrNoLoss
		case answer.Error != "":
			return answer, errors.New(answer.Error)
		}
		return answer, nil
	case <-ctx.Done():
		return reply{}, fmt.Errorf("agent: %s: %w", call.Method, ctx.Err())
	}
}

// clockError is an ErrClock with the agent's own text.
type clockError string

func (e clockError) Error() string        { return string(e) }
func (e clockError) Is(target error) bool { return target == ErrClock }

// send hands a request to the writer, and returns the channel for its reply.
func (r *Remote) send(ctx context.Context, call request) (<-chan reply, error) {
	waiter, err := r.registerCall(&call)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(call)
	if err != nil {
		r.forget(call.ID)
		return nil, err
	}
	select {
	case r.lines <- message{call.ID, append(text, '\n')}:
	case <-r.gone: // close has answered every waiting call
	case <-ctx.Done():
		r.forget(call.ID)
		return nil, fmt.Errorf("agent: %s: %w", call.Method, ctx.Err())
	}
	return waiter, nil
}

// registerCall numbers the request and registers a channel for its reply.
func (r *Remote) registerCall(call *request) (<-chan reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	r.last++
	call.ID = r.last
	waiter := make(chan reply, 1)
	r.waiting[call.ID] = waiter
	return waiter, nil
}

// Signal implements Host.
func (r *Remote) Signal(ctx context.Context, signal Signal) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "signal", Signal: signal})
	return answer.Moment, err
}

// Processes implements Host.
func (r *Remote) Processes(ctx context.Context) ([]Process, error) {
	answer, err := r.call(ctx, request{Method: "processes"})
	return answer.Processes, err
}

// Cut implements Host.
func (r *Remote) Cut(ctx context.Context, cut Cut) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "cut", Cut: cut})
	return answer.Moment, err
}

// Offers implements Host.
func (r *Remote) Offers(ctx context.Context, cut Cut) error {
	_, err := r.call(ctx, request{Method: "offers", Cut: cut})
	return err
}

// AwaitHeld implements Host.
func (r *Remote) AwaitHeld(ctx context.Context, id string) (Sighting, bool, error) {
	answer, err := r.call(ctx, request{Method: "await-held", Target: id})
	return answer.Sighting, answer.Yes, err
}

// Heal implements Host.
func (r *Remote) Heal(ctx context.Context, id string) (Moment, int64, error) {
	answer, err := r.call(ctx, request{Method: "heal", Target: id})
	return answer.Moment, answer.Dropped, err
}

// Dropped implements Host.
func (r *Remote) Dropped(ctx context.Context, id string) (int64, error) {
	answer, err := r.call(ctx, request{Method: "dropped", Target: id})
	return answer.Dropped, err
}

// Cuts implements Host.
func (r *Remote) Cuts(ctx context.Context) ([]string, error) {
	answer, err := r.call(ctx, request{Method: "cuts"})
	return answer.Names, err
}

// Names implements Host.
func (r *Remote) Names(ctx context.Context) ([]string, error) {
	answer, err := r.call(ctx, request{Method: "names"})
	return answer.Names, err
}

// AskDNS implements Host.
func (r *Remote) AskDNS(ctx context.Context, name string, timeout time.Duration) error {
	_, err := r.call(ctx, request{Method: "ask-dns", Target: name, Span: timeout})
	return err
}

// Dial implements Host.
func (r *Remote) Dial(ctx context.Context, address string, timeout time.Duration) error {
	_, err := r.call(ctx, request{Method: "dial", Target: address, Span: timeout})
	return err
}

// Answer implements Host.
func (r *Remote) Answer(ctx context.Context, address string, timeout time.Duration) (time.Duration, error) {
	answer, err := r.call(ctx, request{Method: "answer", Target: address, Span: timeout})
	return answer.Span, err
}

// SetClock implements Host.
func (r *Remote) SetClock(ctx context.Context, offset time.Duration) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "set-clock", Span: offset})
	return answer.Moment, err
}

// SetClockRate implements Host.
func (r *Remote) SetClockRate(ctx context.Context, speed float64) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "set-clock-rate", Speed: speed})
	return answer.Moment, err
}

// Clock implements Host.
func (r *Remote) Clock(ctx context.Context) (Reading, error) {
	answer, err := r.call(ctx, request{Method: "clock"})
	return answer.Reading, err
}

// Wipe implements Host.
func (r *Remote) Wipe(ctx context.Context, folder string) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "wipe", Target: folder})
	return answer.Moment, err
}

// Files implements Host.
func (r *Remote) Files(ctx context.Context, folder string) ([]string, error) {
	answer, err := r.call(ctx, request{Method: "files", Target: folder})
	return answer.Names, err
}

// LosePower implements Host.
func (r *Remote) LosePower(ctx context.Context) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "lose-power"})
	return answer.Moment, err
}

// SetDisk implements Host.
func (r *Remote) SetDisk(ctx context.Context, fault disk.Fault) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "set-disk", Fault: fault})
	return answer.Moment, err
}

// CheckDisk implements Host.
func (r *Remote) CheckDisk(ctx context.Context) (disk.Condition, error) {
	answer, err := r.call(ctx, request{Method: "check-disk"})
	return answer.Condition, err
}

// SyncDisk implements Host.
func (r *Remote) SyncDisk(ctx context.Context) error {
	_, err := r.call(ctx, request{Method: "sync-disk"})
	return err
}

// Lost implements Host.
func (r *Remote) Lost(ctx context.Context) (disk.Report, error) {
	answer, err := r.call(ctx, request{Method: "lost"})
	return answer.Lost, err
}

// Ready implements Host.
func (r *Remote) Ready(ctx context.Context) error {
	_, err := r.call(ctx, request{Method: "ready"})
	return err
}

// Version implements Host.
func (r *Remote) Version(ctx context.Context) (string, error) {
	answer, err := r.call(ctx, request{Method: "version"})
	return answer.Text, err
}

// Leads implements Host.
func (r *Remote) Leads(ctx context.Context) (bool, error) {
	answer, err := r.call(ctx, request{Method: "leads"})
	return answer.Yes, err
}

// TransferLeader implements Host.
func (r *Remote) TransferLeader(ctx context.Context) (Moment, error) {
	answer, err := r.call(ctx, request{Method: "transfer-leader"})
	return answer.Moment, err
}

// Members implements Host.
func (r *Remote) Members(ctx context.Context) ([]string, error) {
	answer, err := r.call(ctx, request{Method: "members"})
	return answer.Names, err
}

// RemoveMember implements Host.
func (r *Remote) RemoveMember(ctx context.Context, member string) error {
	_, err := r.call(ctx, request{Method: "remove-member", Target: member})
	return err
}

// AddMember implements Host.
func (r *Remote) AddMember(ctx context.Context, member string) error {
	_, err := r.call(ctx, request{Method: "add-member", Target: member})
	return err
}
