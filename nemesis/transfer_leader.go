package nemesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// transferLeader is a planned change of leader, as operators do it before maintenance: the service itself hands the
// leadership over to another server. It is in force from the request until exactly one server leads. Until then two
// servers may lead, as with Sentinels, where the former primary goes on until a Sentinel makes it a replica.
type transferLeader struct {
	servers []*clusters.Node
	leader  *clusters.Node // before the change
	// pending: the request may have been accepted, and no other server has led yet.
	pending bool
}

func transferLeaderKind() Kind {
	return Kind{
		Name: history.TransferLeader, Summary: "ask the leader to hand over to another server, by the service's own operation, as before maintenance",
		Target: roleLeader, Momentary: true,
		Can: canTransferLeader,
		New: func(env Environment, order Order) (Fault, error) {
			return &transferLeader{servers: env.Servers, leader: order.Targets[0]}, nil
		},
		Random: func(*rand.Rand, Environment, *Step) {}, // nothing is left open
	}
}

// Reasons why no leader is asked to hand over.
var (
	errNoLeadingServer = errors.New("only a server can be asked to hand over its leadership")
	errNoSuccessor     = errors.New("there is no other server that could lead")
)

func canTransferLeader(env Environment, node *clusters.Node) error {
	transfers := func(n *clusters.Node) bool {
		_, can := n.Server.Probes.(agent.LeaderTransfer)
		return can
	}
	others := slices.DeleteFunc(slices.Clone(env.Servers), func(n *clusters.Node) bool { return n == node || !transfers(n) })
	switch {
	case !env.server(node):
		return errNoLeadingServer
	case !canLead(node):
		return agent.ErrNoLeader
	case !transfers(node):
		return agent.ErrNoTransfer
	case len(others) == 0:
		return errNoSuccessor
	}
	return nil
}

// checkTransfer checks what only this kind of fault demands of a step.
func (s *Step) checkTransfer() error {
	switch {
	case s.Fault != history.TransferLeader:
	case s.Target != roleLeader:
		return advised("target", "; write leader, or leave target out", "only the leader can hand over its leadership")
	case !s.For.IsZero():
		return wrong("for", "a change of leader lasts until the new leader leads; leave it out")
	}
	return nil
}

const (
	// transferLimit is how long servers may take to have another leader. Sentinels that have just made a failover
	// start the next one after up to 3 s, twice the failover timeout.
	transferLimit = 10 * time.Second
	// transferPoll is short because Sentinels leave clients at the former primary for less than a second after the
	// promotion, and that time is what makes the change dangerous.
	transferPoll = 10 * time.Millisecond
)

// Apply returns when another server leads. The request of a worker that waits for the fault is sent after that.
func (t *transferLeader) Apply(ctx context.Context) (agent.Moment, error) {
	if leads, err := t.leader.Host.Leads(ctx); err != nil || !leads {
		return agent.Moment{}, fmt.Errorf("%s was to hand over its leadership and did not lead: %w", t.leader.Name, cmp.Or(err, errNobody))
	}
	t.pending = true
	requested, err := t.leader.Host.TransferLeader(ctx)
	if err != nil {
		return requested, err
	}
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	changed, err := t.await(ctx, t.changed)
	t.pending = err != nil
	return agent.Moment{From: requested.From, To: changed.To}, err
}

func (t *transferLeader) Prove(ctx context.Context) (string, error) { return poll(ctx, t.changed) }

// changed asks the servers whether another one leads than before.
func (t *transferLeader) changed(ctx context.Context) (string, error) {
	leaders := leadersAmong(ctx, t.servers)
	others := without(leaders, []*clusters.Node{t.leader})
	switch {
	case len(others) == 0:
		return "", fmt.Errorf("no server other than %s leads", t.leader.Name)
	case len(others) < len(leaders):
		return fmt.Sprintf("%s led before, %s leads now, and %[1]s still does", t.leader.Name, describe(others)), nil
	}
	return fmt.Sprintf("%s led before, %s leads now", t.leader.Name, describe(others)), nil
}

// Heal undoes nothing. It waits until exactly one server leads. A change that was asked for in vain may come late, and is
// waited for once more.
func (t *transferLeader) Heal(ctx context.Context) (Healing, error) {
	if t.pending {
		late, cancel := context.WithTimeout(ctx, transferLimit)
		_, _ = t.await(late, t.changed) // it need not come
		cancel()
	}
	moment, err := t.await(ctx, t.settled)
	return Healing{Moment: moment}, err
}

func (t *transferLeader) ProveHealed(ctx context.Context) (string, error) {
	return poll(ctx, t.settled)
}

// settled asks the servers whether exactly one leads. Another fault may keep them from agreeing for as long as it lasts.
func (t *transferLeader) settled(ctx context.Context) (string, error) {
	leaders := leadersAmong(ctx, t.servers)
	if len(leaders) == 1 {
		return leaders[0].Name + " leads", nil
	}
	if why := disturbedAmong(ctx, t.servers); why != "" {
		return fmt.Sprintf("%d servers lead while %s", len(leaders), why), nil
	}
	return "", fmt.Errorf("%d servers lead", len(leaders))
}

// await asks until there is no error, and brackets the answer.
func (t *transferLeader) await(ctx context.Context, ask func(context.Context) (string, error)) (agent.Moment, error) {
	for {
		moment := agent.Moment{From: history.Now()}
		_, err := ask(ctx)
		moment.To = history.Now()
		if err == nil {
			return moment, nil
		}
		select {
		case <-ctx.Done():
			return moment, err
		case <-time.After(transferPoll):
		}
	}
}
