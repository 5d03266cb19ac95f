// Package clienttest has clients of the protocol for tests: correct, mistaken, careless and hostile ones. A
// client is either the test binary itself, started again, or a goroutine of the test. The package uses nothing
// of the clients except the wire format, so that no code under test corrects a client's mistakes.
package clienttest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"lockcheck/clients/protocol"
)

// Kind is the kind of a behaviour.
type Kind string

const (
	// Right clients break no rule, and no violation may be reported.
	Right Kind = "right"
	// Mistaken clients follow the protocol, but treat the lock wrongly.
	Mistaken Kind = "mistaken"
	// Hostile clients break the protocol, or do nothing useful.
	Hostile Kind = "hostile"
	// Careless clients break a rule that matters only in few runs.
	Careless Kind = "careless"
)

// Behaviour is the behaviour of a client.
type Behaviour struct {
	Name string
	Kind Kind
	Does string // description

	play func(*client)
}

// ofKind returns a constructor of behaviours of a kind.
func ofKind(kind Kind) func(name, does string, play func(*client)) Behaviour {
	return func(name, does string, play func(*client)) Behaviour {
		return Behaviour{Name: name, Kind: kind, Does: does, play: play}
	}
}

// on replaces the handler of an operation.
func on(op protocol.Op, answer func(c *client, q request) fields) func(*client) {
	return func(c *client) { c.on[op] = func(q request) fields { return answer(c, q) } }
}

// onGrant calls change with each grant, before the grant is answered.
func onGrant(change func(c *client, q request, ok fields)) func(*client) {
	return on(protocol.Acquire, func(c *client, q request) fields {
		answer := c.acquire(q)
		if ok, granted := answer["ok"].(fields); granted {
			change(c, q, ok)
		}
		return answer
	})
}

// always replaces the handler of an operation with a fixed answer.
func always(op protocol.Op, answer func() fields) func(*client) {
	return on(op, func(*client, request) fields { return answer() })
}

// Behaviours returns all behaviours, the right ones first.
func Behaviours() []Behaviour {
	return slices.Concat(rightOnes(), mistakes(), hostileOnes(), carelessOnes())
}

// Of returns the names of the behaviours of a kind, in order.
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
	// variable is the environment variable with the behaviour of a started test binary.
	variable = "LOCKCHECK_TEST_CLIENT"
	// raceOptions keeps a binary with the race detector from sleeping for a second at exit. The sleep would
	// break the rule on the end of the input.
	raceOptions = "GORACE=atexit_sleep_ms=0"
)

// Main must be called first in TestMain. In a process that was started as a client, it runs the client and does
// not return.
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

// Environment returns the variables that make a process started from the test binary a client.
func Environment(name string) map[string]string {
	race, options, _ := strings.Cut(raceOptions, "=")
	return map[string]string{variable: name, race: options}
}

// byName panics if there is no such behaviour, because a test with a misspelt name would test nothing.
func byName(name string) Behaviour {
	for _, b := range Behaviours() {
		if b.Name == name {
			return b
		}
	}
	panic("clienttest: there is no behaviour " + name)
}

// Command returns a client with a behaviour that is a process. It panics if there is no such behaviour.
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
