package checker

import (
	"strings"
	"testing"

	"lockcheck/history"
)

// TestUnlockedWrite: if a write without the lock destroys an update, that is the cause, and the explanation
// names the writer.
func TestUnlockedWrite(t *testing.T) {
	for name, s := range map[string]*script{
		"it overwrites":      newScript().acquire("w1", "a", 10, 11).read("a", 12, 0).busy("w2", "b", 13, 14, "a").read("b", 15, 0).write("a", 16, 1, 0, 1).write("b", 17, 2, 0, 2).final("k0", "[2]"),
		"it is overwritten":  newScript().acquire("w1", "a", 10, 11).read("a", 12, 0).busy("w2", "b", 13, 14, "a").read("b", 15, 0).write("b", 16, 2, 0, 1).write("a", 17, 1, 0, 2).final("k0", "[1]"),
		"two of them do so":  newScript().busy("w1", "a", 10, 11, "").read("a", 12, 0).busy("w2", "b", 13, 14, "a").read("b", 15, 0).write("b", 16, 2, 0, 1).write("a", 17, 1, 0, 2).final("k0", "[1]"),
		"one, not mentioned": newScript().try("w2", "b", 10, 11, history.Event{Type: history.Info, Error: "reset"}).acquire("w1", "a", 12, 13).read("b", 14, 0).write("a", 15, 1, 0, 1).write("b", 16, 2, 0, 2).final("k0", "[2]"),
	} {
		t.Run(name, func(t *testing.T) {
			r := s.end().check(t)
			for _, p := range []Property{NoStaleWrite, NoLostUpdate} {
				f := r.of(p)
				if f.Verdict != Violation || f.Causes[CauseUnlocked] != int64(f.Total) || f.Violations[0].Explanation.Unlocked == nil {
					t.Errorf("%s: %+v", p, f)
				}
			}
			if r.Overlaps.Total() != 0 || r.of(NoStaleWrite).Facts[0].Kind != FactUnlockedWrites {
				t.Errorf("overlaps %+v\n%s", r.Overlaps, r.dump())
			}
		})
	}
}

