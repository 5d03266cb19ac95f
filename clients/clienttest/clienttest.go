// Package clienttest is a client of the protocol for tests, that may be right, mistaken or
// hostile. It is the test binary itself, started once more, or a goroutine of the test. It needs
// no package of clients except the wire: what it says wrong must not be put right by ours.
package clienttest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"lockcheck/clients/protocol"
)

// Kind of a behaviour.
type Kind string

const (
	// Right clients break no rule, and are to be accused of nothing.
	Right Kind = "right"
	// Mistaken ones keep the protocol, and are wrong about the lock.
	Mistaken Kind = "mistaken"
	// Hostile ones break the protocol, or do nothing of use.
	Hostile Kind = "hostile"
	// Careless ones break a rule that shows in few runs.
	Careless Kind = "careless"
)

// Behaviour of a client.
type Behaviour struct {
	Name string
	Kind Kind
	Does string // in words

	play func(*client)
}

// ofKind makes behaviours of a kind.
func ofKind(kind Kind) func(name, does string, play func(*client)) Behaviour {
	return func(name, does string, play func(*client)) Behaviour {
		return Behaviour{Name: name, Kind: kind, Does: does, play: play}
	}
}

// on replaces how a client answers an operation.
func on(op protocol.Op, answer func(c *client, q request) fields) func(*client) {
	return func(c *client) { c.on[op] = func(q request) fields { return answer(c, q) } }
}

// onGrant changes what a client says of a grant, or does about it.
func onGrant(change func(c *client, q request, ok fields)) func(*client) {
	return on(protocol.Acquire, func(c *client, q request) fields {
		answer := c.acquire(q)
		if ok, granted := answer["ok"].(fields); granted {
			change(c, q, ok)
		}
		return answer
	})
}

// always answers an operation alike.
func always(op protocol.Op, answer func() fields) func(*client) {
	return on(op, func(*client, request) fields { return answer() })
}

// Behaviours returns all of them, the right ones first.
func Behaviours() []Behaviour {
	return slices.Concat(rightOnes(), mistakes(), hostileOnes(), carelessOnes())
}

// Of returns the names of those of a kind, in order.
func Of(kind Kind) []string {
	var names []string
	for _, b := range Behaviours() {
		if b.Kind == kind {
			names = append(names, b.Name)
		}
	}
	return names
}

const (
	// variable chooses the behaviour of a started test binary.
	variable = "LOCKCHECK_TEST_CLIENT"
	// raceOptions keep a binary with the race detector from sleeping a second at its
	// exit: it would break the rule on the end of the input.
	raceOptions = "GORACE=atexit_sleep_ms=0"
)

// Main is to be called first in TestMain: in a process that was started to be a client it
// is one, and does not return.
func Main() {
	name, is := os.LookupEnv(variable)
	if !is {
		return
	}
	for _, b := range Behaviours() {
		if b.Name == name {
			newClient(process{}).run(b.play)
			os.Exit(0)
		}
	}
	fmt.Fprintf(os.Stderr, "there is no behaviour %q\n", name)
	os.Exit(2)
}

// Environment makes a process that is started from the test binary a client.
func Environment(name string) map[string]string {
	race, options, _ := strings.Cut(raceOptions, "=")
	return map[string]string{variable: name, race: options}
}

// byName panics if there is no such behaviour: a test that names it wrong would test nothing.
func byName(name string) Behaviour {
	for _, b := range Behaviours() {
		if b.Name == name {
			return b
		}
	}
	panic("clienttest: there is no behaviour " + name)
}

// Command is a client of a behaviour that is a process. It panics if there is no such behaviour.
func Command(name string) protocol.Command {
	byName(name)
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	command := protocol.Command{Args: []string{binary}}
	environment := Environment(name)
	for _, variable := range slices.Sorted(maps.Keys(environment)) {
		command.Env = append(command.Env, variable+"="+environment[variable])
	}
	return command
}
