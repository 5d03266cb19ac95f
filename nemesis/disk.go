package nemesis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/clusters/disk"
	"lockcheck/history"
)

// diskFault makes the disks of servers fail or delay operations. A server that ends because of that is started again
// at the healing.
type diskFault struct {
	targets []*clusters.Node
	fault   disk.Fault
	kill    *kill // knows when a server is back
	// met is what the fault met until it was healed, one for each target.
	met []disk.Tally
}

// hasDisk says why a node is not a server that can run on a disk of package disk; nil if it is.
func hasDisk(env Environment, node *clusters.Node) error {
	if !env.server(node) {
		return errors.New("only servers run on disks that can have faults; name a server")
	}
	return node.CanMountDisk()
}

func diskFullKind() Kind {
	return diskKind(history.DiskFull, "fail a server's writes that need space (ENOSPC)", disk.Fault{Full: true})
}

func fsyncErrorKind() Kind {
	return diskKind(history.FsyncError, "fail fsync and fdatasync of a server (EIO)", disk.Fault{NoSync: true})
}

func slowDiskKind() Kind {
	kind := diskKind(history.SlowDisk, "delay each write and each sync of a server", disk.Fault{})
	kind.Uses = []Option{UsesDelay}
	kind.Random = func(rng *rand.Rand, env Environment, step *Step) {
		randomPause(rng, env, step)
		randomDelay(rng, step)
	}
	return kind
}

// maxDiskDelay leaves a probe, which writes and syncs, enough of pollTimeout.
const maxDiskDelay = 1500 * time.Millisecond

// diskKind makes a kind of fault of disks. The delay of a step is added to the fault.
func diskKind(name, summary string, fault disk.Fault) Kind {
	return Kind{
		Name: name, Summary: summary, Target: roleOne, OnDisk: true, Can: hasDisk, Random: randomPause,
		New: func(env Environment, order Order) (Fault, error) {
			fault.Delay = order.Step.Delay.Of(env.Lease)
			return &diskFault{targets: order.Targets, fault: fault, kill: &kill{env: env, targets: order.Targets}}, nil
		},
	}
}

func (d *diskFault) Apply(ctx context.Context) (agent.Moment, error) { return d.set(ctx, d.fault) }

func (d *diskFault) set(ctx context.Context, fault disk.Fault) (agent.Moment, error) {
	return eachNode(d.targets, func(node *clusters.Node) (agent.Moment, error) { return node.SetDisk(ctx, fault) })
}

// Prove shows that a probe on the disk meets the fault, or that the server has met it and ended.
func (d *diskFault) Prove(ctx context.Context) (string, error) {
	return pollEach(ctx, d.targets, func(ctx context.Context, node *clusters.Node) (string, error) {
		found, err := node.Host.CheckDisk(ctx)
		if err != nil {
			return "", err
		}
		evidence, is := meets(d.fault, found)
		if !is {
			return "", fmt.Errorf("%s does not meet the fault: %s", node.Name, evidence)
		}
		return node.Name + ": " + evidence, nil
	})
}

// meets says what shows that a fault is in force.
func meets(fault disk.Fault, found disk.Condition) (evidence string, is bool) {
	if found.Ended {
		return "it has ended, after " + tallied(fault, found.Met), found.Met != (disk.Tally{})
	}
	switch {
	case fault.Full:
		is = found.Write.Errno == syscall.ENOSPC
	case fault.NoSync:
		is = found.Sync.Errno == syscall.EIO
	default:
		is = found.Write.Took >= fault.Delay && found.Sync.Took >= fault.Delay
	}
	return probed(found), is
}

// probed says what the probe of a disk met.
func probed(found disk.Condition) string {
	result := func(p disk.Probe) string {
		if p.Errno != 0 {
			return "fails (" + p.Errno.Error() + ")"
		}
		return "takes " + readable(p.Took).String()
	}
	return "a write " + result(found.Write) + ", a sync " + result(found.Sync)
}

