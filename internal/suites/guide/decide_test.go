package guide

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/remedies"
	"lockcheck/internal/suites/repros"
	"lockcheck/reports"
)

func known(t *testing.T) Evidence {
	t.Helper()
	e, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestReproductions: the evidence has each reproduction and its control, for the right lock and with the
// required verdict. No cell says that a lock held under a fault if a reproduction breaks it.
func TestReproductions(t *testing.T) {
	e := known(t)
	all, err := repros.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		experiments, err := r.Experiments()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range experiments {
			if strings.HasSuffix(x.Name, "/fast") || strings.HasSuffix(x.Name, "/fast/control") {
				continue // the same experiment with less time
			}
			i := slices.IndexFunc(e, func(run Run) bool {
				return run.Experiment == x.Name && (x.Expect.Verdict == "" || run.Verdict == x.Expect.Verdict)
			})
			if i < 0 {
				t.Errorf("%s, which must be %q, is not in the evidence: run %s --store FOLDER, then lockcheck guide collect", x.Name, x.Expect.Verdict, remedies.Command(x.Name))
				continue
			}
			run := e[i]
			name, _, _ := strings.Cut(run.Lock, useSign)
			name, version, _ := strings.Cut(name, "@")
			if name != x.Options.Lock || run.Guard != x.Options.Guard || x.Options.ServerVersion != "" && version != "" && version != x.Options.ServerVersion {
				t.Errorf("%s is about %s behind %s, and its evidence about %s behind %s", x.Name, x.Options.Lock, x.Options.Guard, run.Lock, run.Guard)
			}
			for _, run := range e {
				if v := x.Options.ServerVersion; run.Experiment == x.Name && v != "" && !strings.HasSuffix(run.Version(), " "+v) {
					t.Errorf("%s runs version %s, and its evidence %s is of %s", x.Name, v, run.ID, run.Version())
				}
			}
			if !run.Breaks() {
				continue
			}
			faults := run.blamed()
			if len(run.Faults) == 0 {
				faults = []string{None}
			}
			for _, fault := range faults {
				if cell := e.Cell(run.Lock, fault, run.Guard); cell.State != Broken {
					t.Errorf("%s breaks %s under %s behind %s, where the guide says %q", x.Name, run.Lock, fault, run.Guard, cell.State)
				}
			}
		}
	}
}

// TestStories: each story has its expected answer. If this fails, evidence has changed an answer: look at the
// story.
func TestStories(t *testing.T) {
	e := known(t)
	if n := len(Stories()); n < 12 {
		t.Errorf("%d stories", n)
	}
	for _, s := range Stories() {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		d := e.Decide(s.Query)
		lock, guard, out := "", "", ""
		if len(d.Choices) > 0 {
			lock, guard = d.Choices[0].Lock, d.Choices[0].Guard
		} else {
			out = d.Out[0].Lock
		}
		if lock != s.Lock || guard != s.Guard {
			t.Errorf("%q is answered with %s behind %q, not with %s behind %q", s.Text, lock, guard, s.Lock, s.Guard)
		}
		i := slices.IndexFunc(e, func(r Run) bool { return r.Command() == s.Shown })
		if i < 0 {
			t.Errorf("%q is shown by %q, which no run was made by", s.Text, s.Shown)
			continue
		}
		about := func(r Run) bool {
			part := r.ID == e[i].ID || e[i].Experiment != "" && strings.TrimSuffix(r.Experiment, "/control") == e[i].Experiment
			return part && (r.Lock == cmp.Or(s.Lock, out) || r.Guard == s.Guard)
		}
		if !slices.ContainsFunc(e, about) {
			t.Errorf("%q is shown by %q, which is neither about its lock nor about its guard", s.Text, s.Shown)
		}
	}
}

// TestStoryChanges: the answer of a story follows the evidence.
func TestStoryChanges(t *testing.T) {
	billing := Stories()[0]
	lost := Run{
		ID: "new", When: "2026-11-26T00:00:00Z", Lock: billing.Lock, Guard: billing.Guard, Versions: map[string]string{"postgres": "17.12"},
		Faults: []Fault{{Name: "pause:holder", Asked: 1, Met: 1}}, Verdict: checker.Violation, Violated: []checker.Property{checker.NoLostUpdate}, DoubleGrants: 1, Line: "lockcheck test",
	}
	e := known(t)
	if got := e.With(Evidence{lost}).Decide(billing.Query).Choices[0].Lock; got == billing.Lock {
		t.Errorf("%s is still the answer after it lost data behind its guard", got)
	}
	lost.Versions = map[string]string{"postgres": "16.3"} // another release line
	if got := e.With(Evidence{lost}).Decide(billing.Query).Choices[0].Lock; got != billing.Lock {
		t.Errorf("a bug of another release line changes the answer to %s", got)
	}
}

