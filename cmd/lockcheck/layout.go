package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"lockcheck/reports"
)

// defaultWidth is that of a terminal whose width is not known.
const defaultWidth = 80

// columns is the width that text for people may have.
func (s *system) columns() int {
	if s.width == 0 {
		return defaultWidth
	}
	return s.width
}

// item is one row of a list: a name, and what there is to say about it.
type item struct {
	name  string
	lines []string
}

// widestName is what a name may take of the first column. A longer one gets a line of its
// own: next to it there would be no space left for an address.
const widestName = 24

// printItems writes names in one column and their lines next to it, wrapped.
func (s *system) printItems(items []item) error {
	var text strings.Builder
	indent := 0
	for _, i := range items {
		if n := utf8.RuneCountInString(i.name); n <= widestName {
			indent = max(indent, n+2)
		}
	}
	for _, i := range items {
		name := i.name
		if utf8.RuneCountInString(name) > widestName {
			text.WriteString(name + "\n")
			name = ""
		}
		for _, line := range i.lines {
			for n, part := range reports.Wrap(line, s.columns()-indent, s.columns()-indent-2, false) {
				if n > 0 {
					part = "  " + part
				}
				fmt.Fprintf(&text, "%-*s%s\n", indent, name, part)
				name = ""
			}
		}
	}
	_, err := io.WriteString(s.stdout, text.String())
	return err
}
