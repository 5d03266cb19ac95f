package clients

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
)

// WatchRedis reports each command that removes keys from a Redis, and whose connection sent it, until stop is closed. It
// reads what MONITOR prints (RESP simple strings). A key that expires is not reported.
func WatchRedis(ctx context.Context, c Config, stop <-chan struct{}, report func(Observation)) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Nodes[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	stopped := context.AfterFunc(ctx, func() { conn.Close() })
	defer stopped()
	go func() {
		<-stop
		conn.Close()
	}()
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		return err
	}
	var from string // of the last command that a connection sent
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20) // scripts are printed whole
	if lines.Scan(); lines.Text() != "+OK" {
		return errors.Join(fmt.Errorf("MONITOR was answered %q", lines.Text()), lines.Err())
	}
	for lines.Scan() {
		from = reportRemovals(lines.Text(), from, report)
	}
	select {
	case <-stop:
		return nil
	default:
		return errors.Join(errors.New("the server ended MONITOR"), lines.Err())
	}
}

// monitored matches a line of MONITOR, as in: +1700000000.123456 [0 192.0.2.1:40000] "del" "k0". Commands of a script
// follow the command that called it, and have "lua" in place of the address.
var (
	monitored = regexp.MustCompile(`^\+\d+\.\d+ \[\d+ ([^\]]+)\] (".*")$`)
	quoted    = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
)

// reportRemovals reports what a line removes. It returns the connection of the last command that came from one.
func reportRemovals(line, from string, report func(Observation)) string {
	match := monitored.FindStringSubmatch(line)
	if match == nil {
		return from
	}
	if match[1] != "lua" {
		from = match[1]
	}
	words := quoted.FindAllStringSubmatch(match[2], -1)
	command := strings.ToUpper(words[0][1])
	if !slices.Contains([]string{"DEL", "UNLINK", "GETDEL"}, command) {
		return from
	}
	for _, key := range words[1:] {
		report(Observation{Key: key[1], Gone: true, From: from, Command: command})
	}
	return from
}
