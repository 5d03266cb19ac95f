package clients

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// TestRedisAnswers: a server's answer is certain unless an earlier answer was lost and go-redis retried. Then
// an attempt may have found its own key.
func TestRedisAnswers(t *testing.T) {
	const (
		hangUp   = ""
		granted  = "$-1\r\n"
		own      = "$4\r\nw1-1\r\n"
		other    = "$4\r\nw2-1\r\n"
		refused  = ":0\r\n"
		done     = ":1\r\n"
		errorful = "-MISCONF cannot persist\r\n"
	)
	for _, c := range []struct {
		lock, call string
		answers    []string
		want       Outcome
	}{
		{"redis", "acquire", []string{granted}, Done},
		{"redis", "acquire", []string{other}, Busy},
		{"redis", "acquire", []string{errorful}, NoEffect},
		{"redis", "acquire", []string{hangUp, granted}, Done},
		{"redis", "acquire", []string{hangUp, own}, Unknown},
		{"redis", "acquire", []string{hangUp, other}, Unknown},
		{"redis", "acquire", []string{hangUp, errorful}, Unknown},
		{"redis+no-retries", "acquire", []string{hangUp, own}, Unknown},
		{"redis", "release", []string{done}, Done},
		{"redis", "release", []string{refused}, NotHeld},
		{"redis", "release", []string{errorful}, NoEffect},
		{"redis", "release", []string{hangUp, refused}, Unknown},
		{"redis", "renew", []string{refused}, NotHeld},
		{"redis", "renew", []string{hangUp, refused}, NotHeld}, // whether or not the lost request renewed it, the lock is gone now
		{"redislock", "acquire", []string{"_\r\n"}, Busy},
		{"redislock", "acquire", []string{hangUp, "_\r\n"}, Unknown},
		{"redislock", "acquire", []string{hangUp, "+OK\r\n"}, Done},
		{"redsync", "acquire", []string{granted}, Busy},
		{"redsync", "acquire", []string{hangUp, granted}, Unknown},
	} {
		t.Run(fmt.Sprintf("%s %s %q", c.lock, c.call, c.answers), func(t *testing.T) {
			l := mustOpen(t, c.lock, redisAnswers(t, inTurn(c.answers...)))
			if err := calls(l)[c.call](t.Context()); OutcomeOf(err) != c.want {
				t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), c.want)
			}
		})
	}
}

// TestRedisClusterAnswers: a lost answer is noticed on every server of a cluster. A redirection to another
// server is not a lost answer.
func TestRedisClusterAnswers(t *testing.T) {
	const granted, own = "$-1\r\n", "$4\r\nw1-1\r\n"
	for _, c := range []struct {
		answers []string
		want    Outcome
	}{
		{[]string{granted}, Done},
		{[]string{"$4\r\nw2-1\r\n"}, Busy},
		{[]string{"-CLUSTERDOWN The cluster is down\r\n"}, NoEffect},
		{[]string{"", own}, Unknown},
		{[]string{"MOVED", granted}, Done},
		{[]string{"MOVED", "$4\r\nw2-1\r\n"}, Busy},
	} {
		t.Run(fmt.Sprintf("%q", c.answers), func(t *testing.T) {
			var address string
			turn := inTurn(c.answers...)
			address = redisAnswers(t, func(command string) string {
				if command == "CLUSTER" {
					host, port, _ := strings.Cut(address, ":")
					return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)
				}
				if command == "COMMAND" {
					return "*0\r\n"
				}
				return strings.Replace(turn(command), "MOVED", "-MOVED 1 "+address+"\r\n", 1)
			})
			if err := calls(mustOpen(t, "redis-cluster", address))["acquire"](t.Context()); OutcomeOf(err) != c.want {
				t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), c.want)
			}
		})
	}
}

