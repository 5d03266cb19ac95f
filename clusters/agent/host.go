// Package agent acts on a node, the place where a server or worker runs. It stops and continues processes, cuts
// the network, moves the wall clock, and reads back what is in force. On Docker the agent is a process of its
// own that owns the node's network and process namespaces. It is driven by lines of JSON on its standard input.
// For embedded servers it is a plain function call.
package agent

import (
	"context"
	"errors"
	"time"

	"lockcheck/clusters/disk"
)

// ErrNoAnswer is the error of Dial when nothing comes back at all. That is the effect of a cut; a refusal or a
// failed agent gives another error.
var ErrNoAnswer = errors.New("no answer")

// ErrRefused is the error of Dial when the address can be reached and nothing listens there.
var ErrRefused = errors.New("refused")

// ErrNoLeader is the error of Leads for servers that have no leader.
var ErrNoLeader = errors.New("none of these servers leads the others")

// ErrNoLoss is the error of Lost while it is not known what the disk has forgotten.
var ErrNoLoss = errors.New("the disk has not said what it forgot")

// Host is a node on which faults can be inflicted.
type Host interface {
	// Signal sends a signal to every process of the node except the agent.
	Signal(ctx context.Context, signal Signal) (Moment, error)
	// Processes returns the processes of the node as /proc shows them.
	Processes(ctx context.Context) ([]Process, error)

	// Cut drops, delays or slows down packets from and to the peers, in addition to other cuts. Packets that a
	// cut holds back are lost when another cut is healed.
	Cut(ctx context.Context, cut Cut) (Moment, error)
	// Offers returns why the kernel lacks what a cut needs; nil if it lacks nothing. The cut's ID and peers do
	// not matter.
	Offers(ctx context.Context, cut Cut) error
	// AwaitHeld waits until a cut holds a message back. It reports false if none came in some seconds.
	AwaitHeld(ctx context.Context, id string) (Sighting, bool, error)
	// Heal removes a cut, releases the packets that it has held back, and returns the count of Dropped.
	Heal(ctx context.Context, id string) (Moment, int64, error)
	// Dropped returns how many packets a cut has dropped or held back so far.
	Dropped(ctx context.Context, id string) (int64, error)
	// Cuts lists the IDs of the cuts in force, as the kernel shows them.
	Cuts(ctx context.Context) ([]string, error)
	// Names lists the names that the node resolves without asking a server, each line an address and its names.
	Names(ctx context.Context) ([]string, error)
	// AskDNS asks the first name server of the node one question about a name. The error is ErrNoAnswer if nothing came
	// back within the timeout; it is nil for any answer, also if there is no such name.
	AskDNS(ctx context.Context, name string, timeout time.Duration) error
	// Dial reports whether a TCP connection to the address can be made. The error is ErrNoAnswer if nothing
	// came back within the timeout, ErrRefused if nothing listens there.
	Dial(ctx context.Context, address string, timeout time.Duration) error

	// Answer returns how long the address takes to answer an attempt to connect by TCP; a refusal is an answer
	// too. The error is ErrNoAnswer if nothing came back within the timeout.
	Answer(ctx context.Context, address string, timeout time.Duration) (time.Duration, error)

	// SetClock moves the wall clock of the server to an offset from true time.
	SetClock(ctx context.Context, offset time.Duration) (Moment, error)
	// SetClockRate lets the server's wall clock run at a speed in seconds a second. The clock must show true
	// time before. 1 moves it back to true time.
	SetClockRate(ctx context.Context, speed float64) (Moment, error)
	// Clock asks the server for its wall clock through its own protocol.
	Clock(ctx context.Context) (Reading, error)

	// Wipe empties a folder of the node, or creates it.
	Wipe(ctx context.Context, folder string) (Moment, error)
	// Files lists the names in a folder of the node.
	Files(ctx context.Context, folder string) ([]string, error)

	// LosePower ends all processes of the node as Signal does with Kill, and its disk forgets what is not durable.
	LosePower(ctx context.Context) (Moment, error)
	// SyncDisk makes durable what the server has written so far. It does nothing if the server is on another disk.
	SyncDisk(ctx context.Context) error
	// Lost returns what the disk forgot when the power was last lost. The error is ErrNoLoss until that is known.
	Lost(ctx context.Context) (disk.Report, error)
	// SetDisk puts a fault of the server's disk in force; the zero value ends it.
	SetDisk(ctx context.Context, fault disk.Fault) (Moment, error)
	// CheckDisk probes the server's disk, and returns what its latest fault met.
	CheckDisk(ctx context.Context) (disk.Condition, error)

	// Ready asks the server whether it can serve. It is an error, too, if the server does not answer within
	// some seconds.
	Ready(ctx context.Context) error
	// Version asks the server for its version.
	Version(ctx context.Context) (string, error)
	// Leads asks the server whether it is the leader. The error is ErrNoLeader for servers that have no leader.
	Leads(ctx context.Context) (bool, error)
	// TransferLeader asks the server to hand its leadership over to another one. The new leader may begin to lead
	// only after that.
	TransferLeader(ctx context.Context) (Moment, error)
	// Members asks the server for the members of its cluster, by IP address. The error is ErrNoMembers for servers
	// whose members never change.
	Members(ctx context.Context) ([]string, error)
	// RemoveMember asks the server to remove another member, which may end by itself then. AddMember asks it to add one,
	// before that one is started. Neither does anything if that is done already.
	RemoveMember(ctx context.Context, member string) error
	AddMember(ctx context.Context, member string) error
}

