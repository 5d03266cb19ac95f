package clients

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// childSign is the argument in whose place the command line of the child stands.
const childSign = "{child}"

// holdCommand is lockcheck's own that runs Hold.
const holdCommand = "hold"

// What stands for what is true of an attempt, in arguments and variables of a command.
var (
	aboutAttempt = []string{"{key}", "{attempt}", "{ttl}", "{folder}"}
	aboutServers = []string{"{endpoints}", "{host}", "{port}"}
	placeholder  = regexp.MustCompile(`\{[a-z]+\}`)
)

// CheckWrapped says what is wrong with the arguments or variables of a command that wraps its
// child. Without servers there is nothing to say of them.
func CheckWrapped(texts []string, servers bool) error {
	children := 0
	for _, text := range texts {
		if text == childSign {
			children++
			continue
		}
		for _, at := range placeholder.FindAllStringIndex(text, -1) {
			name := text[at[0]:at[1]]
			switch {
			case at[0] > 0 && text[at[0]-1] == '$': // of a shell
			case name == childSign:
				return errors.New(`{child} stands for several arguments and must be one alone; in a script use "$@", and {child} after the script`)
			case slices.Contains(aboutServers, name) && !servers:
				return fmt.Errorf("%s: there are no servers", name)
			case !slices.Contains(aboutServers, name) && !slices.Contains(aboutAttempt, name):
				return fmt.Errorf("nothing is called %s; there are {child}, %s, %s", name, strings.Join(aboutAttempt, ", "), strings.Join(aboutServers, ", "))
			}
		}
	}
	if children > 1 {
		return errors.New("{child} stands there more than once")
	}
	return nil
}

// placeholders fills in what is true of an attempt, and leaves variables of a shell alone.
func (w *wrapped) placeholders(a Attempt) *strings.Replacer {
	pairs := []string{
		"{key}", a.Key, "{attempt}", a.ID, "{ttl}", strconv.FormatInt(ttlSeconds(a.TTL), 10),
		"{folder}", w.config.Folder, "{endpoints}", strings.Join(w.config.Nodes, ","),
	}
	if len(w.config.Nodes) > 0 {
		if host, port, err := net.SplitHostPort(w.config.Nodes[0]); err == nil {
			pairs = append(pairs, "{host}", host, "{port}", port)
		}
	}
	var shell []string // "${key}" stays as it is
	for i := 0; i < len(pairs); i += 2 {
		shell = append(shell, "$"+pairs[i], "$"+pairs[i])
	}
	return strings.NewReplacer(append(shell, pairs...)...)
}

// withChild is the command line with that of the child in its place, or behind it.
func (w *wrapped) withChild(fill *strings.Replacer) []string {
	args := slices.Clone(w.Program.Args)
	at := slices.Index(args, childSign)
	if at < 0 {
		at, args = len(args), append(args, childSign)
	}
	return slices.Concat(fillAll(fill, args[:at]), []string{w.binary, holdCommand}, fillAll(fill, args[at+1:]))
}

func fillAll(fill *strings.Replacer, texts []string) []string {
	var filled []string
	for _, text := range texts {
		filled = append(filled, fill.Replace(text))
	}
	return filled
}
