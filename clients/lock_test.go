package clients

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOutcomeOf(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Outcome
	}{
		{"nothing", nil, Done},
		{"busy", &BusyError{Holder: "w1-1"}, Busy},
		{"busy, wrapped", fmt.Errorf("n1: %w", &BusyError{}), Busy},
		{"not held", ErrNotHeld, NotHeld},
		{"not held, wrapped", fmt.Errorf("n1: %w", ErrNotHeld), NotHeld},
		{"no effect", noEffect("no quorum"), NoEffect},
		{"no effect, wrapped", fmt.Errorf("n1: %w", noEffect("no quorum")), NoEffect},
		{"deadline", context.DeadlineExceeded, Unknown},
		{"connection broke", &net.OpError{Op: "read", Err: errors.New("reset")}, Unknown},
		{"a text that only sounds harmless", errors.New("not held"), Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := OutcomeOf(c.err); got != c.want {
				t.Errorf("OutcomeOf(%v) = %d, want %d", c.err, got, c.want)
			}
		})
	}
}

func TestBusyErrorNamesTheHolder(t *testing.T) {
	for holder, want := range map[string]string{"": "busy", "w1-1": "busy: held by w1-1"} {
		if got := (&BusyError{Holder: holder}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLease(t *testing.T) {
	for _, c := range []struct {
		name string
		info Info
		ttl  time.Duration
		want time.Duration
	}{
		{"as asked", Info{TTL: time.Second, MinTTL: time.Millisecond}, 5 * time.Second, 5 * time.Second},
		{"below the floor of the service", Info{TTL: 4 * time.Second, MinTTL: 2 * time.Second}, time.Second, 2 * time.Second},
		{"a lock that never ends", Info{}, time.Second, 0},
		{"rounded up by the service", Info{TTL: time.Second, MinTTL: time.Second, TTLStep: time.Second}, 2100 * time.Millisecond, 3 * time.Second},
		{"nothing to round", Info{TTL: time.Second, MinTTL: time.Second, TTLStep: time.Second}, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.info.Lease(c.ttl); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestTable: the fields of each row must be complete and consistent.
func TestTable(t *testing.T) {
	names := Names()
	for _, info := range Table() {
		t.Run(info.Name, func(t *testing.T) {
			if found, ok := ByName(info.Name); !ok || found.Name != info.Name {
				t.Errorf("ByName finds %q, %v", found.Name, ok)
			}
			if n := len(slices.DeleteFunc(slices.Clone(names), func(s string) bool { return s != info.Name })); n != 1 {
				t.Errorf("%d locks have this name", n)
			}
			for what, text := range map[string]string{"summary": info.Summary, "servers": info.Servers, "loss notification": info.LossNotification, "clock": info.Clock} {
				if text == "" {
					t.Errorf("no %s", what)
				}
			}
			if info.Open == nil {
				t.Error("cannot be opened")
			}
			if info.TTL < info.MinTTL || (info.TTL == 0) != (info.MinTTL == 0) {
				t.Errorf("default lease %s, shortest %s", info.TTL, info.MinTTL)
			}
			if info.MaxTTL != 0 && info.MaxTTL <= info.TTL {
				t.Errorf("default lease %s, longest %s", info.TTL, info.MaxTTL)
			}
			if info.Renew && info.TTL == 0 {
				t.Error("a lock without lease cannot be renewed")
			}
		})
	}
	if _, ok := ByName("no such lock"); ok {
		t.Error("an unknown lock is found")
	}
}

// TestOpen: Open refuses servers with which a lock cannot work. It dials none yet, so any address will do.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		lock  string
		nodes int
		fine  bool
	}{
		{"memory", 1, true}, {"memory", 0, false}, {"memory", 2, false},
		{"redis", 1, true}, {"redis", 0, false}, {"redis", 5, false},
		{"redlock", 5, true}, {"redlock", 3, true}, {"redlock", 4, false}, {"redlock", 1, false}, {"redlock", 0, false}, {"redlock+sequential", 5, true}, {"redlock+sequential", 4, false},
		{"memory-redlock", 5, true}, {"memory-redlock", 4, false}, {"none", 0, true}, {"queue", 1, true}, {"queue", 2, false},
		{"postgres-session", 1, true}, {"postgres-xact", 2, false}, {"postgres-row", 0, false}, {"postgres-lease", 1, true}, {"postgres-insert", 1, true}, {"postgres-insert", 2, false},
		{"mariadb", 1, true}, {"mariadb", 2, false},
		{"galera-getlock", 3, true}, {"galera-getlock", 0, false}, {"galera-forupdate", 1, true}, {"galera-forupdate", 0, false}, {"galera-insert", 3, true}, {"galera-insert", 0, false},
	} {
		t.Run(fmt.Sprintf("%s on %d", c.lock, c.nodes), func(t *testing.T) {
			lock, err := opened(t, c.lock, slices.Repeat([]string{"127.0.0.1:1"}, c.nodes)...)
			if (err == nil) != c.fine {
				t.Errorf("opens with error %v", err)
			}
			if lock == nil {
				return
			}
			if _, can := lock.(Renewer); can != mustInfo(t, c.lock).Renew {
				t.Errorf("can renew: %v, and the table says otherwise", can)
			}
			if _, can := lock.(Asker); can != mustInfo(t, c.lock).Ask {
				t.Errorf("can ask: %v, and the table says otherwise", can)
			}
			if _, can := lock.(DataStore); can != mustInfo(t, c.lock).Data {
				t.Errorf("keeps data: %v, and the table says otherwise", can)
			}
		})
	}
}

func mustInfo(t *testing.T, name string) Info {
	t.Helper()
	info, ok := ByName(name)
	if !ok {
		t.Fatalf("no lock %q", name)
	}
	return info
}

// opened opens a lock that is closed at the end of the test.
func opened(t *testing.T, name string, nodes ...string) (Lock, error) {
	t.Helper()
	lock, err := mustInfo(t, name).Open(Config{Worker: "w1", Nodes: nodes})
	if err == nil {
		t.Cleanup(func() {
			if err := lock.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	return lock, err
}

func mustOpen(t *testing.T, name string, nodes ...string) Lock {
	t.Helper()
	lock, err := opened(t, name, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// TestNone: the control excludes no client.
func TestNone(t *testing.T) {
	lock := mustOpen(t, "none")
	for _, id := range []string{"w1-1", "w2-1"} {
		grant, err := lock.Acquire(t.Context(), Attempt{Key: "k0", ID: id, TTL: time.Second})
		if err != nil || grant.ID != id || grant.Key != "k0" || grant.Token != 0 || grant.Until != 0 {
			t.Errorf("%+v, %v", grant, err)
		}
	}
	if err := lock.Release(t.Context(), Grant{Key: "k0", ID: "w3-1"}); err != nil {
		t.Error(err)
	}
}

// A request to a server that was never reached had no effect. If the server hung up after the request, or never
// answers, it may have had one.
var failing = []struct {
	name   string
	listen func(t *testing.T, network, address string) string
	want   Outcome
}{
	{"refuses", refuse, NoEffect},
	{"hangs up", hangUp, Unknown},
	{"never answers", neverAnswer, Unknown},
}

func refuse(t *testing.T, network, address string) string {
	return listen(t, network, address, nil)
}

func hangUp(t *testing.T, network, address string) string {
	return listen(t, network, address, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.Close()
	})
}

func neverAnswer(t *testing.T, network, address string) string {
	return listen(t, network, address, func(conn net.Conn) {
		t.Cleanup(func() { _ = conn.Close() })
	})
}

// redisAnswers is a Redis that refuses the commands by which a client introduces itself. For any other command
// it calls answer, and hangs up if the result is "".
func redisAnswers(t *testing.T, answer func(command string) string) string {
	return listen(t, "tcp", "127.0.0.1:0", func(conn net.Conn) {
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			words, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "*"))
			if err != nil {
				return
			}
			var command string
			for i := range 2 * words { // each word is preceded by its length
				lines.Scan()
				if i == 1 {
					command = strings.ToUpper(lines.Text())
				}
			}
			text := "-ERR unknown command\r\n"
			if command != "HELLO" && command != "CLIENT" {
				text = answer(command)
			}
			if text == "" {
				return
			}
			_, _ = io.WriteString(conn, text)
		}
	})
}

// always answers every command alike.
func always(text string) func(string) string { return func(string) string { return text } }

// inTurn answers with one text after the other, and repeats the last one.
func inTurn(texts ...string) func(string) string {
	var mu sync.Mutex
	return func(string) string {
		mu.Lock()
		defer mu.Unlock()
		text := texts[0]
		if len(texts) > 1 {
			texts = texts[1:]
		}
		return text
	}
}

// listen handles connections until the test ends. Without a handler it closes the listener at once.
func listen(t *testing.T, network, address string, handle func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	if handle == nil {
		_ = listener.Close()
		return address
	}
	accepting := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-accepting })
	go func() {
		defer close(accepting)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go handle(conn)
		}
	}()
	return address
}

func TestFailingServer(t *testing.T) {
	// The failure comes before the request for the lock: when a lease or a session is created.
	leased := map[string]Outcome{"acquire": NoEffect, "release": NotHeld}
	// A library has no handle for an attempt that was not granted.
	library := map[string]Outcome{"renew": NotHeld, "release": Unknown}
	for _, lock := range []struct {
		name    string
		network string
		address func(*testing.T) string
		servers int
		want    map[string]Outcome // outcomes that differ from those in failing
	}{
		{"memory", "unix", socketPath, 1, nil},
		// Renew does not classify its failures further, because no caller acts on the difference.
		{"redis+call-deadlines", "tcp", localAddress, 1, map[string]Outcome{"renew": Unknown}},
		{"redislock+call-deadlines", "tcp", localAddress, 1, library},
		// A request that no majority answers may still take effect later on some servers.
		{"redsync+call-deadlines", "tcp", localAddress, 3, map[string]Outcome{"acquire": Unknown, "renew": NotHeld, "release": Unknown}},
		{"redlock", "tcp", localAddress, 3, map[string]Outcome{"renew": Unknown, "release": Unknown}},
		{"etcd+session-per-attempt", "tcp", localAddress, 3, leased}, // without the option, NewSession waits for a server
		{"etcd-v3lock", "tcp", localAddress, 3, leased},
		{"consul+withdraw", "tcp", localAddress, 3, map[string]Outcome{"acquire": NoEffect, "release": Unknown}},
	} {
		for _, c := range failing {
			t.Run(lock.name+" "+c.name, func(t *testing.T) {
				var nodes []string
				for range lock.servers {
					nodes = append(nodes, c.listen(t, lock.network, lock.address(t)))
				}
				for what, call := range calls(mustOpen(t, lock.name, nodes...)) {
					want, own := lock.want[what]
					if !own {
						want = c.want
					}
					ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					if err := call(ctx); err == nil || OutcomeOf(err) != want {
						t.Errorf("%s: %v is outcome %d, want %d", what, err, OutcomeOf(err), want)
					}
					cancel()
				}
			})
		}
	}
}

func localAddress(*testing.T) string { return "127.0.0.1:0" }

func socketPath(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "lock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "s")
}

func calls(l Lock) map[string]func(context.Context) error {
	grant := Grant{Key: "k0", ID: "w1-1"}
	all := map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error {
			_, err := l.Acquire(ctx, Attempt{Key: "k0", ID: "w1-1", TTL: time.Second})
			return err
		},
		"release": func(ctx context.Context) error { return l.Release(ctx, grant) },
	}
	if renewer, can := l.(Renewer); can {
		all["renew"] = func(ctx context.Context) error {
			_, err := renewer.Renew(ctx, grant, time.Second)
			return err
		}
	}
	return all
}

// TestOpenWithoutServers: Open returns either an error or a lock, never both.
func TestOpenWithoutServers(t *testing.T) {
	failed := 0
	for _, info := range Table() {
		lock, err := info.Open(Config{Worker: "w1", TTL: info.TTL})
		switch {
		case err == nil:
			if err := lock.Close(); err != nil {
				t.Errorf("%s: %v", info.Name, err)
			}
		case lock != nil:
			t.Errorf("%s: a lock together with %v", info.Name, err)
		default:
			failed++
		}
	}
	if failed < 5 {
		t.Errorf("only %d locks need servers", failed)
	}
}
