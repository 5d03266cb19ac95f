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

// childSign is the argument that the child's command line replaces.
const childSign = "{child}"

// holdCommand is the command of lockcheck that runs Hold.
const holdCommand = "hold"

// Placeholders in the arguments and variables of a command, filled in for each attempt.
var (
	aboutAttempt = []string{"{key}", "{attempt}", "{ttl}", "{folder}"}
	aboutServers = []string{"{endpoints}", "{host}", "{port}"}
	placeholder  = regexp.MustCompile(`\{[a-z]+\}`)
)

// CheckWrapped checks the arguments or variables of a command that wraps its child. If servers is false,
// placeholders for servers are errors.
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
			case at[0] > 0 && text[at[0]-1] == '$': // a shell variable
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

// placeholders returns a replacer of the placeholders for an attempt. It leaves shell variables alone.
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

// withChild returns the command line, with the child's in place of {child} or at the end.
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
