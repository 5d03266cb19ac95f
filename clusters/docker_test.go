package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/engine"
	"lockcheck/history"
)

// outside is a client in this process, which no fault touches.
func outside(t *testing.T, node *Node) *redis.Client {
	t.Helper()
	client := redis.NewClient(redisOptions(node.Address))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ping asks once, on a new connection.
func ping(t *testing.T, node *Node, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return redisProbes{}.Ready(ctx, node.Address)
}

// TestFaults inflicts each fault on a real node and takes it back. A node next to it must not be affected.
func TestFaults(t *testing.T) {
	cluster := started(t, "redis5")
	n := cluster.Servers()
	t.Run("as started", func(t *testing.T) { faultless(t, cluster) })
	t.Run("pause", func(t *testing.T) { faultPause(t, n[0], n[1]) })
	t.Run("cut", func(t *testing.T) { faultCut(t, n[0], n[1], n[2]) })
	t.Run("clock", func(t *testing.T) { faultClock(t, n[0], n[1]) })
	t.Run("clock rate", func(t *testing.T) { faultClockRate(t, n[1]) })
	t.Run("program", func(t *testing.T) { faultProgram(t, cluster) })
}

func faultless(t *testing.T, cluster Cluster) {
	seen := make(map[string]bool)
	for i, node := range cluster.Servers() {
		if want := fmt.Sprint("n", i+1); node.Name != want || node.Clock != nil || seen[node.IP] {
			t.Errorf("server %d is %s at %s, its clock %v", i, node.Name, node.IP, node.Clock)
		}
		seen[node.IP] = true
		if version, err := node.Host.Version(t.Context()); err != nil || !strings.Contains(version, ".") {
			t.Errorf("%s: version %q, %v", node.Name, version, err)
		}
		if cuts, err := node.Host.Cuts(t.Context()); err != nil || len(cuts) > 0 {
			t.Errorf("%s: cuts %v, %v", node.Name, cuts, err)
		}
	}
	if images := cluster.Images(); len(images) != 2 {
		t.Errorf("images %v, want those of the servers and of lockcheck", images)
	}
	if log, err := cluster.Log(t.Context(), "n1", LogPart{}); err != nil || !strings.Contains(log, "Ready to accept connections") {
		t.Errorf("log %q, %v", log, err)
	}
	if _, err := cluster.Log(t.Context(), "n9", LogPart{}); err == nil {
		t.Error("the log of a server that there is not")
	}
}

func faultPause(t *testing.T, target, control *Node) {
	signal(t, target, agent.Stop)
	var late net.Error
	if err := ping(t, target, 300*time.Millisecond); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("a stopped server answers: %v", err)
	}
	// The kernel still accepts connections for a stopped server, so a dial proves nothing about a pause.
	if err := control.Host.Dial(t.Context(), target.Address, 5*time.Second); err != nil {
		t.Errorf("dial: %v", err)
	}
	if err := ping(t, control, 10*time.Second); err != nil {
		t.Errorf("control: %v", err)
	}
	signal(t, target, agent.Continue)
	if err := ping(t, target, 10*time.Second); err != nil {
		t.Errorf("continued: %v", err)
	}
}

func faultCut(t *testing.T, target, peer, control *Node) {
	dial := func(when string, from, to *Node, reachable bool) {
		t.Helper()
		limit := 300 * time.Millisecond // for a dial that must fail
		if reachable {
			limit = 5 * time.Second
		}
		if err := from.Host.Dial(t.Context(), to.Address, limit); (err == nil) != reachable {
			t.Errorf("%s: %s to %s: %v", when, from.Name, to.Name, err)
		}
	}
	cuts := func(when string, node *Node, want ...string) {
		t.Helper()
		got, err := node.Host.Cuts(t.Context())
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %s has cuts %v, %v; want %v", when, node.Name, got, err, want)
		}
	}
	cut := func(id string, from *Node) {
		t.Helper()
		if _, err := target.Host.Cut(t.Context(), agent.Cut{ID: id, Peers: []string{from.IP}}); err != nil {
			t.Fatal(err)
		}
	}
	heal := func(id string) {
		t.Helper()
		if _, dropped, err := target.Host.Heal(t.Context(), id); err != nil || dropped == 0 {
			t.Errorf("heal %s: dropped %d, %v", id, dropped, err)
		}
	}
	dial("before", target, peer, true)
	dial("before", peer, target, true)

	cut("f1", peer)
	cuts("cut", target, "f1")
	cuts("cut", peer) // the rules are in one namespace only
	dial("cut", target, peer, false)
	dial("cut", peer, target, false)
	dial("cut", target, control, true)
	dial("cut", control, target, true)
	dial("cut", peer, control, true)
	if err := ping(t, target, 10*time.Second); err != nil {
		t.Errorf("from outside: %v", err)
	}

	cut("f2", control)
	cuts("both cut", target, "f1", "f2")
	dial("both cut", target, control, false)

	heal("f1")
	cuts("one healed", target, "f2")
	dial("one healed", target, peer, true)
	dial("one healed", target, control, false)

	heal("f2")
	cuts("healed", target)
	dial("healed", target, control, true)
	dial("healed", control, target, true)
	if _, _, err := target.Host.Heal(t.Context(), "f2"); err == nil {
		t.Error("healed twice")
	}
}

