package checker

import (
	"math"
	"slices"
	"sort"
)

// users are the grants under which a key was used so far. For each write they tell whether one of them is
// certainly later than the write's grant, as replacedBy decides for two grants. Comparing all grants is not
// needed: only grants that no other grant dominates are kept.
type users struct {
	run    *run
	groups []*group
	// expired includes grants that the service had forgotten when they arrived; these replace only each
	// other.
	expired bool
}

// group is all users, or for a reentrant lock those of one worker, which does not replace itself.
type group struct {
	worker worker
	newest *attempt // the grant that was asked for last
	// ranked are the grants whose token ranks them, by token and answer. stamped and bare are the grants with
	// and without such a token, by answer and the earliest possible end.
	ranked, stamped, bare skyline
}

func (u *users) add(a *attempt) {
	if a.expired && !u.expired {
		return
	}
	i := slices.IndexFunc(u.groups, func(g *group) bool { return g.worker == a.worker || u.run.header.Reentrant <= 1 })
	if i < 0 {
		i = len(u.groups)
		u.groups = append(u.groups, &group{worker: a.worker, newest: a})
	}
	g := u.groups[i]
	if a.acquire.invoke > g.newest.acquire.invoke {
		g.newest = a
	}
	ended := point{a.acquire.done, u.run.endOf(a).orReleased(), a}
	if u.run.rankedByToken(a) {
		g.ranked.add(point{rank(a.token), a.acquire.done, a})
		g.stamped.add(ended)
	} else {
		g.bare.add(ended)
	}
}

// after returns a user that was certainly granted the key after a; nil if there is none.
func (u *users) after(a *attempt) *attempt {
	for _, g := range u.groups {
		if u.run.header.Reentrant > 1 && g.worker == a.worker {
			continue
		}
		if g.newest.acquire.invoke > a.acquire.done {
			return g.newest
		}
		byToken := u.run.rankedByToken(a)
		if later := g.ranked.beyond(rank(a.token), a.acquire.invoke-1); byToken && later != nil {
			return later
		}
		// These grants may have come only after a, not before it.
		end := u.run.endOf(a).orReleased() - 1
		if later := g.bare.beyond(end, a.acquire.done); later != nil {
			return later
		}
		if later := g.stamped.beyond(end, a.acquire.done); !byToken && later != nil {
			return later
		}
	}
	return nil
}

// rank is a token as a signed number, in the same order.
func rank(token uint64) int64 { return int64(token ^ 1<<63) }

// skyline keeps the points that no other point equals or exceeds in both values: x rises, and y falls. If
// grants follow each other, it keeps only the last one.
type skyline []point

type point struct {
	x, y int64
	of   *attempt
}

func (s *skyline) add(p point) {
	at := s.search(p.x)
	if at < len(*s) && (*s)[at].y >= p.y {
		return
	}
	from := at
	for from > 0 && (*s)[from-1].y <= p.y {
		from--
	}
	if at < len(*s) && (*s)[at].x == p.x { // and its y is lower
		at++
	}
	*s = slices.Replace(*s, from, at, p)
}

// beyond returns the owner of a point that exceeds both values, nil if there is none.
func (s skyline) beyond(x, y int64) *attempt {
	if x == math.MaxInt64 {
		return nil
	}
	if at := s.search(x + 1); at < len(s) && s[at].y > y {
		return s[at].of
	}
	return nil
}

// search returns the index of the first point with at least this x.
func (s skyline) search(x int64) int {
	return sort.Search(len(s), func(i int) bool { return s[i].x >= x })
}
