//go:build !embedded

package ask

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
)

// redisServer asks Redis, or a server that speaks like it, by one command.
type redisServer struct {
	*conns
	options *redis.Options
	command []any
	client  *redis.Client // nil if there is none
}

func openRedis(q Question) (*redisServer, error) {
	if _, err := parseURL(q.URL); err != nil {
		return nil, err
	}
	options, err := redis.ParseURL(q.URL)
	if err != nil {
		return nil, err
	}
	words, err := splitWords(q.Text)
	if err != nil {
		return nil, err
	}
	r := &redisServer{conns: newConns(), options: options}
	for _, word := range words {
		r.command = append(r.command, word)
	}
	// One connection, and one attempt: what is sent again may be answered from another moment.
	options.PoolSize, options.MinIdleConns, options.MaxRetries, options.DialerRetries, options.ConnMaxIdleTime = 1, 0, -1, 1, -1
	options.Protocol, options.DisableIdentity, options.ContextTimeoutEnabled = 2, true, true
	limit := cmp.Or(q.Timeout, DefaultTimeout)
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = limit, limit, limit, limit
	return r, nil
}

// ready makes a client for one connection if there is none. A client that connects by itself would write each failure
// into the log, and repeat an old one for a while.
func (r *redisServer) ready(ctx context.Context) error {
	r.refill()
	if r.client != nil {
		return nil
	}
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	only := make(chan net.Conn, 1)
	only <- conn
	options := *r.options
	options.Dialer = func(context.Context, string, string) (net.Conn, error) {
		select {
		case conn := <-only:
			return conn, nil
		default:
			return nil, errConnectionLost
		}
	}
	r.client = redis.NewClient(&options)
	return r.conns.bounded(r.client.Ping(ctx).Err())
}

var errConnectionLost = errors.New("the connection was lost")

// connect also does what the library leaves to a dialer of one's own.
func (r *redisServer) connect(ctx context.Context) (net.Conn, error) {
	conn, err := r.dial(ctx, r.options.Network, r.options.Addr)
	if err != nil || r.options.TLSConfig == nil {
		return conn, err
	}
	secure := tls.Client(conn, r.options.TLSConfig)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

func (r *redisServer) ask(ctx context.Context, a *answer) error {
	r.refill()
	reply, err := r.client.Do(ctx, r.command...).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return a.bounded(r.conns.bounded(err))
	}
	return a.bounded(addReply(a, reply))
}

func (r *redisServer) settle(_ context.Context, failed bool) {
	if failed && r.client != nil {
		_ = r.client.Close()
		r.client = nil
	}
}

// addReply adds the rows of a reply: the elements of an array, or one for anything else. A reply that says "nothing"
// in one of the ways of Redis has no rows: nil, an empty text, or 0, as a number or as the text of a counter.
func addReply(a *answer, reply any) error {
	elements, isArray := reply.([]any)
	if !isArray {
		text, err := replyText(reply)
		if err != nil || text == "" || text == "0" || reply == nil {
			return err
		}
		return a.add(text)
	}
	for _, element := range elements {
		text, err := replyText(element)
		if err != nil {
			return err
		}
		if err := a.add(text); err != nil {
			return err
		}
	}
	return nil
}

// replyText is an element of a reply as a row; elements of an array in it are its columns.
func replyText(reply any) (string, error) {
	switch reply := reply.(type) {
	case nil:
		return null, nil
	case error: // of a command in a script or transaction
		return "", reply
	case []any:
		var columns []string
		for _, element := range reply {
			text, err := replyText(element)
			if err != nil {
				return "", err
			}
			columns = append(columns, text)
		}
		return joined(columns), nil
	default:
		return fmt.Sprint(reply), nil
	}
}