// wallAhead is this machine's wall clock relative to its monotonic clock.
func wallAhead() time.Duration { return time.Duration(time.Now().UnixNano() - history.Now()) }

// aheadBy waits until a server's clock is ahead of true time by the wanted offset, as seen by both the agent
// and a client outside.
func aheadBy(t *testing.T, node *Node, want time.Duration) {
	t.Helper()
	const tolerance = time.Second
	client := outside(t, node)
	clustertest.Eventually(t, patience, func() error {
		reading, err := node.Host.Clock(t.Context())
		if err != nil {
			return err
		}
		if low, high := reading.Offset(); low > want+tolerance || high < want-tolerance {
			return fmt.Errorf("%s is between %s and %s ahead, want %s", node.Name, low, high, want)
		}
		before := time.Now()
		server, err := client.Time(t.Context()).Result()
		if err != nil {
			return err
		}
		seen := agent.Reading{Server: server, Before: before, After: time.Now()}
		if low, high := seen.Offset(); low > want+tolerance || high < want-tolerance {
			return fmt.Errorf("from outside %s is between %s and %s ahead, want %s", node.Name, low, high, want)
		}
		return nil
	})
}

func faultClock(t *testing.T, target, control *Node) {
	ctx := t.Context()
	machine := wallAhead()
	servers := map[*Node]*redis.Client{target: outside(t, target), control: outside(t, control)}
	set := func(key string) {
		t.Helper()
		for _, client := range servers {
			if err := client.Set(ctx, key, "w1-1", 30*time.Second).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func(node *Node, key string) time.Duration {
		t.Helper()
		ttl, err := servers[node].PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return ttl
	}
	step := func(offset time.Duration) {
		t.Helper()
		if _, err := target.Host.SetClock(ctx, offset); err != nil {
			t.Fatal(err)
		}
		aheadBy(t, target, offset)
		aheadBy(t, control, 0)
	}

	step(0)
	set("forward")
	step(time.Minute)
	if n, err := servers[target].Exists(ctx, "forward").Result(); err != nil || n != 0 {
		t.Errorf("a key with 30 s to live is there after +60 s: %d, %v", n, err)
	}
	if ttl := left(control, "forward"); ttl <= 0 {
		t.Errorf("it is gone on %s too: %s", control.Name, ttl)
	}

	step(0)
	set("back")
	step(-time.Minute)
	if ttl := left(target, "back"); ttl <= time.Minute {
		t.Errorf("after -60 s a key of 30 s lives for %s", ttl)
	}
	if ttl := left(control, "back"); ttl <= 0 || ttl > 30*time.Second {
		t.Errorf("on %s it lives for %s", control.Name, ttl)
	}

	step(0)
	if ttl := left(target, "back"); ttl <= 0 || ttl > 30*time.Second {
		t.Errorf("back in step it lives for %s", ttl)
	}
	if moved := wallAhead() - machine; moved.Abs() > time.Second {
		t.Errorf("the clock of this machine moved by %s", moved)
	}
}

// faultClockRate slows a clock down from true time on. A first step would end leases by itself.
func faultClockRate(t *testing.T, target *Node) {
	const speed, tolerance = 0.1, 20 * time.Millisecond
	moment, err := target.Host.SetClockRate(t.Context(), speed)
	if err != nil {
		t.Fatal(err)
	}
	behind := func(since, now int64) time.Duration { return time.Duration((1 - speed) * float64(now-since)) }
	clustertest.Eventually(t, patience, func() error {
		reading, err := target.Host.Clock(t.Context())
		if err != nil {
			return err
		}
		least, most := -behind(moment.From, reading.Asked.To)-tolerance, -behind(moment.To, reading.Asked.From)+tolerance
		if low, high := reading.Offset(); low > most || high < least {
			return fmt.Errorf("between %s and %s ahead, want %s to %s", low, high, least, most)
		}
		return nil
	})
	if _, err := target.Host.SetClockRate(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	aheadBy(t, target, 0)
}

// faultProgram cuts a program off from one server. The program still runs, its streams stay connected, and it
// still reaches the other servers.
func faultProgram(t *testing.T, cluster Cluster) {
	n1, n2 := cluster.Servers()[0], cluster.Servers()[1]
	program, err := cluster.Start(t.Context(), Program{
		Name: "w1", Networked: true, Args: []string{"agent"}, // an agent repeats an unknown method in its error
	})
	if err != nil {
		t.Fatal(err)
	}
	echo := func(when string) {
		t.Helper()
		if _, err := io.WriteString(program.Input, `{"id":7,"Method":"`+when+`"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 1024)
		read, err := program.Output.Read(buffer)
		if err != nil || !strings.Contains(string(buffer[:read]), when) {
			t.Errorf("%s: answers %q, %v", when, buffer[:read], err)
		}
	}
	echo("before")
	if err := program.Host.Dial(t.Context(), n1.Address, 5*time.Second); err != nil {
		t.Errorf("before: %v", err)
	}
	if _, err := program.Host.Cut(t.Context(), agent.Cut{ID: "f9", Peers: []string{n1.IP}}); err != nil {
		t.Fatal(err)
	}
	echo("cut-off")
	if err := program.Host.Dial(t.Context(), n1.Address, 300*time.Millisecond); err == nil {
		t.Error("cut off and connected all the same")
	}
	if err := program.Host.Dial(t.Context(), n2.Address, 5*time.Second); err != nil {
		t.Errorf("control: %v", err)
	}
	if _, dropped, err := program.Host.Heal(t.Context(), "f9"); err != nil || dropped == 0 {
		t.Errorf("dropped %d, %v", dropped, err)
	}
	if err := program.Host.Dial(t.Context(), n1.Address, 5*time.Second); err != nil {
		t.Errorf("healed: %v", err)
	}
	signal(t, program, agent.Stop)
	signal(t, program, agent.Continue)
	echo("continued")
	if err := program.Input.Close(); err != nil {
		t.Fatal(err)
	}
	if exit := <-program.Exited; !exit.Clean {
		t.Errorf("ended with %+v", exit)
	}
}

// TestClose: nothing is left of servers, a program without network, and a stopped server.
func TestClose(t *testing.T) {
	docker := clustertest.Engine(t)
	r := request(t, "redis")
	cluster, err := Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close(context.Background()) })
	if err := isLeft(docker, r.Run, true); err != nil {
		t.Fatal(err)
	}
	isolated, err := cluster.Start(t.Context(), Program{Name: "resource", Args: []string{"server", "--servers", "memory", "--socket", cluster.Folder() + "/s"}})
	if err != nil {
		t.Fatal(err)
	}
	if isolated.IP != "" || isolated.Host != nil {
		t.Errorf("a program without network has address %q, host %v", isolated.IP, isolated.Host)
	}
	broken, err := cluster.Start(t.Context(), Program{Name: "w1", Args: []string{"--no-such-flag"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit := <-broken.Exited; exit.Clean || !strings.Contains(exit.Reason, "64") {
		t.Errorf("a program that fails: %+v", exit)
	}
	clustertest.Eventually(t, patience, func() error {
		if text := broken.Errors.String(); !strings.Contains(text, "no-such-flag") {
			return fmt.Errorf("its error output is %q", text)
		}
		return nil
	})
	signal(t, cluster.Servers()[0], agent.Stop)
	for range 2 {
		if err := cluster.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := isLeft(docker, r.Run, false); err != nil {
			t.Error(err)
		}
	}
	if exit := <-isolated.Exited; exit.Clean {
		t.Errorf("a removed program ended with %+v", exit)
	}
	if err := cluster.Servers()[0].Host.Ready(t.Context()); err == nil {
		t.Error("a removed server is ready")
	}
}

// TestStartCancelled: a start that is cancelled halfway leaves nothing.
func TestStartCancelled(t *testing.T) {
	client := clustertest.Engine(t)
	for _, c := range []struct {
		name, servers string
		begun         func(Request) error
	}{
		{"with the network", "redis", func(r Request) error { return isLeft(client, r.Run, true) }},
		{"with the first server", "redis5", func(r Request) error {
			_, err := client.Logs(context.Background(), (&docker{request: r}).serverName("n1"), 0, time.Time{})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t, c.servers)
			t.Cleanup(func() { _, _ = client.RemoveRun(context.Background(), r.Run) })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			started := make(chan error, 1)
			go func() {
				cluster, err := Start(ctx, r)
				if err == nil { // the start was faster
					err = cluster.Close(t.Context())
				}
				started <- err
			}()
			clustertest.Eventually(t, patience, func() error { return c.begun(r) })
			cancel()
			t.Logf("given up with %v", <-started)
			if err := isLeft(client, r.Run, false); err != nil {
				t.Error(err)
			}
		})
	}
}

// isLeft checks whether the engine has something of a run, as wanted.
func isLeft(docker *engine.Engine, run string, want bool) error {
	runs, err := docker.Runs(context.Background())
	if err != nil {
		return err
	}
	if there := slices.ContainsFunc(runs, func(r engine.Run) bool { return r.ID == run }); there != want {
		return fmt.Errorf("something of run %s is there: %v", run, there)
	}
	return nil
}

// TestWithLog: an error is reported even if the engine does not answer. An engine that answers adds the log to
// the error.
func TestWithLog(t *testing.T) {
	const text = "out of luck\n"
	for _, answers := range []bool{true, false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/_ping"):
				w.Header().Set("Api-Version", "1.41")
			case strings.HasSuffix(r.URL.Path, "/networks"):
				_, _ = io.WriteString(w, "[]")
			case answers: // a frame of standard output, see package stdcopy
				_, _ = fmt.Fprintf(w, "\x01\x00\x00\x00\x00\x00\x00%c%s", len(text), text)
			default:
				<-r.Context().Done()
			}
		}))
		t.Setenv("DOCKER_HOST", "tcp://"+server.Listener.Addr().String())
		connected, err := engine.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // as in an interrupted run
		began := time.Now()
		failed := (&docker{engine: connected}).withLog(ctx, agent.ErrNoAnswer, "n1")
		if !errors.Is(failed, agent.ErrNoAnswer) || strings.Contains(failed.Error(), strings.TrimSpace(text)) != answers || time.Since(began) > 2*logTimeout {
			t.Errorf("an engine that answers: %v: %v", answers, failed)
		}
		_ = connected.Close()
		server.Close()
	}
}

// atBoot is an agent whose clock says that its machine has just booted.
const atBoot = `package main

import (
	"bufio"
	"fmt"
	"os"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println("{\"id\":1,\"Now\":1}")
	}
}
`

// TestEngineElsewhere: an engine on another machine is refused before servers' images are made there. An engine
// on this machine is accepted by any address.
func TestEngineElsewhere(t *testing.T) {
	clustertest.Engine(t)
	t.Setenv("DOCKER_HOST", "tcp://"+relayed(t, engineSocket(t)))
	folder := t.TempDir()
	source, elsewhere := filepath.Join(folder, "main.go"), filepath.Join(folder, "agent")
	if err := os.WriteFile(source, []byte(atBoot), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", elsewhere, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, binary := range []string{clustertest.Binary(t), elsewhere} {
		r := request(t, "redis")
		r.Binary, r.Spec.Image = binary, "no-such-recipe" // the step after the check fails
		_, err := Start(t.Context(), r)
		if err == nil || errors.Is(err, agent.ErrOtherClock) != (binary == elsewhere) {
			t.Errorf("elsewhere: %t: %v", binary == elsewhere, err)
		}
	}
}

// engineSocket is the path of the test engine's socket.
func engineSocket(t *testing.T) string {
	t.Helper()
	socket, is := strings.CutPrefix(cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock"), "unix://")
	if !is {
		t.Skip("the engine is not behind a socket")
	}
	return socket
}

// relayed forwards TCP connections to a Unix socket, and returns its address.
func relayed(t *testing.T, socket string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			outer, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(outer.(*net.TCPConn), socket)
		}
	}()
	return listener.Addr().String()
}

// relay forwards both directions of a connection, each until its own end.
func relay(outer *net.TCPConn, socket string) {
	defer outer.Close()
	inner, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return
	}
	defer inner.Close()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(inner, outer); _ = inner.CloseWrite() })
	both.Go(func() { _, _ = io.Copy(outer, inner); _ = outer.CloseWrite() })
	both.Wait()
}
