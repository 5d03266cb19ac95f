package appfile

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// clocks are commands that print the wall clock of a server in seconds since 1970, in its container. They go by the name of
// the service; that of the application has the name ofApplication.
type clocks map[string][]string

// ofApplication is the name of no service.
const ofApplication = ""

// UnmarshalYAML reads the command of the application, as a lock file has it, and those of services under their names. Only
// a list is a command: a service may be called so, too.
func (c *clocks) UnmarshalYAML(node *yaml.Node) error {
	var keys map[string]yaml.Node
	if err := node.Decode(&keys); err != nil {
		return err
	}
	*c = make(clocks)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, service := keys[key], key
		if key == "command" && value.Kind == yaml.SequenceNode {
			value, service = *node, ofApplication
		}
		var clock struct {
			Command []string `yaml:"command,flow"`
		}
		if err := value.Decode(&clock); err != nil {
			return err
		}
		if len(clock.Command) == 0 {
			return fmt.Errorf("line %d: clock: %s: name the command that prints its wall clock: {command: [...]}", value.Line, key)
		}
		(*c)[service] = clock.Command
	}
	return nil
}

// check refuses a clock of a service that there is not.
func (c clocks) check(services []string) error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if name != ofApplication && !slices.Contains(services, name) {
			return fieldError("clock", "there is no service %q; there are %s", name, oneOf(services))
		}
	}
	return nil
}

// of is the command of a service, nil if nothing says how to ask it.
func (c clocks) of(service, application string) []string {
	if command, said := c[ofApplication]; said && service == application {
		return command
	}
	return c[service]
}
