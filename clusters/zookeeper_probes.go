//go:build !embedded

package clusters

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"lockcheck/clients"
	"lockcheck/clusters/agent"
)

// zookeeperProbes asks one server of an ensemble.
type zookeeperProbes struct{}

var (
	_ agent.Probes      = zookeeperProbes{}
	_ agent.LeaderProbe = zookeeperProbes{}
)

// Ready: a server has a mode only as a member of a serving quorum. An open port or an answer to ruok proves
// nothing.
func (p zookeeperProbes) Ready(ctx context.Context, address string) error {
	_, err := p.mode(ctx, address)
	return err
}

func (p zookeeperProbes) Leads(ctx context.Context, address string) (bool, error) {
	mode, err := p.mode(ctx, address)
	if mode == "standalone" {
		return false, agent.ErrNoLeader
	}
	return mode == "leader", err
}

func (zookeeperProbes) mode(ctx context.Context, address string) (string, error) {
	return zookeeperField(ctx, address, "Mode: ")
}

func (zookeeperProbes) Version(ctx context.Context, address string) (string, error) {
	text, err := zookeeperField(ctx, address, "Zookeeper version: ")
	version, _, _ := strings.Cut(text, "-") // the rest describes the build
	return version, err
}

// zookeeperField returns the rest of the line with this prefix in the answer to srvr.
func zookeeperField(ctx context.Context, address, begin string) (string, error) {
	answer, err := fourLetters(ctx, address, "srvr")
	if err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(strings.NewReader(answer)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), begin); found {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("no %q in the answer to srvr: %q", begin, answer)
}

// fourLetters sends a four-letter word, which is not part of the client protocol. The server answers with text
// and closes the connection.
func fourLetters(ctx context.Context, address, word string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// zookeeperClockTTL is the timeout of the session for one reading of a clock.
const zookeeperClockTTL = 2 * time.Second

// Clock opens a session with the server and asks the server when that was, by its own clock. The ctime of a new
// node would be the leader's time.
func (zookeeperProbes) Clock(ctx context.Context, address string) (now time.Time, err error) {
	opened := make(chan struct{}, 1)
	conn, _, err := zk.Connect([]string{address}, zookeeperClockTTL,
		zk.WithLogger(clients.SilentZooKeeper{}), zk.WithLogInfo(false),
		zk.WithEventCallback(func(e zk.Event) {
			if e.Type == zk.EventSession && e.State == zk.StateHasSession {
				select {
				case opened <- struct{}{}:
				default:
				}
			}
		}))
	if err != nil {
		return now, err
	}
	defer conn.Close()
	select {
	case <-opened:
	case <-ctx.Done():
		return now, fmt.Errorf("no session: %w", ctx.Err())
	}
	answer, err := fourLetters(ctx, address, "cons")
	if err != nil {
		return now, err
	}
	return established(answer, conn.SessionID())
}

// established finds in the answer to cons when a session's connection was made, by the server's wall clock.
func established(answer string, session int64) (time.Time, error) {
	_, rest, found := strings.Cut(answer, fmt.Sprintf("sid=0x%x,", uint64(session)))
	_, rest, has := strings.Cut(rest, "est=")
	if !found || !has {
		return time.Time{}, errors.New("the server does not list the session")
	}
	text, _, _ := strings.Cut(rest, ",")
	ms, err := strconv.ParseInt(text, 10, 64)
	return time.UnixMilli(ms), err
}