// TestDecide: mistakes that a guide could make.
func TestDecide(t *testing.T) {
	e := known(t)
	locks := func(all []Choice) (names []string) {
		for _, c := range all {
			names = append(names, append([]string{c.Lock}, c.Others...)...)
		}
		return names
	}
	for _, need := range Needs() {
		d := e.Decide(Query{Need: need})
		for _, orphan := range []string{"file", "postgres-insert", "redis-noexpiry"} {
			if slices.Contains(locks(d.Choices), orphan) {
				t.Errorf("%s: %s, which a dead holder blocks for ever, is offered", need, orphan)
			}
		}
		for _, c := range d.Choices {
			if need == NeedWaste != (c.Guard == history.GuardNone) {
				t.Errorf("%s: %s behind %s", need, c.Lock, c.Guard)
			}
		}
	}
	// The lease of a test decides nothing: etcd's tests have 2 s, and Redis could have 2 ms.
	soon := e.Decide(Query{Need: NeedFailover, Failover: 2 * time.Second})
	if !slices.Contains(locks(soon.Choices), "redis") || slices.Contains(locks(soon.Choices), "etcd") {
		t.Errorf("within 2 s: %q", locks(soon.Choices))
	}
	if d := e.Decide(Query{Need: NeedFailover, Failover: 6 * time.Second}); !slices.Contains(locks(d.Choices), "etcd") {
		t.Errorf("within 6 s: %q", locks(d.Choices))
	}
	// A bug in 3.4 does not count against 3.6.
	i := slices.IndexFunc(e, func(r Run) bool { return r.Experiment == "repro/etcd-11456" && r.Breaks() })
	old := e[i]
	old.ID, old.Lock, old.Experiment = "a bug of 3.4", "etcd-v3lock", ""
	for _, c := range append(slices.Clone(e), old).Decide(Query{Need: NeedData, Have: []string{"etcd"}}).Choices {
		for _, s := range c.Faulty {
			if strings.HasPrefix(s.Version, "etcd 3.4") || s.Fault == None {
				t.Errorf("%s is charged with %s of %s", c.Lock, s.Fault, s.Version)
			}
		}
	}
	// A token does not say whether a job was done. Only a key does, which a database checks in the job's own
	// transaction.
	for _, c := range []struct {
		query Query
		says  string
	}{
		{Query{Need: NeedOnce, Have: []string{"postgres"}}, "unique row"},
		{Query{Need: NeedOnce, Have: []string{"postgres"}, External: true}, "the other side"},
		{Query{Need: NeedOnce, Have: []string{"etcd"}}, "the other side"},
	} {
		if d := e.Decide(c.query); d.Choices[0].Guard != history.GuardIdempotency || !strings.Contains(d.Advice(), c.says) {
			t.Errorf("%s: %s", d.Title(), d.Advice())
		}
	}
	// A row does not contradict its guard, and does not ask for a lease that every lock has.
	for _, c := range e.Decide(Query{Need: NeedData, Work: 10 * time.Millisecond}).Choices {
		for _, f := range c.facts() {
			if f.Name == "safe behind" && c.Guard == history.GuardVersions || strings.Contains(f.Text, "10ms") {
				t.Errorf("%s behind %s: %s %s", c.Lock, c.Guard, f.Name, f.Text)
			}
		}
	}
	// A token that starts again is not offered as a guard.
	if d := e.Decide(Query{Need: NeedData, Have: []string{"consul"}}); d.Choices[0].Guard == history.GuardFence {
		t.Error("Consul's LockIndex is offered as a fence")
	}
}

// TestVersions: runs of two versions are two groups and are never added up.
func TestVersions(t *testing.T) {
	cell := known(t).Cell("postgres-session", None, history.GuardNone)
	var versions []string
	for _, g := range cell.Groups {
		if !slices.Contains(versions, g.Version) {
			versions = append(versions, g.Version)
		}
		for _, r := range g.Runs {
			if r.Version() != g.Version {
				t.Errorf("a run of %s is in the group of %s", r.Version(), g.Version)
			}
		}
	}
	if !slices.Contains(versions, "postgres 17.11") || !slices.Contains(versions, "postgres 17.12") {
		t.Errorf("%q", versions)
	}
}

