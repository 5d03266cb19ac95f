package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"lockcheck/clusters/disk"
	"lockcheck/history"
)

// Local is the Host of this process' own namespaces, or of chosen processes.
type Local struct {
	// PIDs lists the processes of the node; nil for all of the namespace.
	PIDs func() ([]int, error)
	// Send sends a signal to one process; nil to use its process number. In a namespace shared with others the
	// number may belong to another process by then.
	Send func(pid int, signal syscall.Signal) error
	// Network is the network namespace if it belongs to the node alone; nil if the node cannot be cut off.
	Network *Network
	// ClockFile holds the offset of the server's wall clock for the driver; "" if the clock cannot be moved.
	ClockFile   string
	ClockDriver ClockDriver
	unmovable   error // why the driver does not work here
	// Disk is where the server's disk takes orders; "" if it is not a disk of lockcheck's.
	Disk disk.Switch
	// Probes and Address reach the server; zero on a node without a server.
	Probes  Probes
	Address string
}

var _ Host = Local{}

var (
	errNoNetwork = errors.New("the node has no network of its own")
	errNoServer  = errors.New("the node has no server to ask")
)

func (l Local) pids() ([]int, error) {
	switch {
	case l.PIDs != nil:
		return l.PIDs()
	case l.Disk != "":
		pids, err := everyProcess()
		return slices.DeleteFunc(pids, disk.IsProcess), err
	}
	return everyProcess()
}

// Signal implements Host.
func (l Local) Signal(_ context.Context, signal Signal) (Moment, error) {
	send, list := l.Send, l.pids
	if send == nil {
		send = syscall.Kill
	}
	if signal == Terminate || signal == Interrupt {
		first, err := l.first() // once: when that process has ended, another one is the oldest
		list = func() ([]int, error) { return first, err }
	}
	return signalAll(signal, list, send)
}

// first lists the oldest process of the node that is not lockcheck, which may have launched it.
func (l Local) first() ([]int, error) {
	all, err := l.Processes(context.Background())
	own, ownErr := inspectOne(os.Getpid())
	if err := errors.Join(err, ownErr); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(p Process) bool { return p.Command != own.Command })
	if i < 0 {
		return nil, nil
	}
	return []int{all[i].PID}, nil
}

// Processes implements Host.
func (l Local) Processes(context.Context) ([]Process, error) {
	pids, err := l.pids()
	if err != nil {
		return nil, err
	}
	return inspect(pids)
}

// Cut implements Host.
func (l Local) Cut(_ context.Context, cut Cut) (Moment, error) {
	if l.Network == nil {
		return Moment{}, errNoNetwork
	}
	return l.Network.cut(cut)
}

// Offers implements Host.
func (l Local) Offers(_ context.Context, cut Cut) error {
	if l.Network == nil {
		return errNoNetwork
	}
	return l.Network.offers(cut)
}

// AwaitHeld implements Host.
func (l Local) AwaitHeld(ctx context.Context, id string) (Sighting, bool, error) {
	if l.Network == nil {
		return Sighting{}, false, errNoNetwork
	}
	return l.Network.awaitHeld(ctx, id)
}

// Heal implements Host.
func (l Local) Heal(_ context.Context, id string) (Moment, int64, error) {
	if l.Network == nil {
		return Moment{}, 0, errNoNetwork
	}
	return l.Network.heal(id)
}

// Dropped implements Host.
func (l Local) Dropped(_ context.Context, id string) (int64, error) {
	if l.Network == nil {
		return 0, errNoNetwork
	}
	return droppedBy(id)
}

// Cuts implements Host.
func (l Local) Cuts(context.Context) ([]string, error) {
	if l.Network == nil {
		return nil, nil
	}
	return l.Network.cuts()
}

// Names implements Host.
func (l Local) Names(context.Context) ([]string, error) {
	if l.Network == nil {
		return nil, errNoNetwork
	}
	return names()
}