// tallied says what a fault did to the operations of a server.
func tallied(fault disk.Fault, met disk.Tally) string {
	switch {
	case fault.Full:
		return several(met.Writes, "write") + " failed with ENOSPC"
	case fault.NoSync:
		return several(met.Syncs, "sync") + " failed with EIO"
	}
	return several(met.Writes, "write") + " and " + several(met.Syncs, "sync") + " held back"
}

func several(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// Heal mends the disks, and asks them what the fault has met. A disk that ended with its server has left the answer
// behind, and a restart of the server overwrites it.
func (d *diskFault) Heal(ctx context.Context) (Healing, error) {
	moment, err := d.set(ctx, disk.Fault{})
	healing := Healing{Moment: moment, Dropped: new(int64)}
	d.met = nil
	for _, node := range d.targets {
		if err != nil {
			break
		}
		var found disk.Condition
		found, err = node.Host.CheckDisk(ctx)
		d.met = append(d.met, found.Met)
		*healing.Dropped += found.Met.Writes + found.Met.Syncs
	}
	return healing, err
}

// ProveHealed waits until the servers serve and a probe on each disk meets no fault. Servers that have ended or hang are
// started again.
func (d *diskFault) ProveHealed(ctx context.Context) (string, error) {
	for _, node := range d.targets { // first of all, because they may need each other
		if err := node.Revive(ctx); err != nil {
			return "", err
		}
	}
	var seen []string
	for i, node := range d.targets {
		evidence, hung, err := d.back(ctx, node)
		if err != nil {
			return "", err
		}
		end := ""
		switch revived := node.DiskSettled(); {
		case hung:
			end = fmt.Sprintf("; it did not recover within %s and was restarted", hangLimit)
		case revived:
			end = "; it had ended and was started again"
		}
		seen = append(seen, fmt.Sprintf("%s: %s%s; %s", node.Name, tallied(d.fault, d.met[i]), end, evidence))
	}
	return strings.Join(seen, "; "), nil
}

// hangLimit is how long a server may take to recover by itself. Some never do: NATS switches JetStream off until it is
// restarted. PostgreSQL took 22 s for its recovery on a busy machine.
const hangLimit = 45 * time.Second

// back waits until a server serves on a sound disk, and restarts a server that hangs. A server may serve for a moment
// before it ends because of the fault, and then it is waited for again.
func (d *diskFault) back(ctx context.Context, node *clusters.Node) (evidence string, hung bool, err error) {
	until := time.Now().Add(hangLimit)
	for range healAttempts {
		patient, cancel := context.WithTimeout(ctx, max(time.Until(until), disturbedLimit))
		serves, failed := d.kill.serves(patient, node)
		if failed != nil && patient.Err() != nil && ctx.Err() == nil {
			hung = true
			if _, failed = node.Kill(ctx); failed == nil {
				serves, failed = d.kill.serves(ctx, node)
			}
		}
		cancel()
		if failed != nil {
			return "", hung, failed
		}
		var sound string
		sound, err = poll(ctx, func(ctx context.Context) (string, error) { return d.sound(ctx, node) })
		if err == nil {
			return sound + "; " + serves, hung, nil
		}
	}
	return "", hung, err
}

// sound returns an error while a probe on the disk still meets the fault.
func (d *diskFault) sound(ctx context.Context, node *clusters.Node) (string, error) {
	found, err := node.Host.CheckDisk(ctx)
	switch {
	case err != nil:
		return "", err
	case found.Ended, found.Write.Errno != 0, found.Sync.Errno != 0, d.fault.Delay > 0 && max(found.Write.Took, found.Sync.Took) >= d.fault.Delay:
		return "", fmt.Errorf("%s: %s", node.Name, probed(found))
	}
	return probed(found), nil
}

// randomDelay delays long enough to be told from a busy machine.
func randomDelay(rng *rand.Rand, step *Step) {
	step.Delay = Span{Plus: time.Duration(50+rng.IntN(351)) * time.Millisecond}
}

var _ Fault = (*diskFault)(nil)
