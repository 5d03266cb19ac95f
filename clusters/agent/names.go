package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/nftables/expr"

	"lockcheck/history"
)

// hostsFile has the names by which the nodes of an application find each other. Docker writes it for each container.
const hostsFile = "/etc/hosts"

// resolvFile has the addresses of the name servers.
const resolvFile = "/etc/resolv.conf"

// renames says whether a cut changes names.
func (c Cut) renames() bool { return len(c.Moved) > 0 || len(c.Unnamed) > 0 }

// cutNames installs the rules of a cut, and then changes the names of addresses: a name that is gone from the hosts file
// while name servers still answer would be unknown, which is another failure.
//
// Of the packets to and from a name server only answers are dropped, and only questions are counted. The kernel reports a
// dropped question to its sender (EPERM), and then resolvers fail at once, although a server that is down lets them wait.
// Docker's own name server gives no answer that could be counted about a name that its upstream server is to resolve.
func (n *Network) cutNames(cut Cut) (Moment, error) {
	then := drop(0)
	if len(cut.Unnamed) > 0 {
		servers, err := nameServers()
		if err != nil {
			return Moment{}, err
		}
		cut.Peers, then = servers, []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	}
	moment, err := applyCut(cut, then)
	if err != nil {
		return moment, err
	}
	if n.renamed == nil {
		n.renamed = make(map[string]Cut)
	}
	n.renamed[cut.ID] = cut
	err = n.writeNames()
	moment.To = history.Now()
	return moment, err
}

// writeNames rewrites the hosts file as the cuts in force want it.
func (n *Network) writeNames() error {
	if n.hosts == nil {
		original, err := os.ReadFile(hostsFile)
		if err != nil {
			return err
		}
		n.hosts = original
	}
	text := withNames(n.hosts, slices.Collect(maps.Values(n.renamed)))
	if err := overwrite(hostsFile, text); err != nil {
		return err
	}
	now, err := os.ReadFile(hostsFile)
	if err == nil && !bytes.Equal(now, text) {
		err = fmt.Errorf("%s was changed by somebody else", hostsFile)
	}
	return err
}

// overwrite replaces the text of a file in place, because the file is a mount, and never leaves it empty, because a name
// that is looked up meanwhile would not be found.
func overwrite(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(text, 0)
	if err == nil {
		err = file.Truncate(int64(len(text)))
	}
	return errors.Join(err, file.Close())
}

// restoreNames restores the names that a cut has changed, if any.
func (n *Network) restoreNames(id string) error {
	cut, is := n.renamed[id]
	if !is || n.hosts == nil {
		return nil
	}
	delete(n.renamed, id)
	err := n.writeNames()
	if err != nil {
		n.renamed[id] = cut // the next attempt restores them
	}
	return err
}

// withNames returns a hosts file in which cuts have moved or removed the names of some addresses.
func withNames(hosts []byte, cuts []Cut) []byte {
	lines := strings.SplitAfter(string(hosts), "\n")
	for i, line := range lines {
		fields := strings.Fields(line)
		for _, cut := range cuts {
			switch {
			case len(fields) < 2:
			case slices.Contains(cut.Unnamed, fields[0]):
				lines[i] = ""
			case slices.Contains(cut.Moved, fields[0]):
				lines[i] = strings.Replace(line, fields[0], UnusedAddress, 1)
			}
		}
	}
	return []byte(strings.Join(lines, ""))
}

// names lists the lines of the hosts file, each an address and its names.
func names() ([]string, error) {
	text, err := os.ReadFile(hostsFile)
	var all []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && !strings.HasPrefix(line, "#") {
			all = append(all, strings.Join(fields, " "))
		}
	}
	return all, err
}

// nameServers lists the addresses of the node's name servers.
func nameServers() ([]string, error) {
	text, err := os.ReadFile(resolvFile)
	var servers []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "nameserver" {
			servers = append(servers, fields[1])
		}
	}
	return servers, err
}

// askDNS does not use Go's resolver, which looks into the hosts file first, and caches it.
func askDNS(ctx context.Context, name string, timeout time.Duration) error {
	servers, err := nameServers()
	if err != nil || len(servers) == 0 {
		return errors.Join(errors.New("no name server"), err)
	}
	question := []byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0} // the header of RFC 1035: one question, recursion desired
	for label := range strings.SplitSeq(name, ".") {
		question = append(append(question, byte(len(label))), label...)
	}
	question = append(question, 0, 0, 1, 0, 1) // root, type A, class IN
	conn, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(servers[0], "53"))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(timeout)) // fails only on a closed connection
	if _, err = conn.Write(question); err == nil {
		_, err = conn.Read(make([]byte, 512))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: %w", name, ErrNoAnswer)
	}
	return err
}
