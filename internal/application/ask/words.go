//go:build !embedded

package ask

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	errNoCommand  = errors.New("there is no command")
	errUnbalanced = errors.New("the command has a quotation mark without its partner, or one that ends within a word")
)

// splitWords splits a command line as redis-cli does (sdssplitargs in its sources), so that what works there works
// here: a shell would not let "ZRANGEBYSCORE key (1 5" pass.
func splitWords(line string) (words []string, err error) {
	for line = strings.TrimLeft(line, space); line != ""; line = strings.TrimLeft(line, space) {
		var word string
		if word, line, err = firstWord(line); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return nil, errNoCommand
	}
	return words, nil
}

const space = " \t\r\n\v\f"

// firstWord takes a word from the beginning of a line. A quotation may begin within a word, and must end it.
func firstWord(line string) (word, rest string, err error) {
	var text strings.Builder
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case strings.IndexByte(space, c) >= 0:
			return text.String(), line[i:], nil
		case c == '"' || c == '\'':
			n, closed := quotation(&text, line[i+1:], c)
			rest = line[i+1+n:]
			if !closed || rest != "" && strings.IndexByte(space, rest[0]) < 0 {
				return "", line, errUnbalanced
			}
			return text.String(), rest, nil
		default:
			text.WriteByte(c)
		}
	}
	return text.String(), "", nil
}

// quotation writes what is quoted at the beginning of a text. It returns how many bytes that took, with the mark that
// ends it.
func quotation(into *strings.Builder, text string, mark byte) (n int, closed bool) {
	for n < len(text) {
		if text[n] == mark {
			return n + 1, true
		}
		value, size := quoted(text[n:], mark)
		into.WriteByte(value)
		n += size
	}
	return n, false
}

// quoted is the first byte of what a text in quotation marks stands for, and how many bytes of the text that takes.
// Single marks know only \'.
func quoted(text string, mark byte) (value byte, size int) {
	if text[0] != '\\' || len(text) == 1 || mark == '\'' && text[1] != mark {
		return text[0], 1
	}
	if text[1] == 'x' && len(text) >= 4 {
		if code, err := strconv.ParseUint(text[2:4], 16, 8); err == nil {
			return byte(code), 4
		}
	}
	escapes := map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'a': '\a'}
	if value, known := escapes[text[1]]; known && mark == '"' {
		return value, 2
	}
	return text[1], 2
}