// TestOnce: the track record of an experiment and its single runs are not added up.
func TestOnce(t *testing.T) {
	single := of("repro/x", brokenRun("1", clock))
	summed := changed(of("repro/x", brokenRun("2", clock)), func(r *Run) { r.Of, r.Met = 3, 2 })
	for _, c := range []struct {
		runs     Evidence
		broke, n int64
	}{
		{Evidence{single, summed}, 2, 3},
		{Evidence{single}, 1, 1},
		{Evidence{single, changed(summed, func(r *Run) { r.Verdict, r.Violated, r.Met = checker.Valid, nil, 3 })}, 1, 4},
		{Evidence{single, of("repro/x", brokenRun("3", clock)), of("repro/x", brokenRun("4", clock)), of("repro/x", brokenRun("5", clock)), summed}, 4, 4},
	} {
		g, _ := c.runs.Cell("redis", clock, history.GuardNone).Worst()
		if g.Broke != c.broke || g.N != c.n {
			t.Errorf("%d runs: %d of %d, want %d of %d", len(c.runs), g.Broke, g.N, c.broke, c.n)
		}
	}
}

// TestFamilies: each lock that may be chosen belongs to exactly one family, and no family names a lock twice.
func TestFamilies(t *testing.T) {
	seen := make(map[string]int)
	for _, f := range Families() {
		for _, lock := range f.Locks {
			seen[lock]++
		}
	}
	for _, info := range clients.Table() {
		found, err := lockfile.Find(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		choosable := info.Naive == "" && !info.Unsafe && !info.Permits && found.Servers.Embedded == nil && info.Name != "queue"
		if n := seen[info.Name]; n > 1 || n == 0 && choosable {
			t.Errorf("%s is of %d families", info.Name, n)
		}
	}
}

// TestViews: a decision fits a terminal, the Markdown is short, and the page is self-contained.
func TestViews(t *testing.T) {
	e := known(t)
	queries := []Query{{Need: NeedData}, {Need: NeedOnce}, {Need: NeedWaste}, {Need: NeedFailover}, {Need: NeedInfra}, {Need: NeedLong}}
	for _, s := range Stories() {
		queries = append(queries, s.Query)
	}
	for _, q := range queries {
		var b strings.Builder
		if err := e.Decide(q).Terminal(&b, reports.TerminalOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, s := range spans(e.Decide(q).Advice()) {
			if s.Code && !strings.Contains(b.String(), s.Text) {
				t.Errorf("%+v: %q cannot be pasted from\n%s", q, s.Text, b.String())
			}
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) > 40 {
			t.Errorf("%+v: %d lines\n%s", q, len(lines), b.String())
		}
		for _, line := range lines {
			if len([]rune(line)) > 80 {
				t.Errorf("%+v: %d columns: %s", q, len([]rune(line)), line)
			}
		}
	}
	var b strings.Builder
	if err := e.Markdown(&b); err != nil || len(strings.Fields(b.String())) > 1500 {
		t.Errorf("%d words, %v", len(strings.Fields(b.String())), err)
	}
	b.Reset()
	if err := e.HTML(&b); err != nil || strings.Contains(b.String(), "src=") || strings.Count(b.String(), `type="radio"`) != len(Needs()) {
		t.Errorf("%v", err)
	}
	b.Reset()
	if err := e.Why(&b, "etcd-v3lock/none", reports.TerminalOptions{}); err != nil || !strings.Contains(b.String(), "etcd 3.4.3") || !strings.Contains(b.String(), "3 of 3") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestPresume: a lock that was not tried, or too seldom, is no better than one of its family that the service failed.
func TestPresume(t *testing.T) {
	const cut = "partition:leader among servers"
	family, _ := FamilyOf("etcd")
	choice := func(lock string, cells map[string]Cell, faulty ...Shown) Choice {
		return Choice{Family: family, Lock: lock, alone: cells, Faulty: faulty}
	}
	broken := Shown{Fault: cut, Main: cut, Group: Group{Low: 0.2}}
	all := []Choice{
		choice("etcd", map[string]Cell{cut: {State: Broken}}, broken), choice("etcd-election", map[string]Cell{cut: {State: Held, Bound: 0.17}}),
		choice("etcd-v3lock", nil), choice("etcd-v3lock-retry", map[string]Cell{cut: {State: Held, Bound: 0.9}}), choice("redis", nil),
	}
	presume(all)
	for i, want := range []int{0, 0, 1, 1, 0} {
		if got := len(all[i].presumed); got != want {
			t.Errorf("%s: %d presumed, want %d", all[i].Lock, got, want)
		}
	}
	if etcd, untried := all[0].faultyKinds(), all[2].faultyKinds(); etcd != untried {
		t.Errorf("etcd fails under %d kinds of faults, one that was not tried under %d", etcd, untried)
	}
}
