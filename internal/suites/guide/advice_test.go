package guide

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
)

// TestNeeds: who meets a need is decided by runs alone. Each case that fits has its twin that
// does not, by one run.
func TestNeeds(t *testing.T) {
	lock := func(name string, r Run) Run { return changed(r, func(r *Run) { r.Lock = name }) }
	held, broke, expired := func(name string, faults ...string) Run { return lock(name, held("", faults...)) },
		func(name string, faults ...string) Run { return lock(name, broke("", faults...)) },
		func(name string, faults ...string) Run { return lock(name, expired("", faults...)) }
	stuck := func(name string, faults ...string) Run {
		return changed(broke(name, faults...), func(r *Run) {
			r.Violated, r.DoubleGrants, r.Causes = []checker.Property{checker.Liveness}, 0, nil
		})
	}
	killed := func(name string, longest time.Duration) Run {
		return changed(held(name, "kill:holder"), func(r *Run) { r.Failover = &Failover{Holders: 2, Longest: longest} })
	}
	const pause, cut = "pause:holder", "partition:holder"
	for _, c := range []struct {
		name, need string
		runs       Evidence
		want       []string // "lock guard"
	}{
		{"held without faults", "wasted", Evidence{held("redis")}, []string{"redis none"}},
		{"broken without faults", "wasted", Evidence{held("redis"), broke("redis")}, nil},
		{"done twice", "wasted", Evidence{held("redis"), broke("redis", clock), expired("redis", pause)}, []string{"redis none"}},
		{"stuck", "wasted", Evidence{held("redis"), stuck("redis", "kill:holder")}, nil},
		{"naive", "wasted", Evidence{held("redis-unsafe-release")}, nil},
		{"another version of the servers", "wasted", Evidence{held("etcd-v3lock@3.4.3")}, nil},
		{"part of lockcheck", "wasted", Evidence{held("memory"), held("queue")}, nil},
		{"without servers", "wasted", Evidence{held("file")}, []string{"file none"}},

		{"nothing known against it", "never be lost", Evidence{held("mariadb"), held("mariadb", pause)}, []string{"mariadb none"}},
		{"no run without faults", "never be lost", Evidence{held("mariadb", pause)}, nil},
		{"inherent, and no guard", "never be lost", Evidence{held("etcd"), expired("etcd", pause)}, nil},
		{
			"inherent, and a guard that held", "never be lost",
			Evidence{held("etcd"), expired("etcd", pause), behind("fence", held("etcd")), behind("fence", held("etcd", pause))}, []string{"etcd fence"},
		},
		{
			"a guard that was not tried where it is needed", "never be lost",
			Evidence{held("etcd"), expired("etcd", pause), broke("etcd", clock), behind("fence", held("etcd")), behind("fence", held("etcd", pause))}, nil,
		},
		{
			"broken by itself, and a guard that held", "never be lost",
			Evidence{broke("etcd", clock), behind("fence", held("etcd")), behind("fence", held("etcd", clock))}, []string{"etcd fence"},
		},
		{
			"a guard whose only run could not tell", "never be lost",
			Evidence{held("etcd"), expired("etcd", cut), behind("fence", held("etcd")), behind("fence", lock("etcd", cutOff("1", "20ms")))}, nil,
		},
		{
			"a guard that held in long sections", "never be lost",
			Evidence{held("etcd"), expired("etcd", cut), behind("fence", held("etcd")), behind("fence", lock("etcd", cutOff("1", "4s")))}, []string{"etcd fence"},
		},
		{
			"a guard that held once and broke once", "never be lost",
			Evidence{held("etcd"), expired("etcd", pause), behind("fence", held("etcd")), behind("fence", held("etcd", pause)), behind("fence", expired("etcd", pause))}, nil,
		},
		{
			"broken by a fault that no column has", "never be lost",
			Evidence{held("mariadb"), broke("mariadb", "wipe:all")}, nil,
		},
		{"stuck only", "never be lost", Evidence{held("mariadb"), stuck("mariadb", "kill:one server")}, []string{"mariadb none"}},

		{"in time", "2 s", Evidence{held("redis"), killed("redis", 2*time.Second)}, []string{"redis none"}},
		{"too late", "2 s", Evidence{held("redis"), killed("redis", 2001*time.Millisecond)}, nil},
		{"too late once", "2 s", Evidence{held("redis"), killed("redis", time.Second), killed("redis", 3*time.Second)}, nil},
		{"no holder killed", "2 s", Evidence{held("redis")}, nil},

		{"a database", "infrastructure", Evidence{held("mariadb")}, []string{"mariadb none"}},
		{"servers of its own", "infrastructure", Evidence{held("zookeeper")}, nil},
		{"a database that loses", "infrastructure", Evidence{held("postgres-lease"), broke("postgres-lease", clock)}, nil},
		{"nothing", "wasted", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, fit := range fitsOf(c.need, c.runs) {
				got = append(got, fit.Lock+" "+fit.Guard)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestUnproven: what no run has shown is said.
func TestUnproven(t *testing.T) {
	etcd := func(r Run) Run { r.Lock = "etcd"; return r }
	fits := fitsOf("never be lost", Evidence{etcd(held("1")), etcd(cutOff("2", "20ms"))})
	wasted := fitsOf("wasted", Evidence{etcd(held("1")), etcd(cutOff("2", "20ms")), etcd(held("3", clock))})
	if want := []string{"pause:holder", "partition:holder in long sections", "kill:holder", "pause:one server", "pause:leader", "kill:one server"}; !slices.Equal(wasted[0].Unproven, want) {
		t.Errorf("%q, want %q", wasted[0].Unproven, want)
	}
	if len(fits) != 1 || !slices.Contains(fits[0].Unproven, "partition:holder in long sections") || !slices.Contains(fits[0].Unproven, "pause:holder") || !slices.Contains(fits[0].Unproven, clock) {
		t.Errorf("%+v", fits)
	}
}

// TestKin: what breaks a lock that ends by the same rule is held against this one where data are
// at stake, and told elsewhere. What breaks a lock that ends by another rule is not.
func TestKin(t *testing.T) {
	lock := func(name string, r Run) Run { return changed(r, func(r *Run) { r.Lock = name }) }
	for _, c := range []struct {
		lock  string
		other Run
		kin   string // "" for none
	}{
		{"redsync", lock("redlock", clockRun("2", clock)), "redlock, which ends by the same rule, FAILED by itself under " + clock},
		{"redsync", lock("redis", clockRun("2", clock)), ""},
		{"redislock", lock("redis", clockRun("2", clock)), "redis, which ends by the same rule, FAILED by itself under " + clock},
		{"mariadb", lock("postgres-session", expired("2", "partition:holder")), "postgres-session, which ends by the same rule, was used after expiry under partition:holder"},
		{"postgres-insert", lock("postgres-session", expired("2", "partition:holder")), ""},
		{"file", lock("none", broke("2", clock)), ""},
	} {
		runs := Evidence{lock(c.lock, held("1")), c.other}
		for _, fit := range fitsOf("wasted", runs) {
			if has := slices.Contains(fit.Known, c.kin); fit.Lock == c.lock && has != (c.kin != "") {
				t.Errorf("%s: %q, want %q", c.lock, fit.Known, c.kin)
			}
		}
		safe := slices.ContainsFunc(fitsOf("never be lost", runs), func(f Fit) bool { return f.Lock == c.lock })
		if info, _ := infoOf(c.lock); info.Naive == "" && safe != (c.kin == "") {
			t.Errorf("%s next to %s: safe %v", c.lock, c.other.Lock, safe)
		}
	}
}

// TestKinInTable: where one lock held and its kin is broken, the cell says so, or the other
// experiment would look like another lock.
func TestKinInTable(t *testing.T) {
	lock := func(name string, r Run) Run { return changed(r, func(r *Run) { r.Lock = name }) }
	runs := Evidence{
		lock("redsync", held("1", clock)), lock("redlock", clockRun("2", clock)), lock("redis", clockRun("3", clock)),
		lock("etcd", held("4", clock)), lock("etcd-v3lock", clockRun("5", clock, "partition:one worker")),
	}
	for name, want := range map[string][]string{
		"redsync": {"redlock"}, "redlock": nil, "etcd": {"etcd-v3lock (under " + clock + " with partition:one worker)"},
	} {
		if got := runs.brokenKin(name, clock, "none"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestMarked: a naive lock is marked wherever it has a row, and no other is.
func TestMarked(t *testing.T) {
	lock := func(name string) Run { return changed(held(name), func(r *Run) { r.Lock = name }) }
	g := Evidence{lock("redis"), lock("redis-noexpiry"), lock("etcd-header-revision@3.4.3"), lock("mine")}.Page(nil)
	var rows, speeds []string
	for _, row := range g.Tables[0].Rows {
		if row.Note != "" {
			rows = append(rows, row.Lock)
		}
	}
	for _, s := range g.Speeds {
		if s.Note != "" {
			speeds = append(speeds, s.Lock)
		}
	}
	if want := []string{"redis-noexpiry", "etcd-header-revision@3.4.3"}; !slices.Equal(rows, want) || !slices.Equal(speeds, want) {
		t.Errorf("%q and %q, want %q", rows, speeds, want)
	}
}

func fitsOf(need string, runs Evidence) []Fit {
	i := slices.IndexFunc(Needs(), func(n Need) bool { return strings.Contains(n.Name, need) })
	return Needs()[i].Choice(runs).Meet
}

// TestRuledOut: a lock that does not meet a need behind any guard is named, with what was seen. Of one
// that was never tried behind a guard which it can have, nobody knows.
func TestRuledOut(t *testing.T) {
	mariadb := func(guard string, r Run) Run { r.Lock, r.Guard = "mariadb", guard; return r }
	late := changed(mariadb("none", held("3", "kill:holder")), func(r *Run) { r.Failover = &Failover{Holders: 1, Longest: 3 * time.Second} })
	loses := mariadb("none", expired("2", "pause:holder"))
	for _, c := range []struct {
		need, want string
		more       Evidence
	}{
		{"never be lost", "", Evidence{loses}},
		{"never be lost", "lost data under pause:holder without a guard", Evidence{loses, mariadb("cas", expired("4", "pause:holder"))}},
		{"never be lost", "", Evidence{loses, mariadb("cas", held("4")), mariadb("cas", held("5", "pause:holder"))}},
		{"wasted", "", Evidence{loses}},
		{"2 s", "free 3s after its holder died, at the longest (1 holder, no lease: it ends with the connection of its holder)", Evidence{late}},
		{"2 s", "", Evidence{changed(late, func(r *Run) { r.Faults = append(r.Faults, Fault{Name: clock, Asked: 1, Met: 1}) })}},
	} {
		i := slices.IndexFunc(Needs(), func(n Need) bool { return strings.Contains(n.Name, c.need) })
		out := Needs()[i].Choice(append(Evidence{mariadb("none", held("1"))}, c.more...)).Out
		switch {
		case c.want == "" && len(out) > 0, c.want != "" && len(out) == 0, len(out) > 0 && out[0].Against != c.want:
			t.Errorf("%s: %+v, want %q", c.need, out, c.want)
		}
	}
}

// TestOpenWithoutFaults: where no run was made without faults nobody knows.
func TestOpenWithoutFaults(t *testing.T) {
	runs := Evidence{changed(held("1", "pause:holder"), func(r *Run) { r.Lock, r.Guard = "redis", "match" })}
	safety := Needs()[slices.IndexFunc(Needs(), func(n Need) bool { return strings.Contains(n.Name, "never be lost") })]
	c := safety.Choice(runs)
	fits, open := c.Meet, c.Open
	if len(fits) != 0 || len(open) != 1 || !slices.Equal(open[0].Open, []string{"never run without a fault"}) {
		t.Errorf("%v, open %v", fits, open)
	}
}

// TestOpen: of a guard that was not tried where the lock alone loses data, nobody knows; of one that
// broke, everybody does.
func TestOpen(t *testing.T) {
	etcd := func(guard string, r Run) Run { r.Lock, r.Guard = "etcd", guard; return r }
	known := Evidence{etcd("none", held("1")), etcd("none", broke("2", "pause:holder")), etcd("fence", held("3"))}
	safety := Needs()[slices.IndexFunc(Needs(), func(n Need) bool { return strings.Contains(n.Name, "never be lost") })]
	for _, c := range []struct {
		name      string
		more      Evidence
		fits, all int
	}{
		{"not tried", nil, 0, 1},
		{"held", Evidence{etcd("fence", held("4", "pause:holder"))}, 1, 1},
		{"broke", Evidence{etcd("fence", broke("4", "pause:holder"))}, 0, 0},
		{"refused what came out of order", Evidence{changed(etcd("fence", broke("4", "pause:holder")), func(r *Run) {
			r.Violated, r.DoubleGrants, r.Causes = []checker.Property{checker.FencingOrder}, 0, nil
		})}, 1, 1},
	} {
		choice := safety.Choice(append(slices.Clone(known), c.more...))
		fits, open := choice.Meet, choice.Open
		if len(fits) != c.fits || len(fits)+len(open) != c.all {
			t.Errorf("%s: %v meet it, of %v nobody knows", c.name, fits, open)
		}
		for _, fit := range open {
			if !slices.Equal(fit.Open, []string{"not tried under pause:holder"}) {
				t.Errorf("%s: %q", c.name, fit.Open)
			}
		}
	}
}
