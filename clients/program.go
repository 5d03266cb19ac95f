package clients

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockcheck/clients/protocol"
)

// Definition describes a user's own lock: a program that implements package protocol, and the lock's
// properties.
type Definition struct {
	Name string `json:"name"`
	// Program is the command that each worker starts or, with Wraps, that each attempt starts.
	Program protocol.Command `json:"program"`
	// TTL is the lease; 0 for a lock that never ends by itself. Grace is how much longer the lock may take to
	// become free.
	TTL   time.Duration `json:"ttl_ns,omitempty"`
	Grace time.Duration `json:"grace_ns,omitempty"`
	// The lock's capabilities, as in Info.
	Session bool `json:"session,omitempty"`
	Queues  bool `json:"queues,omitempty"`
	Renew   bool `json:"renew,omitempty"`
	Ask     bool `json:"ask,omitempty"`
	Tokens  bool `json:"tokens,omitempty"`
	Shared  bool `json:"shared,omitempty"`
	// Works: the client itself spends the time of the critical section.
	Works bool `json:"works,omitempty"`
	// Wraps: the program does not speak the protocol, but runs a child under the lock. BusyStatus is its exit
	// status when another client holds the lock; 0: it has no such status.
	Wraps      bool `json:"wraps,omitempty"`
	BusyStatus int  `json:"busy_status,omitempty"`
}

// Info describes the lock as Table describes lockcheck's own locks. The caller sets Servers.
func (d Definition) Info() Info {
	info := Info{
		Name: d.Name, Summary: "a lock of your own",
		TTL: d.TTL, MinTTL: min(d.TTL, time.Millisecond), Grace: d.Grace,
		Session: d.Session, Queues: d.Queues, Renew: d.Renew, Ask: d.Ask, Shared: d.Shared,
		LossNotification: "when the client says lost, or a renewal fails", Clock: "not known", WallClocks: true,
		Options: []Option{watchdog()},
		Open:    d.open,
	}
	if d.Tokens {
		info.Token = "of the client"
	}
	if d.Wraps {
		info.Summary = "a command that runs its child under the lock: " + strings.Join(d.Program.Args, " ")
		info.LossNotification = "when the command sends its child SIGTERM, or ends it"
		info.Open = d.openWrapped
		if strings.Contains(strings.Join(slices.Concat(d.Program.Args, d.Program.Env), " "), "{ttl}") {
			info.MinTTL, info.TTLStep = time.Second, time.Second
		}
	}
	return info
}

// Find returns the lock that the definition describes, with the options in the name. If the definition is nil,
// it returns lockcheck's lock of that name. The result is false if there is no such lock or option.
func Find(name string, definition *Definition) (Info, bool) {
	if definition == nil {
		return ByName(name)
	}
	_, options, _ := strings.Cut(name, optionSign)
	return definition.Info().With(options)
}

// program is one worker's client of a user's own lock.
type program struct {
	Definition
	client *protocol.Client

	mu sync.Mutex
	// asked has the attempts whose acquire has not been answered. The value is false if the attempt was
	// released in the meantime.
	asked map[string]bool
}

