package advise

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/internal/suites/guide"
	"lockcheck/reports"
)

func needs(lock string, change func(*Needs)) Needs {
	n := Needs{SectionP99: 300 * time.Millisecond, LongestPause: 4 * time.Second, Failover: 10 * time.Second, Locks: []string{lock}}
	if change != nil {
		change(&n)
	}
	return n
}

func adviceOn(t *testing.T, n Needs) reports.LockAdvice {
	t.Helper()
	a, err := Advise(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a.Locks[0]
}

// TestLease: a lease without renewal outlasts pause and section, and a renewed lease outlasts the pause. Both
// are rounded as the service rounds them.
func TestLease(t *testing.T) {
	bounded := func(n *Needs) { n.SectionMax = time.Second }
	for _, c := range []struct {
		lock   string
		change func(*Needs)
		lease  time.Duration
		renew  bool
		free   time.Duration
	}{
		{"redis", nil, 6750 * time.Millisecond, true, 6750 * time.Millisecond},      // 1.5 × (4 s + 0.5 s)
		{"redis", bounded, 5600 * time.Millisecond, false, 5600 * time.Millisecond}, // 4 s + 1 s + 0.6 s
		{"etcd", nil, 7 * time.Second, false, 7 * time.Second},
		{"etcd", bounded, 7 * time.Second, false, 7 * time.Second}, // its session renews the lease, whatever the figures
		{"consul", nil, 10 * time.Second, false, 35 * time.Second}, // 6.75 s would suffice, but not with default settings
		{"consul", func(n *Needs) { n.LongestPause = 12 * time.Second }, 19950 * time.Millisecond, false, 54900 * time.Millisecond},
		{"zookeeper", func(n *Needs) { n.LongestPause = time.Second }, 4 * time.Second, false, 4 * time.Second},
		{"postgres-session", nil, 0, false, 0},
	} {
		if got := adviceOn(t, needs(c.lock, c.change)); got.Lease != c.lease || got.Renew != c.renew || got.FreeAfter != c.free {
			t.Errorf("%s: lease %s, renewed %v, free after %s; want %s, %v, %s", c.lock, got.Lease, got.Renew, got.FreeAfter, c.lease, c.renew, c.free)
		}
	}
}

// TestServers: the advice names the setting if servers with default settings do not grant the lease, and says
// nothing if they do.
func TestServers(t *testing.T) {
	for _, c := range []struct {
		lock  string
		pause time.Duration
		says  []string
	}{
		{"consul", 4 * time.Second, []string{"session_ttl_min", "10s", "6.75s"}},
		{"consul", 12 * time.Second, nil},
		{"zookeeper", time.Second, []string{"minSessionTimeout", "4s", "1.8s"}},
		{"zookeeper", 4 * time.Second, nil},
		{"zookeeper", 30 * time.Second, []string{"maxSessionTimeout", "40s", "49.65s"}},
		{"redis", time.Second, nil},
		{"etcd", time.Second, nil},
	} {
		got := adviceOn(t, needs(c.lock, func(n *Needs) { n.LongestPause = c.pause })).Servers
		if (got != "") != (c.says != nil) {
			t.Errorf("%s, paused for %s: %q", c.lock, c.pause, got)
		}
		for _, part := range c.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s, paused for %s: %q does not say %s", c.lock, c.pause, got, part)
			}
		}
	}
}

// TestContradiction: the advice reports a contradiction only if the lease does not meet the failover time.
// Then it names the lease that is safe behind a guard, if the servers accept one.
func TestContradiction(t *testing.T) {
	failover := func(d time.Duration) func(*Needs) { return func(n *Needs) { n.Failover = d } }
	for _, c := range []struct {
		lock     string
		failover time.Duration
		named    bool
		short    time.Duration
		guard    string
		setting  string
	}{
		{"redis", 10 * time.Second, false, 0, "cas", ""},
		{"redis", 6750 * time.Millisecond, false, 0, "cas", ""},
		{"redis", 6 * time.Second, true, 6 * time.Second, "cas", ""},
		{"redis", 0, false, 0, "cas", ""},
		{"etcd", 5500 * time.Millisecond, true, 5 * time.Second, "fence", ""},
		{"etcd", time.Second, true, 0, "fence", ""},
		{"consul", 35 * time.Second, false, 0, "fence", ""},
		{"consul", 30 * time.Second, true, 0, "fence", "a lease of 6.75s outlasts the pause and ends after 28.5s, if you set session_ttl_min"},
		{"consul", 20 * time.Second, true, 2500 * time.Millisecond, "fence", "set session_ttl_min"},
		{"consul", 10 * time.Second, true, 0, "fence", ""},
		{"postgres-session", time.Second, false, 0, "database", ""},
	} {
		got := adviceOn(t, needs(c.lock, failover(c.failover)))
		if (got.Contradiction != "") != c.named || got.ShortLease != c.short || got.Guard != c.guard ||
			strings.Contains(got.Contradiction, "session_ttl_min") != (c.setting != "") || !strings.Contains(got.Contradiction, c.setting) {
			t.Errorf("%s within %s: %q, short lease %s, guard %s", c.lock, c.failover, got.Contradiction, got.ShortLease, got.Guard)
		}
	}
}