func TestStaleWrite(t *testing.T) {
	two := func() *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121)
	}
	cas := func(s *script) *script { return s.with(func(h *history.Header) { h.Guard = "cas" }) }
	match := func(s *script) *script { return s.with(func(h *history.Header) { h.Guard = "match" }) }
	// The worker is stopped while it asks, and learns of its grant when the next one exists.
	late := func(first, second uint64) *script {
		return newScript().with(func(h *history.Header) { h.Guard, h.Tokens = "fence", first > 0 }).
			acquireToken("w1", "a", 10, 125, first).acquireToken("w2", "b", 111, 112, second).read("a", 126, 0).read("b", 130, 0)
	}
	// Either the request was in flight for so long that another grant came and went meanwhile, or the answer
	// was, after its lease had run out. Only a release that reports the grant as gone tells which.
	onItsWay := func(first, second uint64) *script {
		return newScript().with(func(h *history.Header) { h.Tokens = first > 0 }).
			acquireToken("w1", "a", 23, 174, first).acquireToken("w2", "b", 135, 141, second).write("b", 143, 1, 0, 1).release("b", 147, 153).write("a", 187, 2, 1, 2)
	}
	nested := func(second string) *script {
		return newScript().with(func(h *history.Header) { h.Reentrant = 2 }).acquire("w1", "a", 10, 11).acquire(second, "b", 20, 21).
			write("b", 22, 1, 0, 1).release("b", 23, 24).write("a", 25, 2, 1, 2)
	}
	waited := func(first, second uint64) *script { // b has no deadline
		s := tokenScript().acquireToken("w1", "a", 30, 31, first)
		return s.try("w2", "b", 10, 40, history.Event{Type: history.OK, Token: second}).read("a", 41, 0).read("b", 42, 0)
	}
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
		n    int
	}{
		{"answered late, write of the next", late(5, 6).access(history.Write, history.Fail, "a", 132, 1, 0, 0).write("b", 135, 2, 0, 1), Valid, 0},
		{"answered late, own write", late(5, 6).write("a", 132, 1, 0, 1).write("b", 135, 2, 1, 2), Violation, 1},
		{"answered late, without tokens, write of the next", late(0, 0).write("b", 135, 2, 0, 1), Valid, 0},
		{"answered late, without tokens, own write", late(0, 0).write("a", 132, 1, 0, 1), Violation, 1},
		{"answered late, a lower token", waited(6, 5).write("a", 43, 1, 0, 1), Valid, 0},
		{"answered late, a higher token", waited(5, 6).write("a", 43, 1, 0, 1), Violation, 1},
		{"asked for early, released", onItsWay(0, 0).release("a", 207, 216), Valid, 0},
		{"asked for early, gone at its release", onItsWay(0, 0).notHeld("a", 207, 216), Valid, 0},
		{"asked for early, gone, a higher token", onItsWay(6, 5).notHeld("a", 207, 216), Valid, 0},
		{"asked for early, gone, a lower token", onItsWay(5, 6).notHeld("a", 207, 216), Violation, 1},
		{"a lower token, though asked for later", tokenScript().acquireToken("w1", "a", 10, 11, 5).read("a", 12, 0).release("a", 13, 14).acquireToken("w2", "b", 15, 16, 4).read("b", 17, 0).write("b", 18, 1, 0, 1), Valid, 0},
		{"in order", two().write("a", 122, 1, 0, 1).write("b", 123, 2, 1, 2), Valid, 0},
		{"after a write", two().write("b", 122, 1, 0, 1).write("a", 123, 2, 1, 2), Violation, 1},
		{"granted to both at once", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 5, 12).read("b", 13, 0).write("a", 14, 2, 0, 1), Valid, 0},
		{"granted to both at once, who take turns", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 5, 12).read("b", 13, 0).read("a", 13, 0).write("a", 14, 2, 0, 1).write("b", 15, 3, 0, 2), Undecided, 0},
		{"granted to both at once, one after the other", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 5, 12).read("b", 13, 0).write("b", 14, 3, 0, 1).read("a", 15, 0).write("a", 16, 2, 0, 2), Valid, 0},
		{"granted one after the other, who take turns", newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 12, 13).read("b", 14, 0).read("a", 14, 0).write("a", 15, 2, 0, 1).write("b", 16, 3, 0, 2), Violation, 1},
		{"one of unknown order reads in between", newScript().acquire("w3", "u", 5, 400).acquire("w1", "a", 140, 150).acquire("w2", "b", 260, 261).read("b", 262, 0).read("u", 401, 0).write("a", 405, 1, 0, 1), Violation, 1},
		{"only one of unknown order reads in between", newScript().acquire("w3", "u", 5, 400).acquire("w1", "a", 140, 150).acquire("w2", "b", 260, 261).read("u", 401, 0).write("a", 405, 1, 0, 1), Valid, 0},
		{"after a grant that was expired on arrival", newScript().acquire("w1", "a", 10, 11).try("w2", "b", 20, 21, history.Event{Type: history.OK, Expired: true}).read("b", 22, 0).write("a", 23, 1, 0, 1), Valid, 0},
		{"after a read", two().read("b", 122, 0).write("a", 123, 2, 0, 1), Violation, 1},
		{"late read only", two().write("b", 122, 1, 0, 1).read("a", 123, 1), Valid, 0},
		{"refused", two().write("b", 122, 1, 0, 1).access(history.Write, history.Fail, "a", 123, 2, 0, 0), Valid, 0},
		{"after a refused one", two().access(history.Read, history.Fail, "b", 122, 0, 0, 0).write("a", 123, 2, 0, 1), Valid, 0},
		{"before the later one came", two().write("a", 121.5, 2, 0, 1), Valid, 0},
		{"of an unknown grant", two().try("w3", "c", 10, -1, history.Event{}).write("b", 122, 1, 0, 1).write("c", 123, 2, 1, 2), Valid, 0},
		{"twice", two().read("b", 122, 0).write("a", 123, 1, 0, 1).write("a", 124, 2, 1, 2), Violation, 2},
		{"with a version check, on what the later one wrote", cas(two().write("b", 122, 1, 0, 1).read("a", 123, 1).write("a", 124, 2, 1, 2)), Valid, 0},
		{"with a version check, on an older version", cas(two().write("b", 122, 1, 0, 1).write("a", 124, 2, 0, 2)), Violation, 1},
		{"with a version check, after a read only", cas(two().read("b", 122, 0).write("a", 124, 2, 0, 1)), Valid, 0},
		{"with a match, read again after the later one wrote", match(two().read("a", 12, 0).read("b", 122, 0).write("b", 123, 1, 0, 1).read("a", 124, 1).write("a", 125, 2, 1, 2)), Valid, 0},
		{"with a match, read between the later one's read and write", match(two().read("b", 122, 0).read("a", 123, 0).access(history.Write, history.Fail, "b", 124, 1, 0, 0).write("a", 125, 2, 0, 1)), Valid, 0},
		{"with a match that lets a write pass which is not the last reader's", match(two().read("a", 12, 0).read("b", 122, 0).write("b", 123, 1, 0, 1).write("a", 124, 2, 0, 2)), Violation, 1},
		{"without one, on what the later one wrote", two().write("b", 122, 1, 0, 1).read("a", 123, 1).write("a", 124, 2, 1, 2), Violation, 1},
		{"of one of two whom a semaphore permits", two().with(func(h *history.Header) { h.Permits = 2 }).read("b", 122, 0).write("a", 123, 2, 0, 1), NotApplicable, 0},
		{"of a reentrant lock, after a nested one", nested("w1"), Valid, 0},
		{"of a reentrant lock, after somebody else", nested("w2"), Violation, 1},
		{"without the lock, in vain", newScript().busy("w1", "a", 10, 11, "").access(history.Write, history.Fail, "a", 12, 1, 0, 0).acquire("w2", "b", 13, 14).write("b", 15, 2, 0, 1), Valid, 0},
		{"without the lock, its acquire failed", newScript().busy("w1", "a", 10, 11, "").write("a", 12, 1, 0, 1), Violation, 1},
		{"without the lock, its acquire was not answered well", newScript().try("w1", "a", 10, 11, history.Event{Type: history.Info, Error: "reset"}).write("a", 12, 1, 0, 1), Violation, 1},
		{"read without the lock", newScript().busy("w1", "a", 10, 11, "").read("a", 12, 0).acquire("w2", "b", 13, 14).write("b", 15, 2, 0, 1), Valid, 0},
		{"without the lock, of another's history", newScript().with(func(h *history.Header) { h.Imported = "jepsen" }).busy("w1", "a", 10, 11, "").write("a", 12, 1, 0, 1), Valid, 0},
		{"without the lock and stale", two().busy("w3", "c", 130, 131, "b").read("b", 132, 0).write("c", 133, 1, 0, 1).write("a", 134, 2, 0, 2), Violation, 2},
		{"no writes", two().read("b", 122, 0), Undecided, 0},
		{"mutex", two().with(func(h *history.Header) { h.Workload = "mutex" }), NotApplicable, 0},
	} {
		t.Run(c.name, func(t *testing.T) { want(t, c.s.end().check(t), NoStaleWrite, c.v, c.n) })
	}
}

