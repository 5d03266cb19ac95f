// Package replica is the parent of a program of a user's application: it starts the program, reads what the program
// prints, and writes an event for each line that the app file describes.
//
// Each event has a bracket: the line was written after Event.From and before Event.Time. From is the beginning of the
// last read that found the pipe empty, Time comes after the read that returned the line. A launcher that is stopped, or
// waits for a processor, makes brackets wider and never wrong.
//
// A program that buffers its output in blocks writes a line long after it printed it. Output that comes as a block of
// [blockSize] or more is therefore taken to have been printed at any time since the output before it, and so is what
// comes next, which may be the rest of a buffer.
//
// A line that is not looked at leaves a history.Missed event: one of more than maxLine bytes, one that matches without
// what the event needs, and what comes after maxEvents events in one second. From its From until the next event of the
// replica, nothing is known of what the replica printed.
package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lockcheck/history"
)

// Command is the hidden command of the process that Run is.
const Command = "replica"

// Config is what the launcher of a program is told.
type Config struct {
	Name    string   `json:"name"` // process of the events
	Command []string `json:"command"`
	Folder  string   `json:"folder,omitempty"` // working directory; "" for the present one
	// Env is added to the environment. Where there is anything to match, PYTHONUNBUFFERED is, too, unless it is set:
	// Python would keep lines back otherwise.
	Env []string `json:"env,omitempty"`
	// Says has regular expressions for Holding, Releasing, Released and Did, or for Accepted of the load. Their groups
	// key, token, id and who are the Key, Token, ID and Client of the event.
	Says map[history.Function][]string `json:"says,omitempty"`
	Key  string                        `json:"key,omitempty"` // where a line has no key
	// Restart says when a program that ends by itself is started again; "" for RestartNo.
	Restart string `json:"restart,omitempty"`
}

// Restart policies, as those of Docker.
const (
	RestartNo        = "no"
	RestartOnFailure = "on-failure"
	RestartAlways    = "always"
)

// configFile is the name of the configuration in the folder of a server.
const configFile = "replica.json"

// Launched returns the arguments of lockcheck and the file by which it runs a command as this replica. It is for
// clusters.CustomServer.
func (c Config) Launched(folder string, command []string) (args []string, files map[string]string) {
	c.Command = command
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts only
	}
	return []string{Command, "--config", folder + "/" + configFile}, map[string]string{configFile: string(text)}
}

// said are the functions of lines, in the order in which one line that means several is taken.
func said() []history.Function {
	return []history.Function{history.Holding, history.Releasing, history.Released, history.Did, history.Accepted}
}

// Groups of regular expressions.
const (
	groupKey   = "key"
	groupToken = "token"
	groupID    = "id"
	groupWho   = "who"
)

// pattern is one way to say something.
type pattern struct {
	function history.Function
	*regexp.Regexp
}

// patterns compiles what the configuration says, and checks it.
func (c Config) patterns() ([]pattern, error) {
	if len(c.Command) == 0 {
		return nil, errors.New("there is no command")
	}
	if !slices.Contains([]string{"", RestartNo, RestartOnFailure, RestartAlways}, c.Restart) {
		return nil, fmt.Errorf("no restart policy %q", c.Restart)
	}
	for function := range c.Says {
		if !slices.Contains(said(), function) {
			return nil, fmt.Errorf("no line says %q", function)
		}
	}
	var all []pattern
	for _, function := range said() {
		for _, text := range c.Says[function] {
			compiled, err := regexp.Compile(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", function, err)
			}
			if need := needs(function); need != "" && compiled.SubexpIndex(need) < 0 && (need != groupKey || c.Key == "") {
				return nil, fmt.Errorf("%s: %q has no group (?P<%s>…)", function, text, need)
			}
			all = append(all, pattern{function, compiled})
		}
	}
	return all, nil
}

// needs names the group without which a function means nothing.
func needs(function history.Function) string {
	switch function {
	case history.Did, history.Accepted:
		return groupID
	default:
		return groupKey
	}
}

// maxGroup bounds what a group may match, in bytes: names, not texts.
const maxGroup = 1 << 10

// event makes an event of a line that matches, without its times. The reason says why it cannot.
func (p pattern) event(line []byte, c Config) (e history.Event, matches bool, reason string) {
	found := p.FindSubmatchIndex(line)
	if found == nil {
		return e, false, ""
	}
	group := func(name string) string {
		i := p.SubexpIndex(name)
		if i < 0 || found[2*i] < 0 {
			return ""
		}
		return named(line[found[2*i]:found[2*i+1]])
	}
	e = history.Event{Process: c.Name, Type: history.Info, F: p.function, Client: group(groupWho)}
	if p.function == history.Accepted {
		e.Type = history.OK
	}
	if needs(p.function) == groupID {
		e.ID, e.Key = group(groupID), group(groupKey)
	} else if e.Key = group(groupKey); e.Key == "" {
		e.Key = c.Key
	}
	if text := group(groupToken); text != "" {
		if token, err := strconv.ParseUint(text, 10, 64); err != nil {
			e.Note = fmt.Sprintf("token %.100q is not a whole number below 2^64", text)
		} else {
			e.Token = token
		}
	}
	switch {
	case max(len(e.Key), len(e.ID), len(e.Client)) > maxGroup:
		return e, true, fmt.Sprintf("a line that says %q has a name of more than %d bytes", p.function, maxGroup)
	case needs(p.function) == groupID && e.ID == "":
		return e, true, fmt.Sprintf("a line that says %q has no ID", p.function)
	case needs(p.function) == groupKey && e.Key == "":
		return e, true, fmt.Sprintf("a line that says %q has no key", p.function)
	}
	return e, true, ""
}

// named is a text as a name. What is no UTF-8 is quoted, because JSON would make one of different names.
func named(text []byte) string {
	if utf8.Valid(text) {
		return string(text)
	}
	return strconv.QuoteToASCII(string(text))
}

// trimmed is a line without its end.
func trimmed(line []byte) []byte { return bytes.TrimRight(line, "\r\n") }

// environment is that of a program, given that of its parent.
func (c Config) environment(own []string) []string {
	const python = "PYTHONUNBUFFERED="
	env := slices.Concat(own, c.Env)
	if len(c.Says) > 0 && !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, python) }) {
		env = append(env, python+"1")
	}
	return env
}
