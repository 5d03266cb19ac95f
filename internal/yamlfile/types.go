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
func typeInWords(problem string, text []byte, keys map[string][]string) string {
	parts := wrongType.FindStringSubmatch(problem)
	if parts == nil {
		return problem
	}
	line, _ := strconv.Atoi(parts[1])
	tag, value, into := parts[2], parts[3], parts[4]
	key, instead := "", ""
	var document yaml.Node
	if yaml.Unmarshal(text, &document) == nil {
		if found := valuesAt(&document, "", line, tag, strings.TrimSuffix(value, "...")); len(found) == 1 {
			key, value, instead = found[0].key+": ", found[0].value, found[0].instead // the library truncates long values
		}
	}
	what := map[string]string{"!!seq": "a list", "!!map": "a mapping"}[tag]
	if what == "" {
		what = strconv.Quote(value)
	}
	if into == "time.Duration" {
		return fmt.Sprintf("line %d: %s%s is not a duration: write it with a unit, as in 3s", line, key, what)
	}
	wanted := expected(into, tag, value, keys[into])
	if wanted == oneValue && instead != "" {
		wanted += ", as in " + instead
	}
	return fmt.Sprintf("line %d: %sexpected %s, not %s", line, key, wanted, what)
}

// oneValue describes a scalar.
const oneValue = "a single value"

// shownKeys is how many keys of a mapping a message names.
const shownKeys = 4

// expected describes how a value of a Go type is written in YAML, for a value that was written as something else. The
// keys are those of a mapping, if they are known.
func expected(into, tag, value string, keys []string) string {
	switch {
	case strings.HasPrefix(into, "[]") && tag == "!!map":
		return "a list, each element of which begins with \"- \""
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
	case len(keys) > 0:
		return "a mapping with keys such as " + strings.Join(keys[:min(len(keys), shownKeys)], ", ")
	case strings.HasPrefix(into, "map["), strings.Contains(into, "."):
		return "a mapping of keys to values"
	}
	return oneValue
}

// value is the value of a key, or an element of its list. instead is how the only element of a list is written
// without the list; "" otherwise.
type value struct{ key, value, instead string }

// valuesAt lists the values in a line that have a tag. A scalar must also start with begin. An element of a list has
// the key of the list. Of a list in a list only the inner one is listed: it is more often the mistake.
func valuesAt(node *yaml.Node, key string, line int, tag, begin string) []value {
	var found []value
	for i, content := range node.Content {
		of := key
		if node.Kind == yaml.MappingNode && i%2 == 1 {
			of = node.Content[i-1].Value
		}
		isValue := node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode && i%2 == 1
		inside := valuesAt(content, of, line, tag, begin)
		if len(inside) == 0 && isValue && of != "" && content.Line == line && content.ShortTag() == tag && strings.HasPrefix(content.Value, begin) {
			one := value{key: of, value: content.Value}
			if content.Kind == yaml.SequenceNode && len(content.Content) == 1 && content.Content[0].Kind == yaml.ScalarNode {
				one.instead = of + ": " + content.Content[0].Value
			}
			found = append(found, one)
		}
		found = append(found, inside...)
	}
	return found
}
