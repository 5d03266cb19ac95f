package clients

import (
	"slices"
	"strings"
)

// optionSign precedes each option in the name of a lock.
const optionSign = "+"

// Option is a way to use a lock that a careful user adds to the examples in its library's documentation.
type Option struct {
	Name string
	Adds string // the effect of the option, for users
	// changes adapts the description of the lock; nil if the option changes nothing in it.
	changes func(*Info)
}

// WatchConnection is an option of the locks whose client can observe the loss of the connection on which they
// depend.
const WatchConnection = "watch-connection"

// Watchdog is an option of every lock. It is implemented by the worker, which makes the calls.
const Watchdog = "watchdog"

func watchdog() Option {
	return Option{Name: Watchdog, Adds: "a call that overruns its deadline by half a second is left behind"}
}

// optionSet holds the names of the options in force.
type optionSet []string

func (s optionSet) has(option string) bool { return slices.Contains(s, option) }

// With returns the lock used with options, written as in "a+b"; "" for none. It returns false if the lock lacks
// an option or if an option is repeated.
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

// Uses reports whether the lock is used with an option.
func (i Info) Uses(option string) bool { return i.options.has(option) }

// NamesLike lists candidates for the correction of a name that ByName does not know. If the name begins with a
// lock, they are that lock and its options, otherwise all locks.
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
