package jepsen

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"olympos.io/encoding/edn"
)

// bare matches the strings that text writes without quotes.
var bare = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// text writes an EDN value so that two values have the same text if and only if Clojure calls them equal: 1,
// :1 and "1" are three values. An unambiguous string is written without quotes. The text is not exact if the
// decoder may have merged different values: for decimal numbers, and for strings with broken text.
func text(value any) (s string, exact bool) {
	switch v := value.(type) {
	case nil:
		return "nil", true
	case bool, int64:
		return fmt.Sprint(v), true
	case big.Int:
		return v.String(), true
	case *big.Int:
		return v.String(), true
	case float64:
		return fmt.Sprint(v), false
	case rune:
		return fmt.Sprintf(`\u%04x`, v), v != utf8.RuneError
	case string:
		whole := !strings.ContainsRune(v, utf8.RuneError)
		if bare.MatchString(v) && !slices.Contains([]string{"nil", "true", "false"}, v) {
			return v, whole
		}
		return quote(v), whole
	case edn.Keyword:
		return ":" + string(v), !strings.ContainsRune(string(v), utf8.RuneError)
	case edn.Symbol:
		return "'" + string(v), !strings.ContainsRune(string(v), utf8.RuneError)
	case time.Time:
		return `#inst "` + v.UTC().Format(time.RFC3339Nano) + `"`, true
	case edn.Tag:
		s, exact = text(v.Value)
		return "#" + v.Tagname + " " + s, exact
	case []any:
		members, exact := texts(v)
		return "[" + strings.Join(members, " ") + "]", exact
	case map[any]bool:
		members, exact := texts(slices.Collect(maps.Keys(v)))
		slices.Sort(members)
		return "#{" + strings.Join(members, " ") + "}", exact
	case map[any]any:
		var members []string
		exact = true
		for name, member := range v {
			pair, whole := texts([]any{name, member})
			members, exact = append(members, strings.Join(pair, " ")), exact && whole
		}
		slices.Sort(members)
		return "{" + strings.Join(members, ", ") + "}", exact
	case *any: // a member of a set or map that Go cannot hash
		return text(*v)
	}
	return fmt.Sprint(value), false
}

// texts writes several values, and says whether all are exact.
func texts(values []any) (all []string, exact bool) {
	exact = true
	for _, value := range values {
		s, whole := text(value)
		all, exact = append(all, s), exact && whole
	}
	return all, exact
}

// untagged removes the tag of a value, such as #jepsen.history.Op{...}.
func untagged(value any) any {
	if tag, is := value.(edn.Tag); is {
		return tag.Value
	}
	return value
}
