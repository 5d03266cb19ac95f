// Package yamlfile is the form of the files that people hand to lockcheck: schedules, suites,
// reproductions. A key that is misspelt must not be taken for one that was left out, so what
// is not known is an error, in words of the file, with its line.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Read reads the one document of a file; what it leaves out stays as it is in the value.
func Read(r io.Reader, into any) error {
	_, err := Parse(r, into)
	return err
}

// Parse is Read for who has more to say of what is in the file.
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
		return nil, inWords(err, text)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document")
	}
	return &f, yaml.Unmarshal(text, &f.document)
}

// File is one that was read.
type File struct{ document yaml.Node }

// FieldError says what is wrong with a field.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }
func (e *FieldError) Unwrap() error { return e.Err }

// At puts in front of an error the line that it is about: that of what a path of keys and
// of places in lists leads to, and of the field that a FieldError names there. Of a key that
// the file leaves out it is the line around it, if any.
func (f *File) At(err error, path ...any) error {
	var field *FieldError
	if errors.As(err, &field) {
		path = append(slices.Clone(path), field.Field)
	}
	line := 0
	node := &f.document
	if len(node.Content) > 0 {
		node = node.Content[0]
	}
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

// child is the value of a key, or the element of a list at a place or with a value; nil for
// none.
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

// unknownKey is how the library says it, with types that readers of the file know nothing of.
var unknownKey = regexp.MustCompile(`field (.+) not found in type \S+$`)

// inWords says in words of the file what is wrong with a text.
func inWords(err error, text []byte) error {
	var wrong *yaml.TypeError
	switch {
	case errors.As(err, &wrong):
	case !place.MatchString(err.Error()): // it comes from a value of ours, and has its line
		return err
	default:
		return fmt.Errorf("line %d: %s", lineOf(err, text), problem(err))
	}
	var lines []string
	for _, line := range wrong.Errors {
		line = unknownKey.ReplaceAllString(line, `there is no key "$1"`)
		lines = append(lines, typeInWords(line, text))
	}
	return errors.New(strings.Join(lines, "; "))
}

// place is what the library says before what the problem is.
var place = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

func problem(err error) string { return place.ReplaceAllString(err.Error(), "") }

// maxLines is for how long a file the line of a problem is looked for.
const maxLines = 2000

// lineOf finds the line of a problem with the syntax. The library often names the one
// before it, or that where the mapping around it begins; it is the first one without which
// there is another problem or none. Of a list or a mapping in brackets that does not end
// the library means the line where it begins.
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

// Write writes a value as Read reads it.
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