func (d Definition) open(c Config) (Lock, error) {
	command := d.Program
	if command.Log == nil {
		command.Log = os.Stderr
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-c.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	client, err := protocol.Start(ctx, command, protocol.Request{
		Worker: c.Worker, Servers: Servers(c.Nodes), Folder: c.Folder, TTLMS: c.TTL.Milliseconds(), TimeoutMS: c.Timeout.Milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	return &program{Definition: d, client: client, asked: make(map[string]bool)}, nil
}

// Servers describes servers to a client by their addresses: host:port, or the path of a socket.
func Servers(addresses []string) []protocol.Server {
	servers := make([]protocol.Server, len(addresses))
	for i, address := range addresses {
		servers[i].Name = "n" + strconv.Itoa(i+1)
		host, port, err := net.SplitHostPort(address)
		if err != nil || filepath.IsAbs(address) {
			servers[i].Socket = address
			continue
		}
		servers[i].Host = host
		servers[i].Port, _ = strconv.Atoi(port) // lockcheck's own addresses have numeric ports
	}
	return servers
}

func (p *program) Acquire(ctx context.Context, a Attempt) (Grant, error) {
	p.begin(a.ID)
	lost := p.client.Notified(a.ID)
	request := protocol.Request{Op: protocol.Acquire, Key: a.Key, Attempt: a.ID, TTLMS: a.TTL.Milliseconds(), Shared: a.Shared}
	if deadline, limited := ctx.Deadline(); limited && p.Queues {
		request.WaitMS = max(0, time.Until(deadline).Milliseconds())
	}
	answer, err := p.client.Acquire(ctx, request)
	wanted := p.end(a.ID)
	switch {
	case err != nil:
		return Grant{}, err
	case answer.OK == nil:
		p.client.Forget(a.ID)
		return Grant{}, failure(answer)
	case !wanted:
		return Grant{}, p.takeBack(a)
	}
	return Grant{Key: a.Key, ID: a.ID, Token: answer.OK.Token, Until: p.until(answer, a.TTL), Lost: lost}, nil
}

// errTakenBack is the outcome of a grant that arrived after its attempt was abandoned.
var errTakenBack = errors.New("it was granted after the attempt was given up")

// takeBack releases a grant that arrived after its attempt was abandoned.
func (p *program) takeBack(a Attempt) error {
	p.client.Forget(a.ID)
	return errors.Join(errTakenBack, p.client.Send(protocol.Request{Op: protocol.Release, Key: a.Key, Attempt: a.ID}))
}

// until returns the end of the validity: the client's value, or else the lease counted from the request. With a
// session it is 0 whatever the client says: the client extends the session without reporting a new end.
func (p *program) until(answer protocol.Answer, ttl time.Duration) int64 {
	switch {
	case p.Session:
		return 0
	case answer.OK.Until != 0:
		return answer.OK.Until
	case ttl == 0:
		return 0
	default:
		return answer.Sent + ttl.Nanoseconds()
	}
}

func (p *program) Renew(ctx context.Context, g Grant, ttl time.Duration) (int64, error) {
	answer, err := p.ask(ctx, protocol.Renew, g, ttl)
	if err != nil {
		return 0, err
	}
	return p.until(answer, ttl), nil
}

func (p *program) Release(ctx context.Context, g Grant) error {
	p.giveUp(g.ID)
	p.client.Forget(g.ID)
	_, err := p.ask(ctx, protocol.Release, g, 0)
	return err
}

// Holds implements Asker.
func (p *program) Holds(ctx context.Context, g Grant) (bool, error) {
	answer, err := p.ask(ctx, protocol.Holds, g, 0)
	if err != nil {
		return false, err
	}
	return *answer.OK.Holds, nil
}

// Work implements Worker.
func (p *program) Work(ctx context.Context, g Grant, d time.Duration) error {
	_, err := p.client.Call(context.WithoutCancel(ctx), protocol.Request{Op: protocol.Work, Attempt: g.ID, Key: g.Key, MS: d.Milliseconds()})
	return err
}

// Failed implements Failing.
func (p *program) Failed() error { return p.client.Failed() }

// Stop implements Outside.
func (p *program) Stop() error { return p.client.Stop() }

// ClientName implements Named.
func (p *program) ClientName() string { return p.client.Name }

func (p *program) Close() error { return p.client.Close() }

// ask makes a call about a grant. It waits for as long as the client takes, as programs do.
func (p *program) ask(ctx context.Context, op protocol.Op, g Grant, ttl time.Duration) (protocol.Answer, error) {
	answer, err := p.client.Call(context.WithoutCancel(ctx), protocol.Request{
		Op: op, Key: g.Key, Attempt: g.ID, Token: g.Token, TTLMS: ttl.Milliseconds(),
	})
	if err != nil {
		return answer, err
	}
	return answer, failure(answer)
}

// failure returns the error that an answer reports; nil for ok.
func failure(a protocol.Answer) error {
	switch {
	case a.Busy != nil:
		return &BusyError{Holder: a.Busy.Holder}
	case a.NotHeld != nil:
		return ErrNotHeld
	case a.Error == nil:
		return nil
	case a.Error.Effect == protocol.NoEffect:
		return &NoEffectError{Err: errors.New(a.Error.Text)}
	default:
		return errors.New(a.Error.Text)
	}
}

func (p *program) begin(attempt string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[attempt] = true
}

// giveUp records that the attempt is abandoned, unless it has been answered.
func (p *program) giveUp(attempt string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, open := p.asked[attempt]; open {
		p.asked[attempt] = false
	}
}

func (p *program) end(attempt string) (wanted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted = p.asked[attempt]
	delete(p.asked, attempt)
	return wanted
}
