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

// TransferLeader does what "nats stream cluster step-down" does, for the group of the bucket. Only users of the
// system account can step the meta leader down, and by default there are none.
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
