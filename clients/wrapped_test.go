package clients

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockcheck/clients/protocol"
)

// TestMain lets the test binary be the child of commands, in place of lockcheck.
func TestMain(m *testing.M) {
	socket, isChild := os.LookupEnv(HoldVariable)
	if !isChild {
		os.Exit(m.Run())
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	err := Hold(socket, signals)
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// commandLock returns a worker's lock that is a command. The command starts in the given folder.
func commandLock(t *testing.T, folder string, args ...string) *wrapped {
	t.Helper()
	d := Definition{Name: "mine", Wraps: true, BusyStatus: 75, Program: protocol.Command{
		Args: args, Folder: folder, Env: []string{"GORACE=atexit_sleep_ms=0"}, // without it each child takes a second to exit
	}}
	lock, err := d.openWrapped(Config{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	})
	return lock.(*wrapped)
}

// script returns a lock that is a shell script, in which "$@" is the child's command line.
func script(t *testing.T, text string) (lock *wrapped, folder string) {
	t.Helper()
	folder = t.TempDir()
	return commandLock(t, folder, "sh", "-c", text, "sh", childSign), folder
}

func acquired(t *testing.T, lock Lock, id string) Grant {
	t.Helper()
	grant, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

func touch(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// within waits for a value or for the end of the channel.
func within[T any](t *testing.T, what string, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", what)
	}
}

// content waits until a file exists and is not empty.
func content(t *testing.T, folder, name string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil && len(text) > 0 {
			return strings.TrimSpace(string(text))
		}
	}
	t.Fatalf("%s is not there", name)
	return ""
}

// TestWrapped: flock excludes others, reports that it is busy, waits, and leaves nothing behind.
func TestWrapped(t *testing.T) {
	folder := t.TempDir()
	refused := commandLock(t, folder, "flock", "-n", "-E", "75", "{folder}/{key}", childSign)
	waiting := commandLock(t, folder, "flock", "{folder}/{key}")
	first := acquired(t, refused, "w1-1")
	if first.Lost == nil || first.Until != 0 || first.Token != 0 {
		t.Errorf("got %+v", first)
	}
	var busy *BusyError
	if _, err := refused.Acquire(t.Context(), Attempt{Key: "k", ID: "w2-1"}); !errors.As(err, &busy) {
		t.Errorf("held by another: %v", err)
	}
	other, err := refused.Acquire(t.Context(), Attempt{Key: "k2", ID: "w2-2"})
	if err != nil {
		t.Errorf("another key: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := waiting.Acquire(ctx, Attempt{Key: "k", ID: "w3-1"}); OutcomeOf(err) != Unknown || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("given up: %v", err)
	}
	if err := waiting.Release(t.Context(), Grant{Key: "k", ID: "w3-1"}); OutcomeOf(err) != Unknown {
		t.Errorf("release of what was given up: %v", err)
	}
	for _, g := range []Grant{first, other} {
		if err := refused.Release(t.Context(), g); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	last := acquired(t, waiting, "w3-2")
	if err := waiting.Release(t.Context(), last); err != nil {
		t.Errorf("release: %v", err)
	}
	if left := filesIn(t, folder); !slices.Equal(left, []string{"k", "k2"}) {
		t.Errorf("left: %q", left)
	}
}

// TestWrappedEnvironment: a command on this machine gets only the variables that every program needs. A command
// in an image gets the whole environment of its image.
func TestWrappedEnvironment(t *testing.T) {
	t.Setenv("SECRET", "x")
	for _, onHost := range []bool{true, false} {
		lock, folder := script(t, "env >environment; exec \"$@\"")
		lock.Program.OnHost = onHost
		if err := lock.Release(t.Context(), acquired(t, lock, "w1-1")); err != nil {
			t.Error(err)
		}
		environment := "\n" + content(t, folder, "environment") + "\n"
		if strings.Contains(environment, "\nSECRET=x\n") == onHost || !strings.Contains(environment, "\nPATH="+os.Getenv("PATH")+"\n") {
			t.Errorf("on the host: %t: %s", onHost, environment)
		}
	}
}

// TestWrappedWithoutChild: a command that ends before its child has failed, and what it left behind is unknown,
// except if its status is the busy status.
func TestWrappedWithoutChild(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         Outcome
		says         string
	}{
		{"busy", "exit 75", Busy, "busy"},
		{"status 0", "exit 0", Unknown, "exit status 0"},
		{"it says why", "echo trying; echo no servers >&2; exit 3", Unknown, "exit status 3: no servers"},
		{"killed", "kill -KILL $$", Unknown, "killed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lock, _ := script(t, c.script)
			_, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1"})
			if OutcomeOf(err) != c.want || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if lock.Failed() != nil {
				t.Errorf("the client has failed: %v", lock.Failed())
			}
		})
	}
	t.Run("no such command", func(t *testing.T) {
		lock := commandLock(t, t.TempDir(), "./nothing")
		if _, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1"}); OutcomeOf(err) != NoEffect || lock.Failed() == nil {
			t.Errorf("got %v, failed: %v", err, lock.Failed())
		}
	})
}

// TestWrappedGivenUp: a command that does not end is killed with its whole group, and a child that starts too
// late cannot connect.
func TestWrappedGivenUp(t *testing.T) {
	t.Run("it does not end", func(t *testing.T) {
		lock, folder := script(t, `trap "" TERM; echo $$ >shell; sleep 1000; "$@"`)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			content(t, folder, "shell")
		}()
		if _, err := lock.Acquire(ctx, Attempt{Key: "k", ID: "w1-1"}); OutcomeOf(err) != Unknown || !strings.Contains(err.Error(), "killed") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("released before it has ended", func(t *testing.T) {
		lock, folder := script(t, `trap "" TERM; echo $$ >shell; sleep 1000; "$@"`)
		ctx, cancel := context.WithCancel(t.Context())
		outcome := make(chan error, 1)
		go func() {
			_, err := lock.Acquire(ctx, Attempt{Key: "k", ID: "w1-1"})
			outcome <- err
		}()
		content(t, folder, "shell")
		cancel()
		if err := lock.Release(t.Context(), Grant{Key: "k", ID: "w1-1"}); !errors.Is(err, errWrappedGone) {
			t.Errorf("release: %v", err)
		}
		if err := <-outcome; OutcomeOf(err) != Unknown {
			t.Errorf("acquire: %v", err)
		}
	})
	t.Run("late child", func(t *testing.T) {
		lock, folder := script(t, `(while [ ! -e late ]; do sleep 0.01; done; "$@"; echo $? >status) & exit 0`)
		if _, err := lock.Acquire(t.Context(), Attempt{Key: "k", ID: "w1-1"}); OutcomeOf(err) != Unknown {
			t.Errorf("got %v", err)
		}
		touch(t, folder, "late")
		if status := content(t, folder, "status"); status != "1" {
			t.Errorf("the child ended with status %s, want 1", status)
		}
	})
}

// TestWrappedLost: if the child is told to end, or is killed, the lock is lost.
func TestWrappedLost(t *testing.T) {
	for signal, says := range map[string]string{"TERM": "", "INT": "", "KILL": "exit status 137"} {
		t.Run(signal, func(t *testing.T) {
			lock, folder := script(t, `"$@" & while [ ! -e lose ]; do sleep 0.01; done; kill -`+signal+` $!; wait $!`)
			grant := acquired(t, lock, "w1-1")
			select {
			case <-grant.Lost:
				t.Fatal("lost before it was")
			default:
			}
			touch(t, folder, "lose")
			within(t, "the loss", grant.Lost)
			err := lock.Release(t.Context(), grant)
			if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("release: %v, want %q", err, says)
			}
		})
	}
}

// TestWrappedRelease: only status 0 of a command that outlives its child is a release.
func TestWrappedRelease(t *testing.T) {
	for _, c := range []struct{ name, script, says string }{
		{"it waits for its child", `"$@"`, ""},
		{"it becomes its child", `exec "$@"`, ""},
		{"it fails afterwards", `"$@"; echo lock lost >&2; exit 4`, "exit status 4: lock lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			lock, _ := script(t, c.script)
			err := lock.Release(t.Context(), acquired(t, lock, "w1-1"))
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	t.Run("it ends before its child", func(t *testing.T) {
		lock, folder := script(t, `"$@" & while [ ! -e leave ]; do sleep 0.01; done`)
		grant := acquired(t, lock, "w1-1")
		run, _ := lock.runs.get(grant.ID)
		touch(t, folder, "leave")
		within(t, "the end of the command", run.command.Ended)
		select {
		case <-grant.Lost:
			t.Error("the child was told, by nobody")
		default:
		}
		if err := lock.Release(t.Context(), grant); OutcomeOf(err) != Unknown || !strings.Contains(err.Error(), "while its child went on") {
			t.Errorf("release: %v", err)
		}
		within(t, "the end of the child", grant.Lost)
	})
}

// TestWrappedClose: Close ends what was not released.
func TestWrappedClose(t *testing.T) {
	lock, folder := script(t, `trap "" TERM; (trap - TERM; "$@"; echo $? >status); sleep 1000`)
	grant := acquired(t, lock, "w1-1")
	run, _ := lock.runs.get(grant.ID)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if !run.command.HasEnded() {
		t.Error("the command still runs")
	}
	within(t, "the end of the child", grant.Lost)
	if left := filesIn(t, folder); slices.Contains(left, "hold-w1-1") {
		t.Errorf("left: %q", left)
	}
}

func TestWithChild(t *testing.T) {
	w := &wrapped{config: Config{Folder: "/f", Nodes: []string{"10.0.0.1:2379", "10.0.0.2:2379"}}, binary: "/lockcheck"}
	for command, want := range map[string]string{
		"flock {folder}/{key}":                        "flock /f/k /lockcheck hold",
		"flock {folder}/{key} {child} -v":             "flock /f/k /lockcheck hold -v",
		"lock --endpoints={endpoints} --ttl={ttl} x":  "lock --endpoints=10.0.0.1:2379,10.0.0.2:2379 --ttl=2 x /lockcheck hold",
		"lock {host} {port} {attempt} ${HOME} ${key}": "lock 10.0.0.1 2379 w1-1 ${HOME} ${key} /lockcheck hold",
	} {
		w.Program.Args = strings.Fields(command)
		fill := w.placeholders(Attempt{Key: "k", ID: "w1-1", TTL: 1500 * time.Millisecond})
		if got := strings.Join(w.withChild(fill), " "); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