// Signal is a signal that an agent can send and verify.
type Signal string

const (
	Stop     Signal = "stop"     // SIGSTOP
	Continue Signal = "continue" // SIGCONT
	Kill     Signal = "kill"     // SIGKILL
	// Terminate and Interrupt ask the server to end. Only its first process gets them, as from "docker stop".
	Terminate Signal = "terminate" // SIGTERM
	Interrupt Signal = "interrupt" // SIGINT
)

// Moment brackets an action, which took effect between From and To, in ns of CLOCK_MONOTONIC.
type Moment struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Process is one process of a node.
type Process struct {
	PID     int    `json:"pid"` // in the node's own PID namespace
	Command string `json:"command"`
	// Stopped: every thread is in state T.
	Stopped bool `json:"stopped"`
	// Frozen: every thread is in state D, or waits where the freezer of cgroup version 2 keeps it.
	Frozen bool `json:"frozen"`
	// States has one letter for each thread, as in /proc/PID/task/TID/stat.
	States string `json:"states"`
}

// Cut says what happens to packets between the node and its peers. By default all of them are dropped.
type Cut struct {
	ID    string   `json:"id"`    // unique in a run
	Peers []string `json:"peers"` // IPv4 addresses
	// InboundOnly drops only packets from the peers. Packets of the node still reach them.
	InboundOnly bool `json:"inbound_only,omitempty"`
	// Loss is the share of packets to drop, between 0 and 1; 0 drops all of them.
	Loss float64 `json:"loss,omitempty"`
	// Delay holds each packet back, by up to Jitter more or less. Packets keep their order. Jitter is less than
	// Delay.
	Delay  time.Duration `json:"delay,omitempty"`
	Jitter time.Duration `json:"jitter,omitempty"`
	// Rate limits each direction, in bytes a second; 0 for no limit.
	Rate int64 `json:"rate,omitempty"`
	// Moved lists addresses whose names point to UnusedAddress, which is then the only peer, until the cut is healed.
	Moved []string `json:"moved,omitempty"`
	// Unnamed lists addresses that lose their names until the cut is healed. The peers are then the name servers of the
	// node: their answers are dropped, and the questions to them are counted.
	Unnamed []string `json:"unnamed,omitempty"`
	// Hold lets packets pass, except the one packet to a peer that it describes. With InboundOnly that is a packet from a
	// peer. It waits until the cut is healed. Such a cut is not listed among the cuts in force.
	Hold *Message `json:"hold,omitempty"`
}

// Reading is one reading of a server's wall clock.
type Reading struct {
	Server time.Time `json:"server"`
	// Before and After are true time just before and after the question.
	Before time.Time `json:"before"`
	After  time.Time `json:"after"`
	// Asked brackets the question on the monotonic clock.
	Asked Moment `json:"asked"`
}

// Offset returns bounds of how far the server's clock is ahead of true time.
func (r Reading) Offset() (low, high time.Duration) {
	return r.Server.Sub(r.After), r.Server.Sub(r.Before)
}

// Probes asks one kind of server about itself.
type Probes interface {
	Ready(ctx context.Context, address string) error
	Clock(ctx context.Context, address string) (time.Time, error)
	Version(ctx context.Context, address string) (string, error)
}

// LeaderProbe is an optional part of Probes, for servers one of which is the leader.
type LeaderProbe interface {
	Leads(ctx context.Context, address string) (bool, error)
}

// LeaderTransfer is an optional part of Probes, for servers with an operation by which a leader hands over to another
// server.
type LeaderTransfer interface {
	TransferLeader(ctx context.Context, address string) error
}

// Membership is an optional part of Probes, for servers whose cluster can remove a member and add it again.
type Membership interface {
	Members(ctx context.Context, address string) ([]string, error)
	RemoveMember(ctx context.Context, address, member string) error
	AddMember(ctx context.Context, address, member string) error
}
