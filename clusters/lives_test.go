package clusters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/application/replica"
)

// billing is a user's program. It prints where it runs, and then does one piece of work after another.
const billing = `#!/bin/sh
echo "did hosts:$(getent ahostsv4 biller | cut -d' ' -f1 | sort -u | wc -l),name:$NAME,told:$1"
while :; do
	n=$((n + 1))
	echo "did $n"
	sleep 0.02
done
`

// billingConfig is the launcher's configuration for that program.
func billingConfig(name string) replica.Config {
	return replica.Config{Name: name, Says: map[history.Function][]string{history.Did: {`^did (?P<id>\S+)$`}}}
}

// printed are the events that a replica prints.
type printed struct {
	*testing.T
	events chan history.Event // closed when the output ends
	last   int64              // Time of the last event
}

func read(t *testing.T, node *Node) *printed {
	p := &printed{T: t, events: make(chan history.Event, 1<<16)}
	go func() {
		defer close(p.events)
		for lines := bufio.NewScanner(node.Output); lines.Scan(); {
			var e history.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("%s: %q: %v", node.Name, lines.Text(), err)
			}
			p.events <- e
		}
	}()
	return p
}

// next waits for an event of a function and ID whose time bracket begins at from or later.
func (p *printed) next(f history.Function, id string, from int64) history.Event {
	p.Helper()
	for timeout := time.After(patience); ; {
		select {
		case e, open := <-p.events:
			if !open {
				p.Fatalf("the output has ended before %s %s", f, id)
			}
			if e.Time < p.last || e.From > e.Time || e.From <= 0 {
				p.Errorf("%+v after one of %d", e, p.last)
			}
			p.last = e.Time
			if e.F == f && (id == "" || e.ID == id) && e.From >= from {
				return e
			}
		case <-timeout:
			p.Fatalf("no %s %s", f, id)
		}
	}
}

// rest reads all events until the output ends, and counts those of a function.
func (p *printed) rest(f history.Function) (count int) {
	p.Helper()
	for timeout := time.After(patience); ; {
		select {
		case e, open := <-p.events:
			if !open {
				return count
			}
			if e.F == f {
				count++
			}
		case <-timeout:
			p.Fatal("the output does not end")
		}
	}
}

// programsOf lists the command names of the processes on a node.
func programsOf(t *testing.T, node *Node) (names []string) {
	t.Helper()
	all, err := node.Host.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		names = append(names, p.Command)
	}
	return names
}

// checkSurvivesKills pauses a replica, and kills and restarts it, twice. Its events continue.
func checkSurvivesKills(t *testing.T, node *Node, events *printed, first string) {
	t.Helper()
	events.next(history.Started, "", 0)
	events.next(history.Did, first, 0)
	signal(t, node, agent.Stop)
	if names := programsOf(t, node); !slices.Contains(names, "lockcheck") || !slices.Contains(names, "sh") {
		t.Errorf("%v are stopped, want lockcheck and its program among them", names)
	}
	stopped := history.Now()
	signal(t, node, agent.Continue)
	events.next(history.Did, "", stopped)
	for range 2 {
		kill(t, node)
		killed := history.Now()
		if _, err := node.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		events.next(history.Started, "", killed)
		events.next(history.Did, first, killed)
		events.next(history.Did, "2", killed)
		if err := node.Host.Ready(t.Context()); err != nil {
			t.Errorf("not ready: %v", err)
		}
	}
}

// endsWithInput closes the input of a node, whose process must then end.
func endsWithInput(t *testing.T, node *Node) {
	t.Helper()
	if err := node.Input.Close(); err != nil {
		t.Error(err)
	}
	select {
	case exit := <-node.Exited:
		if !exit.Clean || exit.Killed {
			t.Errorf("%+v at the end of the input", exit)
		}
	case <-time.After(patience):
		t.Error("it outlives its input")
	}
}

// userServers are servers that start a user's program in an image built from a folder.
func userServers(t *testing.T, names ...string) Spec {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"billing":    billing,
		"Dockerfile": "FROM debian:trixie-slim\nCOPY billing /\nENTRYPOINT [\"sh\", \"/billing\"]\nCMD [\"image\"]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var servers []CustomServer
	for _, name := range names {
		servers = append(servers, CustomServer{
			Program: "biller", Node: name, Names: []string{"biller"}, Image: ProgramImage{Build: folder}, Environment: []string{"NAME={name}"},
			Launched: func(p Place, command []string) ([]string, map[string]string) {
				return billingConfig(p.Name).Launched(p.Folder, command)
			},
		})
	}
	servers[1].Command = []string{"{name}"}
	return Custom("app", servers)
}