// TestRedisWaitAnswers: a grant counts only if a replica has it. Otherwise its outcome is unknown.
func TestRedisWaitAnswers(t *testing.T) {
	const (
		granted, other = "$-1\r\n", "$4\r\nw2-1\r\n"
		nobody, one    = ":0\r\n", ":1\r\n"
	)
	for _, c := range []struct {
		call    string
		answers []string
		want    Outcome
	}{
		{"acquire", []string{granted, one}, Done},
		{"acquire", []string{granted, ":2\r\n"}, Done},
		{"acquire", []string{granted, nobody}, Unknown},
		{"acquire", []string{granted, "-ERR WAIT cannot be used with replica instances\r\n"}, Unknown},
		{"acquire", []string{granted, "", one}, Unknown}, // a retried WAIT uses another connection, so it confirms nothing
		{"acquire", []string{other, one}, Busy},
		{"renew", []string{one, one}, Done},
		{"renew", []string{one, nobody}, Unknown},
		{"renew", []string{nobody, one}, NotHeld},
	} {
		t.Run(fmt.Sprintf("%s %q", c.call, c.answers), func(t *testing.T) {
			lost := new(lostAnswers)
			primary := dialRedis(redisAnswers(t, inTurn(c.answers...)), nil, lost)
			defer primary.Close()
			l := &redisWait{redisLock{client: &redisClient{redisCommands: primary, lost: lost}}, primary}
			if err := calls(l)[c.call](t.Context()); OutcomeOf(err) != c.want {
				t.Errorf("%v is outcome %d, want %d", err, OutcomeOf(err), c.want)
			}
		})
	}
}

// TestRedlockOverrunsItsValidity: an attempt whose majority answers after the end of the lease has failed.
func TestRedlockOverrunsItsValidity(t *testing.T) {
	var nodes []string
	for range 3 {
		nodes = append(nodes, redisAnswers(t, always("$-1\r\n"))) // there was no holder
	}
	l := mustOpen(t, "redlock", nodes...)
	acquire := func(ttl time.Duration) (Grant, error) {
		return l.Acquire(t.Context(), Attempt{Key: "k0", ID: "w1-1", TTL: ttl})
	}
	// Its drift alone is 2 ms. These servers do not confirm the release.
	if _, err := acquire(time.Millisecond); OutcomeOf(err) != Unknown || !strings.Contains(err.Error(), "3 servers may still") {
		t.Errorf("lease of 1 ms: %v", err)
	}
	before := history.Now()
	grant, err := acquire(time.Minute)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	if latest := history.Now() + (time.Minute - redlockDrift(time.Minute)).Nanoseconds(); grant.Until > latest || grant.Until < before {
		t.Errorf("valid until %d, later than %d", grant.Until, latest)
	}
}

func TestRedlockDrift(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		0: 2 * time.Millisecond, time.Second: 12 * time.Millisecond, 10 * time.Second: 102 * time.Millisecond,
	} {
		if got := redlockDrift(ttl); got != want {
			t.Errorf("drift of %s is %s, want %s", ttl, got, want)
		}
	}
}

// TestRedlockVotes: how the answers of the servers are combined.
func TestRedlockVotes(t *testing.T) {
	lost := errors.New("connection reset")
	busy := func(holder string) error { return &BusyError{Holder: holder} }
	l := redlock{servers: make([]redlockServer, 5)}
	for _, c := range []struct {
		name              string
		votes             []error
		refused, majority Outcome
		holder            string
	}{
		{"all not held", []error{ErrNotHeld, ErrNotHeld, ErrNotHeld, ErrNotHeld, ErrNotHeld}, NoEffect, NotHeld, ""},
		{"majority did it", []error{nil, nil, nil, lost, lost}, NoEffect, Done, ""},
		{"majority did not hold it", []error{nil, nil, ErrNotHeld, ErrNotHeld, ErrNotHeld}, NoEffect, NotHeld, ""},
		{"no majority either way", []error{nil, nil, ErrNotHeld, ErrNotHeld, lost}, NoEffect, Unknown, ""},
		{"one holder has a majority", []error{nil, nil, busy("w2-1"), busy("w2-1"), busy("w2-1")}, Busy, Unknown, "w2-1"},
		{"a minority is no holder", []error{nil, busy("w3-1"), busy("w3-1"), busy("w2-1"), busy("w2-1")}, NoEffect, Unknown, ""},
		{"nobody answers", []error{lost, lost, lost, lost, lost}, NoEffect, Unknown, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := l.refusal(c.votes, count(c.votes, Done))
			if OutcomeOf(err) != c.refused {
				t.Errorf("attempt: %v is outcome %d, want %d", err, OutcomeOf(err), c.refused)
			}
			var named *BusyError
			if errors.As(err, &named) && named.Holder != c.holder {
				t.Errorf("names %q, want %q", named.Holder, c.holder)
			}
			if err := l.majority(c.votes); OutcomeOf(err) != c.majority {
				t.Errorf("release: %v is outcome %d, want %d", err, OutcomeOf(err), c.majority)
			}
		})
	}
}
