package clusters

import (
	"context"
	"errors"

	"lockcheck/clusters/agent"
	"lockcheck/clusters/disk"
)

// CanLosePower says why a server's disk cannot lose power; nil if it can.
func (n *Node) CanLosePower() error {
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

// onDisk says whether a server runs on a disk that can lose power.
func (c *docker) onDisk(node *Node) bool { return c.request.PowerLoss && node.Server.noDisk() == nil }

// disk is the disk of a server.
func (c *docker) disk(node *Node) disk.Config {
	place := c.place(node)
	folder := place.Folder
	if node.Server.Data != nil {
		folder = node.Server.Data(place)
	}
	return disk.Config{Folder: folder, User: c.images[place.N].User, Switch: powerSwitch(node)}
}

// powerSwitch is the switch of a server's disk. It is outside the server's folder, which may be the disk.
func powerSwitch(node *Node) disk.Switch { return disk.Switch(sharedFolder + "/disks/" + node.Name) }
