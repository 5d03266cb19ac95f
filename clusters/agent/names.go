package agent

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"lockcheck/history"
)

// hostsFile has the names by which the nodes of an application find each other. Docker writes it for each container.
const hostsFile = "/etc/hosts"

// cutMoved drops what is sent to the unused address, and moves names there.
func (n *Network) cutMoved(cut Cut) (Moment, error) {
	moment, err := applyCut(cut, drop(0))
	if err != nil {
		return moment, err
	}
	if n.moved == nil {
		n.moved = make(map[string][]string)
	}
	n.moved[cut.ID] = cut.Moved
	err = n.moveNames()
	moment.To = history.Now()
	return moment, err
}

// moveNames rewrites the file of names: those of the addresses that cuts have moved belong to nobody.
func (n *Network) moveNames() error {
	if n.hosts == nil {
		original, err := os.ReadFile(hostsFile)
		if err != nil {
			return err
		}
		n.hosts = original
	}
	text := withMoved(n.hosts, slices.Concat(slices.Collect(maps.Values(n.moved))...))
	if err := os.WriteFile(hostsFile, text, 0o644); err != nil { // in place, because the file is a mount
		return err
	}
	if now, err := os.ReadFile(hostsFile); err != nil || !bytes.Equal(now, text) {
		return fmt.Errorf("%s was changed by somebody else: %w", hostsFile, err)
	}
	return nil
}

// withMoved gives the names of some addresses the unused address.
func withMoved(hosts []byte, moved []string) []byte {
	lines := strings.SplitAfter(string(hosts), "\n")
	for i, line := range lines {
		if fields := strings.Fields(line); len(fields) > 1 && slices.Contains(moved, fields[0]) {
			lines[i] = strings.Replace(line, fields[0], UnusedAddress, 1)
		}
	}
	return []byte(strings.Join(lines, ""))
}

// names lists the lines of the file of names, each an address and its names.
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
