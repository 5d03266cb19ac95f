// Package yamlfile reads the YAML files that users write for lockcheck: schedules, suites, reproductions. An
// unknown key is an error, because a misspelt key must not be mistaken for one that was left out. Errors are in
// the terms of the file and name the line.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Read reads the only document of a file into a value. A key that is missing in the file leaves its field
// unchanged.
func Read(r io.Reader, into any) error {
	_, err := Parse(r, into)
	return err
}

// Parse is Read for a caller that reports further errors with the line of a field.
func Parse(r io.Reader, into any) (*File, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var f File
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, inWords(err, text, into)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document")
	}
	return &f, yaml.Unmarshal(text, &f.document)
}

// File is a file that was read. It knows the lines of its fields.
type File struct{ document yaml.Node }

// FieldError says what is wrong with a field.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// At prefixes an error with the line that it is about. The path consists of keys and of indices of lists. If
// the error is a FieldError, the path is extended by its field. If the file has no such key, the line is that
// of the innermost mapping on the path, if any.
func (f *File) At(err error, path ...any) error {
	var field *FieldError
	if errors.As(err, &field) {
		path = append(slices.Clone(path), field.Field)
	}
	line := 0
	node := f.top()
	for _, part := range path {
		if node = child(node, part); node == nil {
			break
		}
		line = node.Line
	}
	if line == 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", line, err)
}

func (f *File) top() *yaml.Node {
	if len(f.document.Content) > 0 {
		return f.document.Content[0]
	}
	return &f.document
}

// Key is a key of a mapping.
type Key struct {
	Name string
	Line int
}

// Keys lists the keys of the mapping at a path of keys; none if there is no mapping there.
func (f *File) Keys(path ...any) []Key {
	node := f.top()
	for _, part := range path {
		if node = child(node, part); node == nil {
			return nil
		}
	}
	if node.Kind != yaml.MappingNode {
		return nil
	}
	var keys []Key
	for i := 0; i < len(node.Content); i += 2 {
		keys = append(keys, Key{node.Content[i].Value, node.Content[i].Line})
	}
	return keys
}

// child returns the value of a key, or the element of a list with an index or a value; nil for none.
func child(node *yaml.Node, part any) *yaml.Node {
	for i, content := range node.Content {
		switch name, isName := part.(string); {
		case node.Kind == yaml.MappingNode && isName && i%2 == 0 && content.Value == name:
			return node.Content[i+1]
		case node.Kind == yaml.SequenceNode && (isName && content.Value == name || part == i):
			return content
		}
	}
	return nil
}

// unknownKey matches the library's message, which names Go types that mean nothing to a reader of the file.
var unknownKey = regexp.MustCompile(`field (.+) not found in type (\S+)$`)

// inWords says in the terms of the file what is wrong with a text that was read into a value.
func inWords(err error, text []byte, into any) error {
	var wrong *yaml.TypeError
	switch value := asValueError(err); {
	case value != nil:
		return value.withKey(text)
	case errors.As(err, &wrong):
	case !place.MatchString(err.Error()): // the error comes from one of our UnmarshalYAML methods and has its line
		return err
	default:
		return fmt.Errorf("line %d: %s", lineOf(err, text), problem(err))
	}
	var lines []string
	keys := make(map[string][]string)
	keysOf(reflect.TypeOf(into), keys)
	for _, line := range wrong.Errors {
		lines = append(lines, typeInWords(unknownKeyInWords(line, keys), text, keys))
	}
	return errors.New(strings.ReplaceAll(strings.Join(lines, "; "), "?; ", "? "))
}

// place matches what precedes the problem in the library's message.
var place = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

func problem(err error) string { return place.ReplaceAllString(err.Error(), "") }

// maxLines is the length of the longest file for which lineOf looks for the exact line.
const maxLines = 2000

// lineOf finds the line of a syntax error. The library often names the line before it, or the first line of the
// mapping around it.
//
// The line that causes the error is the first one without which the error disappears or is a different one. For
// a list or a mapping whose closing bracket is missing, the library's line, where the bracket opens, is right.
func lineOf(err error, text []byte) int {
	lines := bytes.SplitAfter(bytes.TrimRight(text, "\n"), []byte("\n"))
	said, _ := strconv.Atoi(place.FindStringSubmatch(err.Error())[1])
	if len(lines) > maxLines || strings.Contains(problem(err), "',' or") {
		return min(said+1, len(lines))
	}
	n := len(lines)
	for n > 1 {
		shorter := yaml.Unmarshal(bytes.Join(lines[:n-1], nil), new(yaml.Node))
		if shorter == nil || problem(shorter) != problem(err) {
			break
		}
		n--
	}
	return n
}

// Write writes a value in the form that Read accepts.
func Write(w io.Writer, value any) error {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(value), encoder.Close()); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}
