package guide

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/history"
)

// Text is a group in a few words, such as "failed by itself in 2 of 2 runs: redlock-clock-jump".
func (g Group) Text() string {
	if g.Broke == 0 {
		return fmt.Sprintf("held in %s", runsOf(g.N))
	}
	name := g.name()
	for _, more := range [][]string{g.Setup, g.Needed} {
		if len(more) > 0 {
			name += " (" + strings.Join(more, ", ") + ")"
		}
	}
	return fmt.Sprintf("%s in %d of %s: %s", brokenWords(g.Class), g.Broke, runsOf(g.N), name)
}

func (g Group) name() string {
	_, name, _ := strings.Cut(g.Experiment, "/")
	if name == "" {
		return "random faults"
	}
	return name
}

// Text is a cell in a few words.
func (c Cell) Text() string {
	switch c.State {
	case Broken:
		return c.Groups[0].Text()
	case Held:
		return fmt.Sprintf("held in %s", runsOf(c.Held))
	case TooShort:
		return "too short to tell"
	}
	return string(c.State)
}

func runsOf(n int64) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

func brokenWords(c Class) string {
	return map[Class]string{
		ByLock: "failed by itself", ByExpiry: "used after expiry", ByUse: "written without the lock",
		ByToken: "token out of order", Stuck: "stuck", Late: "passed on late",
	}[c]
}

// outcome says what a class means for the holders of the lock.
func outcome(c Class) string {
	return map[Class]string{
		ByLock: "the service grants it to two at once", ByExpiry: "the holder goes on after its lock ended", ByUse: "a client writes without it",
		ByToken: "its token goes back", Stuck: "nobody gets it again", Late: "it passes on late",
	}[c]
}

// faultWords says in words what a fault does, such as "the holder is paused".
func faultWords(fault string) string {
	var parts []string
	for _, name := range strings.Split(fault, " with ") {
		kind, whom := splitFault(name)
		parts = append(parts, whomWords(whom)+" "+kindWords(kind)+specialCases(name))
	}
	if fault == None || fault == LongWork {
		return map[string]string{None: "nothing is wrong", LongWork: "work takes longer than the lease"}[fault]
	}
	return strings.Join(parts, " while ")
}

func whomWords(whom string) string {
	switch whom {
	case "holder", "leader", "waiter":
		return "the " + whom
	case "one server":
		return "a server"
	case "one worker", "actor":
		return "a client"
	case "all", "servers", "workers":
		return "every one"
	}
	return "a " + whom
}

func kindWords(kind string) string {
	words, known := map[string]string{
		history.Pause: "is paused", history.Kill: "is killed", history.Restart: "is restarted", history.Crash: "loses its machine", history.PowerLoss: "loses power", history.Partition: "is cut off",
		history.DiskFull: "has a full disk", history.FsyncError: "cannot sync its disk", history.SlowDisk: "has a slow disk",
		history.Clock: "has its clock stepped", "clock-rate": "has a clock that runs wrong", "packet-delay": "gets late answers",
		"one-way": "gets no answers", history.TransferLeader: "hands over to another server", history.RemoveMember: "is removed from its cluster",
	}[kind]
	if !known {
		return "meets " + kind
	}
	return words
}

// specialCases describes the special cases in a fault's name.
func specialCases(name string) string {
	var all []string
	for _, special := range []string{backwards, partly, amongOnes} {
		if strings.HasSuffix(name, special) {
			all = append(all, map[string]string{backwards: " back", partly: " from some servers", amongOnes: " from other servers"}[special])
		}
	}
	if _, version, is := strings.Cut(name, inVersion); is {
		all = append(all, inVersion+version)
	}
	return strings.Join(all, "")
}

// words say how a lock breaks, how often, and which command shows it.
func (s Shown) words() string {
	return fmt.Sprintf("%s: %s (%s)", faultWords(s.Fault), outcome(s.Class), s.measured())
}

// measured is k of n, the version, and the command.
func (s Shown) measured() string {
	return s.count() + "; shown by: `" + s.Command() + "`"
}

func (s Shown) count() string {
	text := fmt.Sprintf("%d of %s", s.Broke, runsOf(s.N))
	if s.Version != "" {
		text += ", " + s.Version
	}
	return text
}

// name of a choice: the lock and its guard.
func (c Choice) name() string {
	if c.Guard == history.GuardNone {
		return c.Lock
	}
	return c.Lock + " with guard " + c.Guard
}

// keptText is what runs measured behind the guard.
func (c Choice) keptText() string {
	k := c.Kept
	if k.Runs == 0 {
		return "no run behind this guard yet: it rests on mechanism alone"
	}
	text := fmt.Sprintf("%d of %d updates lost in %s", k.Lost, k.Updates, runsOf(k.Runs))
	if c.Guard == history.GuardIdempotency && k.Violations == 0 {
		text = fmt.Sprintf("none of %d jobs missed or done twice in %s", k.Updates, runsOf(k.Runs))
	}
	if k.Violations > 0 && k.Lost == 0 {
		text += fmt.Sprintf(", %d of which violated %s", k.Violations, strings.Join(k.Violated, ", "))
	}
	if c.Guard == history.GuardNone {
		return text + " without a guard, under all faults together"
	}
	if others := slices.DeleteFunc(slices.Clone(k.Locks), func(l string) bool { return l == c.Lock }); len(others) > 0 {
		return text + "; the guard does not depend on the lock, and these runs used " + strings.ReplaceAll(strings.Join(k.Locks, ", "), "none", "no lock at all")
	}
	return fmt.Sprintf("%s, though two held it at once in %d of them", text, k.Overlapped)
}

// faultyText lists the kinds of fault under which the lock itself failed.
func (c Choice) faultyText() string {
	var all []string
	for _, s := range c.Faulty {
		all = append(all, fmt.Sprintf("%s (%s)", s.Fault, s.count()))
	}
	if len(all) == 0 {
		return "under no fault that was tried"
	}
	if len(all) > 3 {
		all = append(all[:3], fmt.Sprintf("%d more", len(all)-3))
	}
	return "it fails, without a guard, under " + strings.Join(all, "; ")
}
