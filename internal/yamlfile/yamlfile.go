// Package yamlfile reads and writes the files that people hand to lockcheck: schedules,
// suites, reproductions. A key that is misspelt must not be taken for one that was left
// out, so what is not known is an error, in words of the file and with its line.
package yamlfile

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Read reads the one document of a file; what it leaves out stays as it is in the value.
func Read(r io.Reader, into any) error {
	decoder := yaml.NewDecoder(r)
	decoder.KnownFields(true)
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case err != nil:
		return inWords(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one YAML document")
	}
	return nil
}

// unknownKey is how the library says it, with a type of ours that readers of the file
// know nothing of.
var unknownKey = regexp.MustCompile(`field (.+) not found in type \S+$`)

func inWords(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	var lines []string
	for _, line := range wrong.Errors {
		lines = append(lines, unknownKey.ReplaceAllString(line, `there is no key "$1"`))
	}
	return errors.New(strings.Join(lines, "; "))
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
