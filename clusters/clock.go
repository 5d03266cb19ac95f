package clusters

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/engine"
	"lockcheck/clusters/images"
	"lockcheck/clusters/vdso"
)

// launcherPath is where the agents of a run install the launcher of its servers. It is in the shared volume,
// because nothing is known about a server's image.
const launcherPath = sharedFolder + "/bin/lockcheck"

// faketimeLibrary is the path of libfaketime in Debian's images.
const faketimeLibrary = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"

// clockFile holds the offset of a node's wall clock. It is outside a server's folder, because it outlasts
// the server's disk.
func clockFile(node *Node) string { return sharedFolder + "/clocks/" + node.Name + "/offset" }

// driverOf returns the clock driver for servers of an image: libfaketime if the image is prepared for it, else
// the vDSO driver, which needs no preparation.
func driverOf(image engine.Image) agent.ClockDriver {
	if image.Labels[images.ClockLabel] == images.Libfaketime {
		return agent.Libfaketime
	}
	return agent.VDSO
}

// clockFlags are the clock flags of a server's agent.
func clockFlags(node *Node, driver agent.ClockDriver) []string {
	return []string{"--clock-file", clockFile(node), "--clock-driver", string(driver), "--launcher", launcherPath}
}

// ClockSocket is where a program with a movable clock tells its time (vdso.TellTime); folder is that of the cluster.
func ClockSocket(folder, program string) string { return filepath.Join(folder, program+".clock.sock") }

// ProgramProbes ask a program with a movable clock, whose address is its ClockSocket.
type ProgramProbes struct{ portProbes }

// Clock implements agent.Probes.
func (ProgramProbes) Clock(ctx context.Context, socket string) (time.Time, error) {
	return vdso.Ask(ctx, socket)
}

// clocked returns the arguments with which lockcheck starts a program whose clock the file moves, after startClock.
func (n *Node) clocked(p Program, file string) []string {
	if !p.Clock || n.Clock != nil {
		return p.Args
	}
	return slices.Concat(vdso.Launcher("", file, vdso.ForChildren)[1:], []string{"/proc/self/exe"}, p.Args)
}

// startClock sets the node's clock to true time before its server or program starts. If the clock cannot be moved,
// node.Clock keeps the reason.
func startClock(ctx context.Context, node *Node) error {
	node.Clock = node.Server.NoClock
	_, err := node.Host.SetClock(ctx, 0)
	if errors.Is(err, agent.ErrClock) {
		node.Clock, err = err, nil
	}
	return err
}

// withClock returns command and environment of a server whose wall clock can be moved, after startClock. They
// are the same with and without clock faults, so that a run and its control differ only in the fault. A server
// whose clock cannot be moved is started unchanged.
func withClock(node *Node, driver agent.ClockDriver, command, faketime []string) (launched, env []string) {
	switch {
	case node.Clock != nil:
		return command, nil
	case driver == agent.VDSO:
		return append(vdso.Launcher(launcherPath, clockFile(node)), command...), nil
	}
	return command, append([]string{
		"FAKETIME_TIMESTAMP_FILE=" + clockFile(node),
		"FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
		"FAKETIME_FORCE_MONOTONIC_FIX=0",
	}, faketime...)
}
