package main

import (
	"slices"
	"strings"

	"lockcheck/internal/suites/hunt"
)

// currentArgs translates a command line with the former name of a command; nil if its name is
// current. Former names are kept for one release.
func currentArgs(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	rest := slices.Clone(args[1:])
	given := func(flag string) bool {
		return slices.ContainsFunc(rest, func(arg string) bool { return arg == flag || strings.HasPrefix(arg, flag+"=") })
	}
	if args[0] == "sweep" || args[0] == "advise" { // their --lock had a shorthand, which --locks has not
		for i, arg := range rest {
			if arg == "-l" {
				rest[i] = "--lock"
			} else if lock, short := strings.CutPrefix(arg, "-l"); short {
				rest[i] = "--lock=" + strings.TrimPrefix(lock, "=")
			}
		}
	}
	switch args[0] {
	case "help":
		if current := currentArgs(rest); current != nil { // without the flags that were added
			return append([]string{"help"}, slices.DeleteFunc(current, func(arg string) bool { return strings.Contains(arg, "..") || strings.HasPrefix(arg, "-") })...)
		}
		return nil
	case "sweep":
		if !given("--pause") && !given("--resume") {
			rest = append([]string{"--pause", "100ms..5s"}, rest...)
		}
		return append([]string{"compare"}, rest...)
	case "profile":
		for i, arg := range rest {
			if arg == "--time" || strings.HasPrefix(arg, "--time=") {
				rest[i] = strings.Replace(arg, "--time", "--time-limit", 1)
			}
		}
		if !given("--load") {
			rest = append([]string{"--load", "1..64"}, rest...)
		}
		return append([]string{"compare"}, rest...)
	case "merge":
		if slices.ContainsFunc(rest, hunt.Holds) {
			return append([]string{"hunt", "merge"}, rest...)
		}
		return append([]string{"compare", "merge"}, rest...)
	case "findings":
		if len(rest) > 0 && rest[0] == "run" {
			rest[0] = "all"
		}
		return append([]string{"repro"}, rest...)
	case "claims":
		return append([]string{"repro", "claims"}, rest...)
	case "advise":
		return append([]string{"guide", "advise"}, rest...)
	}
	return nil
}
