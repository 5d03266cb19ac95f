package appfile

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// clocks maps services to the commands that print the wall clock of their containers, in seconds since 1970. The key
// ofApplication stands for the service under test.
type clocks map[string][]string

// ofApplication is a key that no service can have.
const ofApplication = ""

// UnmarshalYAML reads the command of the application in the form of a lock file, and the commands of other services under
// their names. The key "command" is the application's only if its value is a list, because a service may have that name.
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

// check refuses a clock of an unknown service.
func (c clocks) check(services []string) error {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if name != ofApplication && !slices.Contains(services, name) {
			return fieldError("clock", "there is no service %q; there are %s", name, oneOf(services))
		}
	}
	return nil
}

// of returns the command of a service; nil if the app file has none.
func (c clocks) of(service, application string) []string {
	if command, said := c[ofApplication]; said && service == application {
		return command
	}
	return c[service]
}
