package clients

import (
	"slices"
	"strings"
)

// optionSign stands before each option in the name of a lock.
const optionSign = "+"

// Option is something that a careful user adds to the use of a lock that its library's
// own documentation shows.
type Option struct {
	Name string
	Adds string // what is done with it, in words
	// changes says what else is different about the lock then; nil for nothing.
	changes func(*Info)
}

// WatchConnection is an option of the locks whose client can see that the connection on
// which they rest is lost.
const WatchConnection = "watch-connection"

// Watchdog is an option of every lock. The worker acts on it, whose calls they are.
const Watchdog = "watchdog"

func watchdog() Option {
	return Option{Name: Watchdog, Adds: "a call that overruns its deadline by half a second is left behind"}
}

// optionSet holds the names of the options in force.
type optionSet []string

func (s optionSet) has(option string) bool { return slices.Contains(s, option) }

// With returns the lock used with options, named as in "a+b"; "" for none. It is false if
// the lock has no such option, or one is named twice.
func (i Info) With(options string) (Info, bool) {
	if options == "" {
		return i, true
	}
	var set optionSet
	for name := range strings.SplitSeq(options, optionSign) {
		at := slices.IndexFunc(i.Options, func(o Option) bool { return o.Name == name })
		if at < 0 || set.has(name) {
			return Info{}, false
		}
		set = append(set, name)
		if change := i.Options[at].changes; change != nil {
			change(&i)
		}
	}
	open := i.Open
	i.Open = func(c Config) (Lock, error) {
		c.options = set
		return open(c)
	}
	i.Name += optionSign + options
	i.options = set
	return i, true
}

// Uses says whether the lock is used with an option.
func (i Info) Uses(option string) bool { return i.options.has(option) }

// NamesLike lists what a name that ByName does not know may have meant: the lock that it
// begins with, by its options, or all locks.
func NamesLike(name string) []string {
	base, _, _ := strings.Cut(name, optionSign)
	info, known := ByName(base)
	if !known {
		return Names()
	}
	names := []string{base}
	for _, o := range info.Options {
		names = append(names, base+optionSign+o.Name)
	}
	return names
}
