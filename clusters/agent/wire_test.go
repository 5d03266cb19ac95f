package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"lockcheck/history"
)

// connected returns a host behind the wire. Its agent ends when stop is called, or with the test.
func connected(t *testing.T, host Host) (remote *Remote, stop func()) {
	t.Helper()
	requests, input := io.Pipe()
	output, answers := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(context.Background(), host, requests, answers)
		_ = answers.Close()
	}()
	stop = sync.OnceFunc(func() {
		_ = input.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return Connect(input, output, silent), stop
}

func silent() string { return "" }

// TestWire sends real signals to real processes through the wire.
func TestWire(t *testing.T) {
	child, bystander := sleeper(t), sleeper(t)
	remote, _ := connected(t, local(child))
	awaitStopped(t, remote, 1, false)
	moment, err := remote.Signal(t.Context(), Stop)
	if err != nil || moment.From <= 0 || moment.To < moment.From {
		t.Fatalf("%+v, %v", moment, err)
	}
	awaitStopped(t, remote, 1, true)
	awaitStopped(t, local(bystander), 1, false)
	if _, err := remote.Signal(t.Context(), Continue); err != nil {
		t.Fatal(err)
	}
	awaitStopped(t, remote, 1, false)
	processes, err := remote.Processes(t.Context())
	if err != nil || len(processes) != 1 || processes[0].PID != child.Process.Pid {
		t.Errorf("%+v, %v: want process %d", processes, err, child.Process.Pid)
	}
}

// answers is a host that returns fixed answers, to check what the wire does with them.
type answers struct {
	Local
	moment  Moment
	reading Reading
	cuts    chan Cut
	offsets chan time.Duration
	members chan string
	fail    error
}

func (a answers) Cut(_ context.Context, cut Cut) (Moment, error) {
	a.cuts <- cut
	return a.moment, a.fail
}
func (a answers) Heal(_ context.Context, id string) (Moment, int64, error) {
	return a.moment, int64(len(id)), a.fail
}
func (a answers) Offers(_ context.Context, cut Cut) error {
	a.cuts <- cut
	return a.fail
}
func (a answers) Answer(_ context.Context, address string, timeout time.Duration) (time.Duration, error) {
	return timeout + time.Duration(len(address)), a.fail
}
func (a answers) Cuts(context.Context) ([]string, error) { return []string{"f1", "f2"}, a.fail }
func (a answers) SetClock(_ context.Context, offset time.Duration) (Moment, error) {
	a.offsets <- offset
	return a.moment, a.fail
}
func (a answers) Clock(context.Context) (Reading, error)         { return a.reading, a.fail }
func (a answers) TransferLeader(context.Context) (Moment, error) { return a.moment, a.fail }
func (a answers) Members(context.Context) ([]string, error)      { return []string{"10.0.0.1"}, a.fail }
func (a answers) RemoveMember(_ context.Context, member string) error {
	a.members <- "remove " + member
	return a.fail
}
func (a answers) AddMember(_ context.Context, member string) error {
	a.members <- "add " + member
	return a.fail
}
func (a answers) Ready(context.Context) error             { return a.fail }
func (a answers) Version(context.Context) (string, error) { return "7.0.15", a.fail }

// TestWireCarries: every method of Host crosses the wire completely, with its error.
func TestWireCarries(t *testing.T) {
	now := time.Now().UTC()
	for _, fail := range []error{nil, errors.New("no such cut")} {
		name := "fine"
		if fail != nil {
			name = "failing"
		}
		t.Run(name, func(t *testing.T) {
			host := answers{
				moment: Moment{From: 3, To: 5}, reading: Reading{Server: now, Before: now.Add(-1), After: now.Add(1)},
				cuts: make(chan Cut, 1), offsets: make(chan time.Duration, 1), members: make(chan string, 2), fail: fail,
			}
			remote, _ := connected(t, host)
			check := func(what string, err error, same bool) {
				t.Helper()
				switch {
				case fail != nil && (err == nil || err.Error() != fail.Error()):
					t.Errorf("%s: got %v, want %v", what, err, fail)
				case fail == nil && (err != nil || !same):
					t.Errorf("%s: changed on the way, or %v", what, err)
				}
			}
			cut := Cut{
				ID: "f1", Peers: []string{"10.0.0.1", "10.0.0.2"},
				Loss: 0.3, Delay: time.Second, Jitter: time.Millisecond, Rate: 8000,
			}
			moment, err := remote.Cut(t.Context(), cut)
			check("cut", err, moment == host.moment)
			if got := <-host.cuts; !reflect.DeepEqual(got, cut) {
				t.Errorf("cut arrives as %+v", got)
			}
			check("offers", remote.Offers(t.Context(), cut), true)
			if got := <-host.cuts; !reflect.DeepEqual(got, cut) {
				t.Errorf("what is to be offered arrives as %+v", got)
			}
			took, err := remote.Answer(t.Context(), "four", time.Second)
			check("answer", err, took == time.Second+4)
			moment, dropped, err := remote.Heal(t.Context(), "four")
			check("heal", err, moment == host.moment && dropped == 4)
			cuts, err := remote.Cuts(t.Context())
			check("cuts", err, fmt.Sprint(cuts) == "[f1 f2]")
			moment, err = remote.SetClock(t.Context(), -time.Minute)
			check("set clock", err, moment == host.moment)
			if got := <-host.offsets; got != -time.Minute {
				t.Errorf("offset arrives as %s", got)
			}
			reading, err := remote.Clock(t.Context())
			check("clock", err, reading.Server.Equal(now) && reading.After.Sub(reading.Before) == 2)
			moment, err = remote.TransferLeader(t.Context())
			check("transfer leader", err, moment == host.moment)
			members, err := remote.Members(t.Context())
			check("members", err, fmt.Sprint(members) == "[10.0.0.1]")
			check("remove member", remote.RemoveMember(t.Context(), "10.0.0.1"), true)
			check("add member", remote.AddMember(t.Context(), "10.0.0.2"), true)
			if got := <-host.members + ", " + <-host.members; got != "remove 10.0.0.1, add 10.0.0.2" {
				t.Errorf("changes of members arrive as %q", got)
			}
			check("ready", remote.Ready(t.Context()), true)
			version, err := remote.Version(t.Context())
			check("version", err, version == "7.0.15")
		})
	}
}

func TestWireDial(t *testing.T) {
	remote, _ := connected(t, Local{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Dial(t.Context(), listener.Addr().String(), 5*time.Second); err != nil {
		t.Errorf("with a listener: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := remote.Dial(t.Context(), listener.Addr().String(), 5*time.Second); err == nil {
		t.Error("without a listener: no error")
	}
}

func TestWireUnknownMethod(t *testing.T) {
	remote, _ := connected(t, local(sleeper(t)))
	if _, err := remote.call(t.Context(), request{Method: "dance"}); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("got %v", err)
	}
	awaitStopped(t, remote, 1, false) // the agent continues
}

// hanging is a server that never answers. asked is closed when it is asked.
type hanging struct{ asked chan struct{} }

func (h hanging) Ready(ctx context.Context, _ string) error {
	close(h.asked)
	<-ctx.Done()
	return ctx.Err()
}
func (h hanging) Clock(context.Context, string) (time.Time, error) { return time.Time{}, nil }
func (h hanging) Version(context.Context, string) (string, error)  { return "", nil }

// TestWireHangingProbe: a stopped server must not keep its fault from being healed.
func TestWireHangingProbe(t *testing.T) {
	host := local(sleeper(t))
	probe := hanging{asked: make(chan struct{})}
	host.Probes = probe
	remote, _ := connected(t, host)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- remote.Ready(ctx) }()
	<-probe.asked
	for _, signal := range []Signal{Stop, Continue} {
		if _, err := remote.Signal(t.Context(), signal); err != nil {
			t.Fatal(err)
		}
		awaitStopped(t, remote, 1, signal == Stop)
	}
	select {
	case err := <-ready:
		t.Errorf("the probe ended by itself: %v", err)
	default:
	}
	cancel()
	if err := <-ready; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestWireDeadline: the caller's deadline ends the call at the agent, too. Nothing else would end it.
func TestWireDeadline(t *testing.T) {
	probe := hanging{asked: make(chan struct{})}
	remote, _ := connected(t, Local{Probes: probe, Address: "n1"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := remote.Ready(ctx)
	// Either side may notice the deadline first.
	if err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
		t.Errorf("got %v", err)
	}
}

// TestWireTooLate: an action is not performed if its caller gave up before the agent read it.
func TestWireTooLate(t *testing.T) {
	for _, left := range []time.Duration{-1, time.Minute} {
		host := answers{cuts: make(chan Cut, 1)}
		answer := perform(t.Context(), host, request{Method: "cut", Until: history.Now() + left.Nanoseconds()}, new(sync.Mutex))
		if done := len(host.cuts) == 1; done != (left > 0) || done != (answer.Error == "") {
			t.Errorf("%s before its end: done %v, %q", left, done, answer.Error)
		}
	}
}

func TestWireConcurrent(t *testing.T) {
	var hosts []*Remote
	for range 2 {
		remote, _ := connected(t, local(sleeper(t)))
		hosts = append(hosts, remote)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			processes, err := hosts[i%2].Processes(t.Context())
			if err != nil || len(processes) != 1 {
				t.Errorf("%+v, %v", processes, err)
			}
			if _, err := hosts[i%2].call(t.Context(), request{Method: fmt.Sprint("m", i)}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(`"m%d"`, i)) {
				t.Errorf("call %d got the answer of another one: %v", i, err)
			}
		})
	}
	all.Wait()
}

// TestWireAgentGone: a pending call and every later call fail at once.
func TestWireAgentGone(t *testing.T) {
	host := local(sleeper(t))
	probe := hanging{asked: make(chan struct{})}
	host.Probes = probe
	remote, stop := connected(t, host)
	awaitStopped(t, remote, 1, false)
	under := make(chan error, 1)
	go func() { under <- remote.Ready(t.Context()) }()
	<-probe.asked
	stop()
	if err := <-under; err == nil {
		t.Error("the call under way: no error")
	}
	for range 2 {
		if _, err := remote.Processes(t.Context()); err == nil {
			t.Error("a later call: no error")
		}
	}
}

// TestWireLastWords: calls to a dead agent fail with what the agent wrote before it died.
func TestWireLastWords(t *testing.T) {
	for words, want := range map[string]string{
		"":                               errGone.Error(),
		"panic: oops\n":                  errGone.Error() + ": panic: oops",
		"lockcheck: \ngoroutine 1 [run]": errGone.Error() + ": lockcheck: \ngoroutine 1 [run]",
	} {
		remote := Connect(io.Discard, strings.NewReader(""), func() string { return words })
		for range 2 { // the first call may be pending when the output ends
			if _, err := remote.Processes(t.Context()); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
}

// TestWireFull: a caller can give up on an agent that reads nothing, and so can the next caller.
func TestWireFull(t *testing.T) {
	requests, input := io.Pipe()
	output, answers := io.Pipe()
	t.Cleanup(func() { _, _ = answers.Close(), requests.Close() })
	remote := Connect(input, output, silent)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := remote.Processes(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWireGarbage(t *testing.T) {
	t.Run("from the caller", func(t *testing.T) {
		if err := Serve(t.Context(), Local{}, strings.NewReader("hello\n"), io.Discard); err == nil {
			t.Error("no error")
		}
	})
	t.Run("from the agent", func(t *testing.T) {
		complains := func() string { select {} } // never returns, as while the agent runs
		remote := Connect(io.Discard, strings.NewReader("panic: oops\n"), complains)
		if _, err := remote.Processes(t.Context()); err == nil || !strings.HasPrefix(err.Error(), errGone.Error()) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("nothing, control", func(t *testing.T) {
		if err := Serve(t.Context(), Local{}, strings.NewReader(""), io.Discard); err != nil {
			t.Error(err)
		}
	})
}

// TestOtherClock: an agent whose monotonic clock is not ours is refused, even if its engine seems to be on this
// machine.
func TestOtherClock(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead time.Duration
		other bool
	}{
		{"ours", 0, false}, {"of a machine that runs for longer", time.Hour, true}, {"of one that was started later", -time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			requests, input := io.Pipe()
			output, answers := io.Pipe()
			defer answers.Close()
			defer input.Close()
			remote := Connect(input, output, func() string { return "" })
			go func() {
				var r request
				if json.NewDecoder(requests).Decode(&r) == nil {
					_ = json.NewEncoder(answers).Encode(reply{ID: r.ID, Now: history.Now() + int64(c.ahead)})
				}
			}()
			if err := remote.Ready(t.Context()); errors.Is(err, ErrOtherClock) != c.other || !c.other && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
