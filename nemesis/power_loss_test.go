package nemesis

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/history"
)

// TestPowerLoss: every kind of servers that keeps its data runs on disks that can lose power. It survives that and the
// other faults of disks, and faults of whole servers are what they are without such disks.
func TestPowerLoss(t *testing.T) {
	for _, spec := range clusters.Table() {
		if powerLossKind().Support(spec).Servers != nil {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, clusters.Request{Spec: spec, Disks: true})
			m.healthy("before any fault")
			for _, server := range m.env.Servers { // as a run does: no server has to survive a loss while it is set up
				if err := server.Host.SyncDisk(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, kind := range []Kind{pauseKind(), freezeKind(), killKind(), powerLossKind(), powerLossKind(), diskFullKind(), fsyncErrorKind(), slowDiskKind(), wipeKind()} {
				if kind.Support(spec).Servers == nil {
					t.Run(kind.Name, func(t *testing.T) { m.inflict(t, m.step(kind, roleOne)) })
				}
			}
		})
	}
}

// TestPowerLossLosesWrites: what a Redis has not synced survives that its process is killed, and does not survive the
// loss of power. What was synced survives both.
func TestPowerLossLosesWrites(t *testing.T) {
	spec, _ := clusters.ByName("redis-aof-everysec")
	m := newMatrix(t, clusters.Request{Spec: spec, Disks: true})
	redis := m.env.Servers[0]
	set := func(key string) {
		if answer := ask(t, redis.Address, "SET "+key+" 1"); answer != "+OK" {
			t.Fatalf("SET %s: %s", key, answer)
		}
	}
	holds := func(key string) bool { return ask(t, redis.Address, "EXISTS "+key) == ":1" }
	ask(t, redis.Address, "CONFIG SET appendfsync no") // so that nothing is synced by chance
	set("synced")
	if err := redis.Host.SyncDisk(t.Context()); err != nil {
		t.Fatal(err)
	}
	set("written")
	m.inflict(t, Step{ID: "kill", Fault: history.Kill, Target: redis.Name, For: Span{Plus: time.Millisecond}})
	if !holds("synced") || !holds("written") {
		t.Error("a kill has lost writes")
	}
	ask(t, redis.Address, "CONFIG SET appendfsync no")
	set("late")
	m.inflict(t, Step{ID: "outage", Fault: history.PowerLoss, Target: redis.Name, For: Span{Plus: time.Millisecond}})
	if !holds("synced") || holds("late") {
		t.Error("a loss of power has lost what was synced, or not lost what was not")
	}
	if lost, err := redis.Host.Lost(t.Context()); err != nil || len(lost.Losses) == 0 || lost.Losses[0].Bytes == 0 || !strings.HasPrefix(lost.Losses[0].File, "appendonlydir/") {
		t.Errorf("reported as lost: %+v, %v", lost, err)
	}
}

// ask sends a command to a Redis and returns the first line of its answer.
func ask(t *testing.T, address, command string) string {
	t.Helper()
	line, err := tell(t, address, command)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// tell is ask for a Redis that may end before it answers.
func tell(t *testing.T, address, command string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	answer := make([]byte, 256)
	n, err := conn.Read(answer)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(answer[:n]), "\r\n")
	return line, nil
}
