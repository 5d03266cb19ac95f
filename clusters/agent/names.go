package agent

import (
	"bytes"
	"errors"
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

// moveNames rewrites the hosts file: names of the addresses that cuts have moved get the unused address.
func (n *Network) moveNames() error {
	if n.hosts == nil {
		original, err := os.ReadFile(hostsFile)
		if err != nil {
			return err
		}
		n.hosts = original
	}
	text := withMoved(n.hosts, slices.Concat(slices.Collect(maps.Values(n.moved))...))
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

// restoreNames ends the move of names by a cut, if it has moved any.
func (n *Network) restoreNames(id string) error {
	moved, is := n.moved[id]
	if !is || n.hosts == nil {
		return nil
	}
	delete(n.moved, id)
	err := n.moveNames()
	if err != nil {
		n.moved[id] = moved // the next attempt restores them
	}
	return err
}

// withMoved returns a hosts file in which the names of some addresses have the unused address.
func withMoved(hosts []byte, moved []string) []byte {
	lines := strings.SplitAfter(string(hosts), "\n")
	for i, line := range lines {
		if fields := strings.Fields(line); len(fields) > 1 && slices.Contains(moved, fields[0]) {
			lines[i] = strings.Replace(line, fields[0], UnusedAddress, 1)
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
