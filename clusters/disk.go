package clusters

import (
	"context"
	"errors"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/disk"
)

// CanMountDisk says why a server cannot run on a disk of package disk; nil if it can. A server that ends because of
// its disk is started again.
func (n *Node) CanMountDisk() error {
	if err := n.CanRestart(); err != nil {
		return err
	}
	return n.Server.noDisk()
}

// noDisk says why a server has no data on a disk that lockcheck could mount; nil if it has.
func (s Server) noDisk() error {
	for _, reason := range []error{errNothingOnDisk, errNoState, errNoFolder, errFirstLayout} {
		if errors.Is(s.NoWipe, reason) {
			return reason
		}
	}
	return nil
}

// LosePower ends all processes of the node as Kill does, and its disk forgets what is not durable.
func (n *Node) LosePower(ctx context.Context) (agent.Moment, error) {
	return n.end(ctx, n.Host.LosePower)
}

// SetDisk puts a fault of the server's disk in force; the zero value ends it. Until DiskSettled the server may end
// because of the fault, which is no failure of the run.
func (n *Node) SetDisk(ctx context.Context, fault disk.Fault) (agent.Moment, error) {
	if !n.mayEnd.Swap(true) {
		n.revived.Store(false)
	}
	faulty := fault != disk.Fault{}
	if faulty {
		n.faulty.Store(true)
	}
	moment, err := n.Host.SetDisk(ctx, fault)
	if err == nil {
		n.faulty.Store(faulty)
	}
	return moment, err
}

// Revive starts a server again that has ended because of its disk; it does nothing for others.
func (n *Node) Revive(ctx context.Context) error {
	if !n.mayEnd.Load() {
		return nil
	}
	select {
	case <-n.ended:
		n.revived.Store(true)
		_, err := n.Restart(ctx)
		return err
	default:
		return nil
	}
}

// DiskFaulty says whether a fault of the server's disk is in force.
func (n *Node) DiskFaulty() bool { return n.faulty.Load() }

// DiskSettled notes that the server has recovered from the fault of its disk, and says whether Revive restarted it.
func (n *Node) DiskSettled() (revived bool) {
	n.mayEnd.Store(false)
	return n.revived.Load()
}

// onDisk says whether a server runs on a disk of package disk.
func (c *docker) onDisk(node *Node) bool { return c.request.Disks && node.Server.noDisk() == nil }

// disk is the disk of a server.
func (c *docker) disk(node *Node) disk.Config {
	place := c.place(node)
	folder := place.Folder
	if node.Server.Data != nil {
		folder = node.Server.Data(place)
	}
	return disk.Config{Folder: folder, User: c.images[place.N].User, Switch: diskSwitch(node)}
}

// diskSwitch is the switch of a server's disk. It is outside the server's folder, which may be the disk.
func diskSwitch(node *Node) disk.Switch { return disk.Switch(sharedFolder + "/disks/" + node.Name) }