// TestUnfit: the advice never names a lease that the servers do not accept.
func TestUnfit(t *testing.T) {
	hour := func(n *Needs) { n.LongestPause = time.Hour }
	if got := adviceOn(t, needs("zookeeper", hour)); got.Unfit == "" || got.Commands != nil {
		t.Errorf("%+v", got)
	}
	if got := adviceOn(t, needs("redis", hour)); got.Unfit != "" {
		t.Errorf("%+v", got)
	}
}

// TestCommands: the command with half of the lease is left out if it need not lose updates.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		lock string
		half string
	}{
		{"redis", "--ttl 3.37s --renew"}, {"etcd", "--ttl 3s"}, {"consul", ""}, {"postgres-session", ""},
	} {
		all := strings.Join(adviceOn(t, needs(c.lock, nil)).Commands, "\n")
		if !strings.Contains(all, "--test-count 20") || strings.Contains(all, "--expect violation") != (c.half != "") || !strings.Contains(all, c.half) {
			t.Errorf("%s:\n%s", c.lock, all)
		}
	}
}

// TestCheck: long sections and pauses are checked with shorter ones, and the advice says so. It always says
// how long the check takes.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		section, max, pause time.Duration
		want                string // part of what the advice says about the check; "" for nothing but the time
		arguments           string
	}{
		{300 * time.Millisecond, 0, 4 * time.Second, "", "--section 300ms --nemesis pause:holder --pause 4s"},
		{2 * time.Second, 0, 30 * time.Second, "", "--section 2s --nemesis pause:holder --pause 30s"},
		{10 * time.Minute, 0, 4 * time.Second, "sections of 1s instead of 10m0s (divided by 600)", "--ttl 6.75s --renew --section 1s --nemesis pause:holder --pause 4s"},
		{time.Second, 10 * time.Minute, 4 * time.Second, "instead of 10m0s", "--ttl 5.6s --section 1s"},
		{time.Hour, 0, 4 * time.Second, "sections of 1s instead of 1h0m0s (divided by 3600)", "--section 1s"},
		{300 * time.Millisecond, 0, time.Minute, "pauses of 5s instead of 1m0s (divided by 12)", "--section 300ms --nemesis pause:holder --pause 5s"},
	} {
		got := adviceOn(t, needs("redis", func(n *Needs) { n.SectionP99, n.SectionMax, n.LongestPause = c.section, c.max, c.pause }))
		told := strings.Contains(got.Check, "instead of")
		if told != (c.want != "") || !strings.Contains(got.Check, c.want) || !strings.Contains(got.Check, " runs, at most ") || !strings.Contains(got.Commands[0], c.arguments) {
			t.Errorf("section %s to %s, pause %s: %q, %s", c.section, c.max, c.pause, got.Check, got.Commands[0])
		}
	}
}

// TestNeeds: each mistake is an error of usage that names what is missing.
func TestNeeds(t *testing.T) {
	for name, change := range map[string]func(*Needs){
		"--section-p99":   func(n *Needs) { n.SectionP99 = 0 },
		"--longest-pause": func(n *Needs) { n.LongestPause = 0 },
		"--failover":      func(n *Needs) { n.Failover = -1 },
		"--section-max":   func(n *Needs) { n.SectionMax = time.Millisecond },
		"--lock":          func(n *Needs) { n.Locks = nil },
		"rediss":          func(n *Needs) { n.Locks = []string{"rediss"} },
	} {
		if _, err := Advise(needs("redis", change), nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bounded, _ := Advise(needs("redis", func(n *Needs) { n.SectionMax = time.Second }), nil)
	open, _ := Advise(needs("redis", nil), nil)
	if len(open.Unproven) != len(bounded.Unproven)+1 {
		t.Errorf("that a percentile is no maximum is to be said where no maximum is known: %q", open.Unproven)
	}
}

// TestKnown: an advised lock comes with what broke it and the command that shows it. A lock that does not fit
// comes without.
func TestKnown(t *testing.T) {
	evidence, err := guide.Known()
	if err != nil {
		t.Fatal(err)
	}
	right := slices.DeleteFunc(slices.Clone(evidence), func(r guide.Run) bool {
		return r.Lock == "postgres-xact" && (r.Breaks() || r.DoubleGrants+r.UsesAfterExpiry > 0)
	})
	a, err := Advise(Needs{SectionP99: time.Second, LongestPause: 4 * time.Second, Locks: []string{"redis", "postgres-xact"}}, right)
	if err != nil {
		t.Fatal(err)
	}
	worst := a.Locks[0].Known[0]
	if !strings.HasPrefix(worst.Alone, "failed by itself in") || !strings.HasPrefix(worst.Line, "lockcheck repro ") {
		t.Errorf("the worst of redis is %+v", worst)
	}
	if of := a.Locks[1]; of.Runs == 0 || len(of.Known) != 0 {
		t.Errorf("postgres-xact: %d runs, broken by %v", of.Runs, of.Known)
	}
	unfit, err := Advise(Needs{SectionP99: time.Second, LongestPause: time.Hour, Locks: []string{"zookeeper"}}, evidence)
	if err != nil || unfit.Locks[0].Known != nil {
		t.Errorf("not fit: %+v, %v", unfit.Locks, err)
	}
}