func TestUpdates(t *testing.T) {
	two := func(base int64) *script {
		return newScript().acquire("w1", "a", 10, 11).acquire("w2", "b", 120, 121).write("a", 122, 1, 0, 1).write("b", 123, 2, base, 2)
	}
	counter := func(s *script) *script {
		return s.with(func(h *history.Header) { h.Workload = "counter" })
	}
	for _, c := range []struct {
		name string
		s    *script
		v    Verdict
		sum  UpdateSummary
		what string
	}{
		{"all there", two(1).final("k0", "[1,2]"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"one lost", two(0).final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "kind:overwritten,figures:{version:1,next:2},key:k0"},
		{"lost without a reason", two(1).final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "kind:lost-unexplained,figures:{version:1}"},
		{"all lost", two(1).final("k0", "null"), Violation, UpdateSummary{Acknowledged: 2, Lost: 2, LossEvents: 2}, ""},
		{"twice", two(1).final("k0", "[1,2,1]"), Violation, UpdateSummary{Acknowledged: 2, Duplicated: 1}, "kind:duplicated,figures:{n:2},key:k0"},
		{"from nowhere", two(1).final("k0", "[1,2,77]"), Violation, UpdateSummary{Acknowledged: 2, Phantom: 1}, "kind:phantom,key:k0"},
		{"attempted only", two(1).tryWrite("b", 124, 3).final("k0", "[1,2,3]"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"refused, but there", two(1).tryWrite("b", 124, 3).access(history.Write, history.Fail, "b", 124, 3, 2, 0).final("k0", "[1,2,3]"), Violation, UpdateSummary{Acknowledged: 2, Phantom: 1}, "kind:refused-phantom,key:k0"},
		{"refused, and not there", two(1).tryWrite("b", 124, 3).access(history.Write, history.Fail, "b", 124, 3, 2, 0).final("k0", "[1,2]"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"refused, then accepted", two(1).tryWrite("b", 124, 3).access(history.Write, history.Fail, "b", 124, 3, 0, 0).write("b", 125, 3, 2, 3).final("k0", "[1,2,3]"), Valid, UpdateSummary{Acknowledged: 3}, ""},
		{"refused, but counted", counter(two(1).tryWrite("b", 124, 3).access(history.Write, history.Fail, "b", 124, 3, 2, 0)).final("k0", "3"), Violation, UpdateSummary{Acknowledged: 2, Phantom: 1}, "kind:counted-refused,figures:{n:3,missing:1},key:k0"},
		{"attempted only, counted", counter(two(1).tryWrite("b", 124, 3)).final("k0", "3"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"final reads that differ", two(1).final("k0", "[1]").final("k0", "[1,2]"), Undecided, UpdateSummary{Acknowledged: 2}, ""},
		{"final reads that differ, but in nothing", two(1).final("k0", "[2,1]").final("k0", "[1,2]"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"final reads that differ, and both lack one", two(0).final("k0", "[]").final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "kind:overwritten,figures:{version:1"},
		{"final reads that differ, counted", counter(two(1)).final("k0", "1").final("k0", "2"), Undecided, UpdateSummary{Acknowledged: 2}, ""},
		{"final reads that differ, and are too low", counter(two(0).write("b", 125, 3, 2, 3)).final("k0", "1").final("k0", "2"), Violation, UpdateSummary{Acknowledged: 3, Lost: 1, LossEvents: 1}, ""},
		{"written between two final reads", two(1).finalAt(200, "k0", "[1,2]").write("b", 201, 3, 2, 3).final("k0", "[1,2,3]"), Valid, UpdateSummary{Acknowledged: 3}, ""},
		{"written after the final read", two(1).finalAt(200, "k0", "[1,2]").write("b", 201, 3, 2, 3), Undecided, UpdateSummary{Acknowledged: 2}, ""},
		{"lost, and written after the final read", two(0).finalAt(200, "k0", "[2]").write("b", 201, 3, 2, 3), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "kind:overwritten,figures:{version:1"},
		{"overwriters that nest", newScript().acquire("w1", "a", 1, 2).write("a", 6, 1, 0, 1).write("a", 7, 2, 1, 2).write("a", 8, 3, 1, 3).write("a", 9, 4, 3, 4).write("a", 10, 5, 0, 5).final("k0", "[5]"), Violation, UpdateSummary{Acknowledged: 5, Lost: 4, LossEvents: 2}, ""},
		{"release failed afterwards", two(1).notHeld("a", 130, 131).final("k0", "[2]"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, ""},
		{"no final", two(1), Undecided, UpdateSummary{}, ""},
		{"no final of one key", two(1).acquire("w3", "c", 10, 11, "k1").write("c", 124, 5, 0, 1).final("k1", "[5]"), Undecided, UpdateSummary{Acknowledged: 1}, ""},
		{"unreadable final", two(1).final("k0", `"x"`), Undecided, UpdateSummary{}, ""},
		{"nothing", newScript().final("k0", "[]"), Undecided, UpdateSummary{}, ""},
		{"counter", counter(two(1)).final("k0", "2"), Valid, UpdateSummary{Acknowledged: 2}, ""},
		{"counter lost", counter(two(0)).final("k0", "1"), Violation, UpdateSummary{Acknowledged: 2, Lost: 1, LossEvents: 1}, "kind:overwritten,figures:{version:1"},
		{"counter empty", counter(two(1)).final("k0", "null"), Violation, UpdateSummary{Acknowledged: 2, Lost: 2}, "kind:counted-less,figures:{of:2,missing:2}"},
		{"counter too high", counter(two(1)).final("k0", "4"), Violation, UpdateSummary{Acknowledged: 2, Phantom: 2}, "kind:counted-more,figures:{n:4,missing:2}"},
		{"mutex", newScript().with(func(h *history.Header) { h.Workload = "mutex" }), NotApplicable, UpdateSummary{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			c.sum.LossInterval = r.Updates.LossInterval
			if r.Updates != c.sum {
				t.Errorf("%+v, want %+v", r.Updates, c.sum)
			}
			want(t, r, NoLostUpdate, c.v, int(c.sum.Lost+c.sum.Duplicated+c.sum.Phantom))
			if c.what != "" && !strings.Contains(factsText(r.of(NoLostUpdate).Violations[0]), c.what) {
				t.Error(r.dump())
			}
		})
	}
}

// TestForgottenCommit: if the lock's database keeps the data, a commit that it answered and then lost is in
// none of its records. Only the workers know of it.
func TestForgottenCommit(t *testing.T) {
	inDatabase := func(h *history.Header) { h.Guard = history.GuardDatabase }
	counts := func(h *history.Header) { inDatabase(h); h.Workload = "counter" }
	done, unsure := history.Event{Type: history.OK, Element: 1, Version: 1}, history.Event{Type: history.Info, Element: 1}
	// a writes element 1 and b element 2; the record has at least the second.
	first := func(wrote history.Event) *script {
		return newScript().acquire("w1", "a", 10, 11).do(history.Write, "a", 12, 13, wrote)
	}
	second := func(s *script, base, version int64) *script {
		return s.acquire("w2", "b", 20, 21).do(history.Write, "b", 22, 23, history.Event{Type: history.OK, Element: 2, Version: version}).
			write("b", 22, 2, base, version).release("b", 24, 25)
	}
	recorded := func() *script { return second(first(done).write("a", 12, 1, 0, 1).release("a", 14, 15), 1, 2) }
	forgotten := func() *script { return second(first(done).release("a", 14, 15), 0, 1) }
	for _, c := range []struct {
		name         string
		s            *script
		acknowledged int64
		lost         int64
		want         Verdict
	}{
		{"recorded", recorded().with(inDatabase).final("k0", "[1,2]"), 2, 0, Valid},
		{"forgotten", forgotten().with(inDatabase).final("k0", "[2]"), 2, 1, Violation},
		{"the same at a resource of its own, which is the one that accepts", forgotten().final("k0", "[2]"), 1, 0, Valid},
		{"forgotten, but there", forgotten().with(inDatabase).final("k0", "[1,2]"), 2, 0, Valid},
		{"all that there was", first(done).release("a", 14, 15).with(inDatabase).final("k0", "null"), 1, 1, Violation},
		{"the release was not answered", second(first(done).do(history.Release, "a", 14, 15, history.Event{Type: history.Info}), 0, 1).with(inDatabase).final("k0", "[2]"), 1, 0, Valid},
		{"rolled back at the release", second(first(done).notHeld("a", 14, 15), 0, 1).with(inDatabase).final("k0", "[2]"), 1, 0, Valid},
		{"the write was not answered", second(first(unsure).release("a", 14, 15), 0, 1).with(inDatabase).final("k0", "[2]"), 1, 0, Valid},
		{"never read", forgotten().with(inDatabase), 0, 0, Undecided},
		{"counted", recorded().with(counts).final("k0", "2"), 2, 0, Valid},
		{"not counted", forgotten().with(counts).final("k0", "1"), 2, 1, Violation},
		{"nothing counted", first(done).release("a", 14, 15).with(counts).final("k0", "null"), 1, 1, Violation},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.s.end().check(t)
			want(t, r, NoLostUpdate, c.want, int(c.lost))
			if r.Updates.Acknowledged != c.acknowledged || r.Updates.Lost != c.lost || r.Updates.LossEvents != c.lost {
				t.Errorf("%+v", r.Updates)
			}
			if c.lost == 0 {
				return
			}
			if v := r.of(NoLostUpdate).Violations[0]; r.Verdict != Violation || v.Element != 1 || v.Kind != KindVanished || v.Figures.Version != 1 {
				t.Error(r.dump())
			}
		})
	}
}
