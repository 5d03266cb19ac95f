//go:build !embedded

package clusters

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/nats-io/nats.go"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

var _ agent.LeaderTransfer = natsProbes{}

// TransferLeader does what "nats stream cluster step-down" does, for the group of the bucket. The step-down of the
// meta leader is only for users of the system account, which servers have none of by default.
func (natsProbes) TransferLeader(ctx context.Context, address string) error {
	conn, err := nats.Connect(address, nats.NoReconnect())
	if err != nil {
		return err
	}
	defer conn.Close()
	message, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+clients.NATSStream, nil)
	if err != nil {
		return err
	}
	var answer struct {
		Error *struct{ Description string } `json:"error"`
	}
	if err := json.Unmarshal(message.Data, &answer); err != nil || answer.Error == nil {
		return err
	}
	return errors.New(answer.Error.Description)
}
