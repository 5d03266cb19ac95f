package nemesis

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
	"lockcheck/clusters/disk"
	"lockcheck/history"
)

// TestDiskFaults: what each fault of a disk does to a real server. A server that never writes meets none.
func TestDiskFaults(t *testing.T) {
	spec, _ := clusters.ByName("redis-aof-everysec")
	m := newMatrix(t, clusters.Request{Spec: spec, Disks: true})
	redis := m.env.Servers[0]
	config := func(value string) {
		t.Helper()
		if answer := ask(t, redis.Address, "CONFIG SET appendfsync "+value); answer != "+OK" {
			t.Fatalf("appendfsync %s: %s", value, answer)
		}
	}
	// inflict returns the evidence of the healing. While the fault is in force, during runs.
	inflict := func(fault string, delay time.Duration, during func()) (met int64, healed string) {
		t.Helper()
		d := &diary{t: t, on: func(f history.Fault) {
			if f.Stage == history.Proven {
				t.Log(f.Evidence)
				during()
			}
		}}
		step := Step{ID: fault, Fault: fault, Target: redis.Name, Delay: Span{Plus: delay}, For: Span{Plus: time.Millisecond}}
		d.nemesis(m.env, step).Run(t.Context(), plenty)
		if d.stage(fault, history.Proven).ID == "" || d.stage(fault, history.ProvenHealed).ID == "" {
			t.Fatalf("%s: %v\n%s%s", fault, d.order(), d.stage(fault, history.Unproven).Evidence, d.stage(fault, history.Unhealed).Evidence)
		}
		m.healthy("after " + fault)
		config("always") // also a write that must succeed again
		if answer := ask(t, redis.Address, "SET after "+fault); answer != "+OK" {
			t.Errorf("after %s: %s", fault, answer)
		}
		healed = d.stage(fault, history.ProvenHealed).Evidence
		t.Log(healed)
		return *d.stage(fault, history.Healed).Dropped, healed
	}
	met := func() disk.Tally {
		found, err := redis.Host.CheckDisk(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return found.Met
	}

	config("no")
	for _, fault := range []string{history.DiskFull, history.FsyncError} {
		if n, healed := inflict(fault, 0, func() {}); n != 0 || strings.Contains(healed, "had ended") {
			t.Errorf("%s of an idle server met %d operations: %s", fault, n, healed)
		}
		config("no")
	}

	config("everysec")
	n, healed := inflict(history.SlowDisk, 100*time.Millisecond, func() {
		if answer := ask(t, redis.Address, "SET slow 1"); answer != "+OK" {
			t.Errorf("on a slow disk: %s", answer)
		}
		clustertest.Eventually(t, probeTimeout, func() error {
			if now := met(); now.Writes == 0 {
				return fmt.Errorf("met %+v", now)
			}
			return nil
		})
	})
	if n == 0 || strings.Contains(healed, "had ended") {
		t.Errorf("slow-disk met %d operations: %s", n, healed)
	}

	// With appendfsync always, Redis ends when it cannot write or sync.
	for _, fault := range []string{history.DiskFull, history.FsyncError} {
		n, healed := inflict(fault, 0, func() {
			tell(t, redis.Address, "SET lost "+strings.Repeat("1", 2*4096))
			if _, err := poll(t.Context(), func(ctx context.Context) (string, error) { return noProcess(ctx, redis) }); err != nil {
				t.Error(err)
			}
		})
		if n == 0 || !strings.Contains(healed, "it had ended and was started again") {
			t.Errorf("%s met %d operations: %s", fault, n, healed)
		}
	}
}
