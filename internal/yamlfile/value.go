package yamlfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"lockcheck/internal/spelling"
)

// ValueError says what is wrong with a value that a type of ours reads by itself. Parse puts its key in front.
type ValueError struct {
	line, column int
	err          error
}

func (e *ValueError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *ValueError) Unwrap() error { return e.err }

// Wrong is the error of an UnmarshalYAML about its value.
func Wrong(node *yaml.Node, err error) error {
	return &ValueError{line: node.Line, column: node.Column, err: err}
}

// Text is a value that must be a single one, such as 3s, and not a list or a mapping; example is one. The error is a
// *ValueError.
func Text(node *yaml.Node, example string) (string, error) {
	if node.Kind == yaml.ScalarNode {
		return node.Value, nil
	}
	return "", Wrong(node, fmt.Errorf("expected one value, as in %s, not %s", example, kindOf(node)))
}

// kindOf says in words what a value is that is not a single one.
func kindOf(node *yaml.Node) string {
	if node.Kind == yaml.SequenceNode {
		return "a list"
	}
	return "a mapping"
}

// withKey names the key of the value of an error.
func (e *ValueError) withKey(text []byte) error {
	var document yaml.Node
	if yaml.Unmarshal(text, &document) != nil {
		return e
	}
	key := keyAt(&document, e.line, e.column)
	if key == "" {
		return e
	}
	return fmt.Errorf("line %d: %s: %w", e.line, key, e.err)
}

// keyAt is the key of a value at a place, or of the list that it is in; "" for none.
func keyAt(node *yaml.Node, line, column int) string {
	for i, content := range node.Content {
		isValue := node.Kind == yaml.MappingNode && i%2 == 1
		inList := content.Kind == yaml.SequenceNode && hasAt(content, line, column)
		if isValue && (content.Line == line && content.Column == column || inList) {
			return node.Content[i-1].Value
		}
		if key := keyAt(content, line, column); key != "" {
			return key
		}
	}
	return ""
}

func hasAt(list *yaml.Node, line, column int) bool {
	for _, element := range list.Content {
		if element.Line == line && element.Column == column {
			return true
		}
	}
	return false
}

// keysOf lists the keys of each type of mapping that a type of ours is made of, by the name that the library has for it.
func keysOf(t reflect.Type, known map[string][]string) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		keysOf(t.Elem(), known)
	case reflect.Struct:
		if _, seen := known[t.String()]; seen {
			return
		}
		known[t.String()] = nil
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			keysOf(field.Type, known)
			switch {
			case name == "-":
			case strings.Contains(options, "inline"):
				known[t.String()] = append(known[t.String()], known[field.Type.String()]...)
			case name != "":
				known[t.String()] = append(known[t.String()], name)
			}
		}
	}
}

// unknownKeyInWords says of a key that there is not what the keys are.
func unknownKeyInWords(problem string, known map[string][]string) string {
	parts := unknownKey.FindStringSubmatch(problem)
	if parts == nil {
		return problem
	}
	said := fmt.Sprintf("there is no key %q", parts[1])
	if keys := known[parts[2]]; len(keys) > 0 {
		said += spelling.Hint(parts[1], keys)
	}
	return strings.Replace(problem, parts[0], said, 1)
}

// asValueError returns the *ValueError in an error, nil if there is none.
func asValueError(err error) *ValueError {
	var value *ValueError
	if errors.As(err, &value) {
		return value
	}
	return nil
}
