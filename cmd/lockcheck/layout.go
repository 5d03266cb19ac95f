package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
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

// printItems writes names in one column and beside it their lines, wrapped.
func (s *system) printItems(items []item) error {
	var text strings.Builder
	indent := 0
	for _, i := range items {
		indent = max(indent, utf8.RuneCountInString(i.name)+2)
	}
	for _, i := range items {
		name := i.name
		for _, line := range i.lines {
			for n, part := range wrap(line, s.columns()-indent) {
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

// wrap breaks text between words, with room for an indent of two on all lines but
// the first. A word longer than a line gets one of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			if len(lines) == 0 {
				width -= 2
			}
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}
