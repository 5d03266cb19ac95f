package runs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"lockcheck/clusters/clustertest"
)

// soakVariable is the environment variable that says how often to kill lockcheck.
const soakVariable = "LOCKCHECK_SOAK"

// TestKilledAnywhere kills lockcheck with SIGKILL at random moments, from its start to its end. Each time
// nothing of a run with active faults may be left.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	clustertest.StartsServers(t)
	times := 10
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if times, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
	}
	clock, tables := readHostClock(), hostTables(t)
	var begun atomic.Int64
	t.Run("kill", func(t *testing.T) { // it ends when all its parallel subtests have ended
		for i := range times {
			// Of the first ten, one in five runs is on Docker, where a run takes longer to start.
			args, span := []string{"--ttl", "500ms", "--nemesis", "pause,kill:holder"}, 6*time.Second
			if i%5 == 4 || i >= 10 {
				clustertest.Engine(t)
				args, span = onDocker[i/5%len(onDocker)], 20*time.Second
			}
			moment := time.Duration(rand.Int64N(int64(span)))
			t.Run(fmt.Sprintf("%d after %s", i, moment.Round(time.Millisecond)), func(t *testing.T) {
				t.Parallel()
				begun.Add(killedAfter(t, moment, append(args, "--nemesis-interval", "500ms", "--time-limit", "60s")...))
			})
		}
	})
	if begun.Load() == 0 {
		t.Error("no run had begun when it was killed")
	}
	if err := readHostClock().check(clock); err != nil {
		t.Error(err)
	}
	// Whenever another test makes a network, Docker adds a jump to its chain before it removes the previous
	// jump.
	now := hostTables(t)
	for end := time.Now().Add(clustertest.Slow(30 * time.Second)); now != tables && time.Now().Before(end); now = hostTables(t) {
		time.Sleep(time.Second)
	}
	if now != tables {
		t.Errorf("the firewall of the host was\n%s\nand is\n%s", tables, now)
	}
}

// onDocker are runs with faults that a kill could leave behind: stopped processes, rules, clocks, mounts, servers outside
// of their cluster, changed files.
var onDocker = [][]string{
	{"--lock", "redis", "--ttl", "500ms", "--nemesis", "pause,partition,clock,freeze"},
	{"--lock", "redis-aof", "--ttl", "500ms", "--nemesis", "power-loss,slow-disk,disk-full"},
	{"--lock", "etcd", "--nemesis", "remove-member,transfer-leader,packet-delay"},
	{"--app", "../../examples/applications/billing.yaml", "--nemesis", "stale-dns,dns-failure,kill"},
}

// hostTables returns the firewall rules of the host, as far as its tools can list them, sorted and each once: with each
// network Docker adds its jumps again, in another order, and keeps one twice if two networks are made at the same time.
// It leaves out counters and the rules of Docker's bridges, which another run may have at the same time.
func hostTables(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, command := range [][]string{{"iptables-save"}, {"nft", "list", "ruleset"}} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		output, err := exec.Command(path, command[1:]...).Output()
		if err != nil {
			t.Logf("%v: %v", command, err)
		}
		all.Write(output)
	}
	lines := strings.Split(changing.ReplaceAllString(all.String(), ""), "\n")
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n")
}

// changing matches the parts of listings that change without any rule of lockcheck: rules of Docker's
// bridges, counters, and the times of listing.
var changing = regexp.MustCompile(`(?m)^.*\bbr-[0-9a-f]{12}\b.*\n|\[\d+:\d+\]|packets \d+ bytes \d+|^#.*$`)

// killedAfter kills lockcheck after some time, and returns how many runs had begun.
func killedAfter(t *testing.T, moment time.Duration, args ...string) int64 {
	command := exec.Command(clustertest.Binary(t), append([]string{"test", "--store", t.TempDir()}, args...)...)
	journals := ownJournals(t, command)
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr")) // a file, because the reaper still writes when lockcheck is gone
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	command.Stderr = said
	t.Cleanup(func() {
		if text, _ := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("stderr: %s", text)
		}
	})
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(moment)                                              // any moment will do
	if err := command.Process.Signal(syscall.SIGSTOP); err != nil { // keeps its journal as it is
		t.Fatal(err)
	}
	before := journals.read(t)
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // "signal: killed" is expected
	journals.nothingLeft(t, before)
	return int64(len(before))
}
