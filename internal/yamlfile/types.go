package yamlfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wrongType matches the library's message that a value does not have the Go type of its field.
var wrongType = regexp.MustCompile("^line ([0-9]+): cannot unmarshal (!!\\S+)(?: `(.*)`)? into (\\S+)$")

// typeInWords turns the library's message about a value of the wrong type into words for a reader of the file:
// the key, what is expected, and what is there. It returns any other message unchanged.
func typeInWords(problem string, text []byte) string {
	parts := wrongType.FindStringSubmatch(problem)
	if parts == nil {
		return problem
	}
	line, _ := strconv.Atoi(parts[1])
	tag, value, into := parts[2], parts[3], parts[4]
	key := ""
	var document yaml.Node
	if yaml.Unmarshal(text, &document) == nil {
		if found := valuesAt(&document, line, tag, strings.TrimSuffix(value, "...")); len(found) == 1 {
			key, value = found[0].key+": ", found[0].value // the library truncates long values
		}
	}
	what := map[string]string{"!!seq": "a list", "!!map": "a mapping"}[tag]
	if what == "" {
		what = strconv.Quote(value)
	}
	if into == "time.Duration" {
		return fmt.Sprintf("line %d: %s%s is not a duration: write it with a unit, as in 3s", line, key, what)
	}
	return fmt.Sprintf("line %d: %sexpected %s, not %s", line, key, expected(into, value), what)
}

// expected describes how a value of a Go type is written in YAML.
func expected(into, value string) string {
	switch {
	case strings.HasPrefix(into, "[]") && value != "":
		return "a list, as in [" + strings.Join(strings.Fields(value), ", ") + "]"
	case strings.HasPrefix(into, "[]"):
		return "a list"
	case strings.HasPrefix(into, "uint"):
		return "a whole number of 0 or more"
	case strings.HasPrefix(into, "int"):
		return "a whole number"
	case strings.HasPrefix(into, "float"):
		return "a number"
	case into == "bool":
		return "true or false"
	case strings.HasPrefix(into, "map["), strings.Contains(into, "."):
		return "a mapping of keys to values"
	}
	return "a single value"
}

// value is the value of a key.
type value struct{ key, value string }

// valuesAt lists the values of keys that are in a line and have a tag. A scalar must also start with begin.
func valuesAt(node *yaml.Node, line int, tag, begin string) []value {
	var found []value
	for i, content := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 1 && content.Line == line && content.ShortTag() == tag && strings.HasPrefix(content.Value, begin) {
			found = append(found, value{node.Content[i-1].Value, content.Value})
		}
		found = append(found, valuesAt(content, line, tag, begin)...)
	}
	return found
}
