// Package agent acts on the place where a server or worker runs. It stops and
// continues its processes, cuts its network, moves its wall clock, and reads
// back from the target what is in force. On Docker it is a process of its own
// that owns the network and process namespaces of the node, driven by lines of
// JSON on its standard input; embedded it is a plain function call.
package agent

import (
	"context"
	"errors"
	"time"
)

// ErrNoAnswer is what Dial returns when nothing comes back at all: what a cut
// does, and neither a refusal nor a failure of the agent.
var ErrNoAnswer = errors.New("no answer")

// ErrRefused is what Dial returns when nobody listens at an address that can be
// reached.
var ErrRefused = errors.New("refused")

// ErrNoLeader is what Leads returns for servers none of which leads.
var ErrNoLeader = errors.New("none of these servers leads the others")

// Host is a place on which faults can be inflicted.
type Host interface {
	// Signal sends a signal to every process of the node, other than the agent.
	Signal(ctx context.Context, signal Signal) (Moment, error)
	// Processes returns the processes of the node as /proc shows them.
	Processes(ctx context.Context) ([]Process, error)

	// Cut drops, delays or slows down packets from and to the peers, in addition to
	// other cuts. What a cut holds back is lost when another one is healed.
	Cut(ctx context.Context, cut Cut) (Moment, error)
	// Offers says why the kernel has not what a cut needs, whatever its id and
	// peers; nil if it has.
	Offers(ctx context.Context, cut Cut) error
	// Heal removes a cut and returns what Dropped would. Packets that it has held
	// back go on.
	Heal(ctx context.Context, id string) (Moment, int64, error)
	// Dropped returns how many packets a cut has dropped or held back so far.
	Dropped(ctx context.Context, id string) (int64, error)
	// Cuts lists the ids of the cuts that the kernel has.
	Cuts(ctx context.Context) ([]string, error)
	// Dial reports whether a TCP connection to the address can be made. Its error
	// is ErrNoAnswer if nothing came back within the timeout, ErrRefused if nobody
	// listens there.
	Dial(ctx context.Context, address string, timeout time.Duration) error

	// Answer returns how long it takes until the address answers an attempt to make
	// a TCP connection, be it with a refusal. Its error is ErrNoAnswer if nothing
	// came back within the timeout.
	Answer(ctx context.Context, address string, timeout time.Duration) (time.Duration, error)

	// SetClock moves the wall clock of the server to an offset from true time.
	SetClock(ctx context.Context, offset time.Duration) (Moment, error)
	// SetClockRate lets the wall clock of the server, which must tell true time, run at a
	// speed, in seconds a second; 1 moves it back to true time.
	SetClockRate(ctx context.Context, speed float64) (Moment, error)
	// Clock asks the server for its wall clock, through its own protocol.
	Clock(ctx context.Context) (Reading, error)

	// Wipe makes a folder of the node, or empties it.
	Wipe(ctx context.Context, folder string) (Moment, error)
	// Files lists what is in a folder of the node.
	Files(ctx context.Context, folder string) ([]string, error)

	// Ready asks the server whether it can serve. No answer within some seconds is an
	// error, too.
	Ready(ctx context.Context) error
	// Version asks the server for its version.
	Version(ctx context.Context) (string, error)
	// Leads asks the server whether it leads the others. The error is ErrNoLeader
	// for servers of which none does.
	Leads(ctx context.Context) (bool, error)
}

// Signal is a signal that an agent knows how to send and to verify.
type Signal string

const (
	Stop     Signal = "stop"     // SIGSTOP
	Continue Signal = "continue" // SIGCONT
	Kill     Signal = "kill"     // SIGKILL
)

// Moment brackets an action: it took effect between From and To, in ns of
// CLOCK_MONOTONIC.
type Moment struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Process is one process of a node.
type Process struct {
	PID     int    `json:"pid"` // in the node's own namespace
	Command string `json:"command"`
	// Stopped: each of its threads is in state T.
	Stopped bool `json:"stopped"`
	// Frozen: each of its threads is in state D, or where the freezer of control groups
	// of version 2 keeps it.
	Frozen bool `json:"frozen"`
	// States of its threads, one letter each, as in /proc/PID/task/TID/stat.
	States string `json:"states"`
}

// Cut says what happens to packets between the node and its peers. All of them
// are dropped, unless it says something else.
type Cut struct {
	ID    string   `json:"id"`    // unique in a run
	Peers []string `json:"peers"` // IPv4 addresses
	// InboundOnly drops only what comes from the peers: they still hear the node.
	InboundOnly bool `json:"inbound_only,omitempty"`
	// Loss is the share of them to drop, between 0 and 1.
	Loss float64 `json:"loss,omitempty"`
	// Delay holds each of them back for some time, Jitter more or less; they keep
	// their order. Jitter is less than Delay.
	Delay  time.Duration `json:"delay,omitempty"`
	Jitter time.Duration `json:"jitter,omitempty"`
	// Rate is how many bytes a second go on in each direction; 0 for no limit.
	Rate int64 `json:"rate,omitempty"`
}

// Reading is one look at the wall clock of a server.
type Reading struct {
	Server time.Time `json:"server"`
	// Before and After are the true time around the question.
	Before time.Time `json:"before"`
	After  time.Time `json:"after"`
	// Asked is the question on the monotonic clock.
	Asked Moment `json:"asked"`
}

// Offset returns how far the server's clock is ahead of true time, at least
// and at most.
func (r Reading) Offset() (low, high time.Duration) {
	return r.Server.Sub(r.After), r.Server.Sub(r.Before)
}

// Probes asks a kind of server about itself.
type Probes interface {
	Ready(ctx context.Context, address string) error
	Clock(ctx context.Context, address string) (time.Time, error)
	Version(ctx context.Context, address string) (string, error)
}

// LeaderProbe is what Probes can do where one of the servers leads the others.
type LeaderProbe interface {
	Leads(ctx context.Context, address string) (bool, error)
}
