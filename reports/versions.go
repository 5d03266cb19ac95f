package reports

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Versions lists versions of servers and modules by their common names.
func Versions(versions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, clean(shortModule(name)+" "+strings.TrimPrefix(versions[name], "v")))
	}
	return strings.Join(parts, ", ")
}

// majorVersion is the last path element of a module from version 2 on.
var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// shortModule is the common name of a module.
func shortModule(module string) string {
	module = majorVersion.ReplaceAllString(module, "")
	name := path.Base(module)
	switch name {
	case "client", "server", "api": // these names need the element before them
		return path.Base(path.Dir(module)) + "/" + name
	}
	return name
}