// TestLaunched: the output of a replica becomes events of its node, and continues after a kill and restart.
// Another replica is not affected.
func TestLaunched(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	r := request(t, "redis")
	r.Spec = userServers(t, "biller-1", "bin") // the second name is also a folder of lockcheck's
	if planned, _ := r.Spec.Plan(2, 0); planned[0].Name != "biller-1" || planned[1].Name != "bin" {
		t.Errorf("planned are %s and %s", planned[0].Name, planned[1].Name)
	}
	cluster, err := Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close(context.WithoutCancel(t.Context())) })
	node, control := cluster.Servers()[0], cluster.Servers()[1]
	if node.Name != "biller-1" || control.Name != "bin" || node.Clock == nil || node.CanWipe() == nil {
		t.Errorf("nodes %q and %q, clock: %v, wipe: %v", node.Name, control.Name, node.Clock, node.CanWipe())
	}
	events, others := read(t, node), read(t, control)
	others.next(history.Did, "hosts:2,name:bin,told:bin", 0)
	checkSurvivesKills(t, node, events, "hosts:2,name:biller-1,told:image")
	log, err := cluster.Log(t.Context(), "biller-1", LogPart{})
	if err != nil || strings.Count(log, "told:image\n") != 3 {
		t.Errorf("the log is not of three lives: %v\n%.500s", err, log)
	}
	others.next(history.Did, "", 0)
	if _, err := io.WriteString(control.Input, "is ignored\n"); err != nil {
		t.Error(err)
	}
	endsWithInput(t, control)
	if err := cluster.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	events.rest("")
	if again := others.rest(history.Started); again > 0 {
		t.Errorf("the control was started %d times more", again)
	}
}

// TestLaunchedWithout: an image without a command, or with a program that does not exist, is an error and no
// crash.
func TestLaunchedWithout(t *testing.T) {
	t.Parallel()
	clustertest.Engine(t)
	for want, dockerfile := range map[string]string{
		"neither an entry point nor a command": "FROM debian:trixie-slim\nCMD []\n",
		"no-such-program":                      "FROM debian:trixie-slim\nCMD [\"no-such-program\"]\n",
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
			t.Fatal(err)
		}
		r := request(t, "redis")
		r.Spec = userServers(t, "a", "b")
		r.Spec.own[0].Image.Build = folder
		cluster, err := Start(t.Context(), r)
		if err == nil {
			err = errors.Join(endOf(t, cluster.Servers()[0]), cluster.Close(t.Context()))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// endOf waits for the end of a node's process.
func endOf(t *testing.T, node *Node) error {
	t.Helper()
	go io.Copy(io.Discard, node.Output) //nolint:errcheck // the output ends with the node
	select {
	case exit := <-node.Exited:
		return fmt.Errorf("%s%s", exit.Reason, node.lastWords())
	case <-time.After(patience):
		return errors.New("it does not end")
	}
}

// TestRestarts is TestLaunched without Docker.
func TestRestarts(t *testing.T) {
	clustertest.StartsServers(t)
	cluster := started(t, "none")
	program := filepath.Join(cluster.Folder(), "billing")
	if err := os.WriteFile(program, []byte(billing), 0o700); err != nil {
		t.Fatal(err)
	}
	start := func(name string) (*Node, *printed) {
		args, files := billingConfig(name).Launched(cluster.Folder(), []string{"sh", program, "k"})
		file := filepath.Join(cluster.Folder(), name+".json")
		if err := os.WriteFile(file, []byte(files["replica.json"]), 0o600); err != nil {
			t.Fatal(err)
		}
		args[len(args)-1] = file
		node, err := cluster.Start(t.Context(), Program{Name: name, Args: args, Restarts: true})
		if err != nil {
			t.Fatal(err)
		}
		return node, read(t, node)
	}
	node, events := start("biller-1")
	control, others := start("biller-2")
	checkSurvivesKills(t, node, events, "hosts:0,name:,told:k")
	others.next(history.Did, "", 0)
	endsWithInput(t, control)
	if err := cluster.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	events.rest("")
	if again := others.rest(history.Started); again > 1 {
		t.Errorf("the control was started %d times", again)
	}
	if err := node.Again(t.Context()); err == nil {
		t.Error("it is started again in a cluster that is closed")
	}
	once, err := started(t, "none").Start(t.Context(), Program{Name: "once", Args: []string{"version"}})
	if err != nil {
		t.Fatal(err)
	}
	if once.CanRestart() == nil {
		t.Error("any program can be started again")
	}
}
