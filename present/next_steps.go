package present

import (
	"fmt"
	"time"
)

// undirected says that no flag of lockcheck makes more of the run: it was another program's, or is incomplete because
// somebody ended it.
func (p presenter) undirected() bool { return p.header.Imported != "" || p.results.Interrupted }

// longer is the flag of a run that is some times as long, in words that begin a clause.
func (p presenter) longer(times float64) string {
	limit := time.Duration(p.results.End - p.results.Begin)
	if given, err := time.ParseDuration(p.header.Parameters["time-limit"]); err == nil {
		limit = given
	}
	if limit <= 0 {
		return "a longer --time-limit"
	}
	longer := time.Duration(times * float64(limit))
	return "--time-limit " + (longer + 5*time.Second - 1).Truncate(5*time.Second).String()
}

// moreChances says how faults of a kind that never mattered get more chances.
func (p presenter) moreChances() string {
	switch {
	case p.undirected():
		return ""
	case p.header.Application == nil && len(p.header.Workers) == 1:
		return "; one worker has nobody to compete with: run at least 2 (--concurrency 2)"
	}
	return "; " + p.longer(2) + " gives it more chances"
}

// enoughWork says how a run comes to do what is needed that did too little.
func (p presenter) enoughWork(done, needed int64) string {
	switch {
	case p.undirected():
		return ""
	case done > 0:
		const room = 1.5 // the next run may be slower
		return "; a run with " + p.longer(room*float64(needed)/float64(done)) + " would do enough"
	case p.tried() == 0:
		return "; no worker came to ask for the lock, so the machine is busy: run it with " + p.longer(3)
	case len(p.header.Faults) > 0:
		return "; run it with --nemesis none first, to see whether the faults are why" + p.attempts()
	}
	return "; look on the page at what the workers were told" + p.attempts()
}

// tried is how often workers asked for the lock.
func (p presenter) tried() int64 {
	o := p.results.Operations
	return o.Acquired + o.Busy + o.AcquireFailed + o.Unknown
}

// attempts says what became of the attempts to get the lock.
func (p presenter) attempts() string {
	o := p.results.Operations
	failed := o.AcquireFailed + o.Unknown
	return fmt.Sprintf(" (of the acquires %d were granted, %d found the lock busy, %d failed or had no answer)", o.Acquired, o.Busy, failed)
}
