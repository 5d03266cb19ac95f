package nemesis

import (
	"context"
	"fmt"
	"strings"

	"lockcheck/clusters"
	"lockcheck/history"
)

// powerLoss is a crash of servers whose disks also lose every write that was not synced. The disk (package disk)
// tracks these writes from the server's start.
type powerLoss struct{ crash }

func powerLossKind() Kind {
	crashes := crashKind()
	return Kind{
		Name: history.PowerLoss, Summary: "crash a server whose disk also loses what was not synced; it is started again",
		Target: roleOne, OnDisk: true,
		Can: func(env Environment, node *clusters.Node) error {
			if err := hasDisk(env, node); err != nil {
				return err
			}
			return crashes.Can(env, node)
		},
		New: func(env Environment, order Order) (Fault, error) {
			crashed := newCrash(env, order)
			crashed.kill.losePower = true
			return &powerLoss{*crashed}, nil
		},
		Random: randomPause,
	}
}

// Prove shows that the servers are dead, and what their disks have lost.
func (p *powerLoss) Prove(ctx context.Context) (string, error) {
	dead, err := p.crash.Prove(ctx)
	if err != nil {
		return "", err
	}
	lost, err := pollEach(ctx, p.kill.targets, lostWithPower)
	return dead + "; " + lost, err
}

// shownLosses is how many files of a disk the evidence names.
const shownLosses = 5

// lostWithPower is what the disk of a server lost. The disk has read it back.
func lostWithPower(ctx context.Context, node *clusters.Node) (string, error) {
	report, err := node.Host.Lost(ctx)
	if err != nil {
		return "", err
	}
	var files []string
	for _, loss := range report.Losses {
		if len(files) == shownLosses {
			files = append(files, fmt.Sprintf("%d more files", len(report.Losses)-shownLosses))
			break
		}
		files = append(files, fmt.Sprintf("%d bytes of %s", loss.Bytes, loss.File))
	}
	switch {
	case files != nil:
	case report.Writes == 0:
		files = []string{"nothing, because it had written nothing since its start"}
	default:
		files = []string{fmt.Sprintf("nothing, because each of its %d writes was durable", report.Writes)}
	}
	return node.Name + " lost " + strings.Join(files, ", "), nil
}

var _ Fault = (*powerLoss)(nil)
