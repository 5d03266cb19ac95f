package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// inOwnNetwork runs f in a fresh network namespace that ends with its thread. f must not start goroutines that
// use the network.
func inOwnNetwork(t *testing.T, f func()) {
	t.Helper()
	refused := make(chan error, 1)
	go func() {
		defer close(refused)
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			refused <- err
			return
		}
		f()
	}()
	if err := <-refused; err != nil {
		if os.Getenv("CI") == "true" { // where a skip would look like a pass
			t.Fatalf("CI needs a network namespace of its own: %v", err)
		}
		t.Skipf("needs a network namespace of its own: %v", err)
	}
}

// loopbackUp brings up the loopback interface of a fresh namespace.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}

// TestCuts checks with the kernel what a cut drops, that two cuts are independent, and that other tables are
// never touched.
func TestCuts(t *testing.T) {
	inOwnNetwork(t, func() {
		if err := loopbackUp(); err != nil {
			t.Error(err)
			return
		}
		conn, err := nftables.New()
		if err != nil {
			t.Error(err)
			return
		}
		foreign := conn.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "nat"})
		addChain(conn, foreign, "in", nftables.ChainHookInput, nftables.ChainPriorityFilter)
		addRule(conn, &nftables.Chain{Name: "in", Table: foreign}, sourceOffset, net.IPv4(192, 0, 2, 1).To4(), drop(0))
		if err := conn.Flush(); err != nil {
			t.Error(err)
			return
		}
		host := Local{Network: new(Network)}
		cutAndHeal(t, host)
		if rules, err := conn.GetRules(foreign, &nftables.Chain{Name: "in", Table: foreign}); err != nil || len(rules) != 1 {
			t.Errorf("the foreign table has rules %v, %v: want its own one", rules, err)
		}
		refusedCuts(t, host)
	})
}

func cutAndHeal(t *testing.T, host Local) {
	ctx := context.Background()
	// All of 127/8 is this machine, so two of its addresses serve as peers.
	const one, other = "127.0.0.11", "127.0.0.12"
	expect := func(when string, reachable map[string]bool, want ...string) {
		t.Helper()
		for peer, want := range reachable {
			if err := exchange(peer); (err == nil) != want {
				t.Errorf("%s: %s: %v", when, peer, err)
			}
		}
		cuts, err := host.Cuts(ctx)
		slices.Sort(cuts)
		if err != nil || !slices.Equal(cuts, want) {
			t.Errorf("%s: cuts %v, %v: want %v", when, cuts, err, want)
		}
	}
	expect("at first", map[string]bool{one: true, other: true})
	for _, cut := range []Cut{{ID: "f1", Peers: []string{one}}, {ID: "f2", Peers: []string{other}}} {
		moment, err := host.Cut(ctx, cut)
		if err != nil || moment.From <= 0 || moment.To < moment.From {
			t.Errorf("%+v: %+v, %v", cut, moment, err)
		}
		if cut.ID == "f1" {
			expect("one cut", map[string]bool{one: false, other: true}, "f1")
		}
	}
	expect("both cut", map[string]bool{one: false, other: false}, "f1", "f2")
	if _, dropped, err := host.Heal(ctx, "f1"); err != nil || dropped == 0 {
		t.Errorf("heal f1: dropped %d, %v", dropped, err)
	}
	expect("one healed", map[string]bool{one: true, other: false}, "f2")
	if _, dropped, err := host.Heal(ctx, "f2"); err != nil || dropped == 0 {
		t.Errorf("heal f2: dropped %d, %v", dropped, err)
	}
	expect("both healed", map[string]bool{one: true, other: true})
	// A cut that no packet meets has dropped nothing.
	if _, err := host.Cut(ctx, Cut{ID: "f3", Peers: []string{"192.0.2.7"}}); err != nil {
		t.Error(err)
	}
	if _, dropped, err := host.Heal(ctx, "f3"); err != nil || dropped != 0 {
		t.Errorf("heal f3: dropped %d, %v: want none", dropped, err)
	}
}

// exchange sends a datagram to the address and back on the calling thread. The net package's resolver or
// dialler might use a goroutine on another thread, outside the namespace.
func exchange(ip string) error {
	var pair [2]int
	for i := range pair {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		pair[i] = socket
	}
	server, client := pair[0], pair[1]
	address := unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(ip).To4())}
	if err := unix.Bind(server, &address); err != nil {
		return err
	}
	bound, err := unix.Getsockname(server)
	if err != nil {
		return err
	}
	// On loopback a datagram has arrived when the send returns, or never arrives.
	limit := unix.NsecToTimeval((200 * time.Millisecond).Nanoseconds())
	if err := unix.SetsockoptTimeval(server, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return err
	}
	if err := unix.Sendto(client, []byte("x"), 0, bound); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	_, err = receive(server, make([]byte, 1), 0)
	return err
}

// refusedCuts: a cut that cannot be made in full is not made at all.
func refusedCuts(t *testing.T, host Local) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		peers []string
	}{
		{"no peers", nil},
		{"a name", []string{"n2"}},
		{"IPv6", []string{"fe80::1"}},
		{"a good one and a bad one", []string{"192.0.2.1", "n2"}},
	} {
		if _, err := host.Cut(ctx, Cut{ID: "bad", Peers: c.peers}); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		if cuts, err := host.Cuts(ctx); err != nil || len(cuts) != 0 {
			t.Errorf("%s: left %v, %v", c.name, cuts, err)
		}
	}
	if _, _, err := host.Heal(ctx, "never"); err == nil {
		t.Error("a cut that never was is healed")
	}
}
