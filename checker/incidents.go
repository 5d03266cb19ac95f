package checker

import (
	"cmp"
	"slices"
)

// incidents are the violations of one property. All are counted, but only the first MaxListed are kept,
// because a lock that is always wrong is wrong millions of times.
type incidents struct {
	total  int
	keys   map[string]bool // keys that the violations are about
	causes map[string]int64
	kept   []Incident
	full   bool
	last   Incident // the last of the first MaxListed, if full
}

// Incidents are the violations of one property that another package finds. The zero value has none.
type Incidents = incidents

// Add counts a violation with its cause, "" for none, and describes it if it may be among the first.
func (c *incidents) Add(key string, from int64, cause string, describe func() Incident) {
	c.add(key, from, describe)
	if cause != "" {
		c.because(cause, 1)
	}
}

// Total is the number of violations.
func (c *incidents) Total() int64 { return int64(c.total) }

// Finding returns a Violation if there are any incidents, else a finding with verdict Valid.
func (c *incidents) Finding(p Property) Finding { return judge(p, *c).Finding }

// add counts a violation, and describes it if it may be among the first.
func (c *incidents) add(key string, from int64, describe func() Incident) {
	c.more(key, 1)
	if !c.mayList(from) {
		return
	}
	c.kept = append(c.kept, describe())
	if len(c.kept) == 2*MaxListed {
		c.kept = c.first()
		c.full, c.last = true, c.kept[MaxListed-1]
	}
}

// more counts violations of a key without describing them.
func (c *incidents) more(key string, n int64) {
	c.total += int(n)
	if c.keys == nil {
		c.keys = make(map[string]bool)
	}
	c.keys[key] = true
}

// mayList reports whether a violation that begins at a time may be among the MaxListed earliest.
func (c *incidents) mayList(from int64) bool { return !c.full || from <= c.last.From }

// because counts n violations for a cause.
func (c *incidents) because(class string, n int64) {
	if c.causes == nil {
		c.causes = make(map[string]int64)
	}
	if n > 0 {
		c.causes[class] += n
	}
}

// first returns the first MaxListed violations, in order.
func (c *incidents) first() []Incident {
	slices.SortStableFunc(c.kept, func(a, b Incident) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Element, b.Element),
			slices.Compare(a.Grants, b.Grants), slices.Compare(a.Workers, b.Workers), cmp.Compare(a.To, b.To), cmp.Compare(a.Kind, b.Kind))
	})
	return c.kept[:min(len(c.kept), MaxListed)]
}

func judge(p Property, found incidents) judged {
	j := judged{Finding: Finding{Property: p, Verdict: Valid, Total: found.total}}
	if found.total > 0 {
		j.Verdict, j.Violations, j.Causes = Violation, found.first(), found.causes
	}
	return j
}