// AskDNS implements Host.
func (l Local) AskDNS(ctx context.Context, name string, timeout time.Duration) error {
	if l.Network == nil {
		return errNoNetwork
	}
	return askDNS(ctx, name, timeout)
}

// Dial implements Host.
func (l Local) Dial(ctx context.Context, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	var slow net.Error
	switch {
	case err == nil:
		return hangUp(conn)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return fmt.Errorf("%s: %w", address, ErrNoAnswer)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: %w", address, ErrRefused)
	default:
		return err
	}
}

// hangUp closes a connection with a single packet, a reset. A regular close takes several packets, which TCP
// would retransmit across a cut. They would count as traffic that the cut has met.
func hangUp(conn net.Conn) error {
	if tcp, is := conn.(*net.TCPConn); is {
		if err := tcp.SetLinger(0); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}

// Answer implements Host.
func (l Local) Answer(ctx context.Context, address string, timeout time.Duration) (time.Duration, error) {
	began := time.Now()
	err := l.Dial(ctx, address, timeout)
	took := time.Since(began)
	if errors.Is(err, ErrRefused) {
		err = nil
	}
	return took, err
}

// Clock implements Host.
func (l Local) Clock(ctx context.Context) (Reading, error) {
	if l.Probes == nil {
		return Reading{}, errNoServer
	}
	reading := Reading{Before: time.Now().UTC(), Asked: Moment{From: history.Now()}}
	server, err := l.Probes.Clock(ctx, l.Address)
	reading.Asked.To = history.Now()
	reading.Server, reading.After = server.UTC(), time.Now().UTC()
	return reading, err
}

// readyLimit bounds one question for readiness. A server that is asked while it starts may never answer, as
// ZooKeeper does now and then, and must be asked again.
const readyLimit = 3 * time.Second

// Ready implements Host.
func (l Local) Ready(ctx context.Context) error {
	if l.Probes == nil {
		return errNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := l.Probes.Ready(ctx, l.Address); err != nil {
		return fmt.Errorf("%s: %w", l.Address, err)
	}
	return nil
}

// Version implements Host.
func (l Local) Version(ctx context.Context) (string, error) {
	if l.Probes == nil {
		return "", errNoServer
	}
	return l.Probes.Version(ctx, l.Address)
}

// Leads implements Host.
func (l Local) Leads(ctx context.Context) (bool, error) {
	probe, can := l.Probes.(LeaderProbe)
	if !can {
		return false, ErrNoLeader
	}
	return probe.Leads(ctx, l.Address)
}

// ErrNoTransfer is the error of TransferLeader for servers without such an operation.
var ErrNoTransfer = errors.New("the server has no operation by which it hands over its leadership")

// TransferLeader implements Host.
func (l Local) TransferLeader(ctx context.Context) (Moment, error) {
	probe, can := l.Probes.(LeaderTransfer)
	if !can {
		return Moment{}, ErrNoTransfer
	}
	moment := Moment{From: history.Now()}
	err := probe.TransferLeader(ctx, l.Address)
	moment.To = history.Now()
	return moment, err
}

// ErrNoMembers is the error of Members, RemoveMember and AddMember for servers whose members never change.
var ErrNoMembers = errors.New("lockcheck knows no operation that removes one of these servers from a cluster")

// Members implements Host.
func (l Local) Members(ctx context.Context) ([]string, error) {
	probe, can := l.Probes.(Membership)
	if !can {
		return nil, ErrNoMembers
	}
	return probe.Members(ctx, l.Address)
}

// RemoveMember implements Host.
func (l Local) RemoveMember(ctx context.Context, member string) error {
	probe, can := l.Probes.(Membership)
	if !can {
		return ErrNoMembers
	}
	return probe.RemoveMember(ctx, l.Address, member)
}

// AddMember implements Host.
func (l Local) AddMember(ctx context.Context, member string) error {
	probe, can := l.Probes.(Membership)
	if !can {
		return ErrNoMembers
	}
	return probe.AddMember(ctx, l.Address, member)
}
