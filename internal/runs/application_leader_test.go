package runs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clusters"
	"lockcheck/clusters/clustertest"
	"lockcheck/history"
	"lockcheck/internal/appfile"
)

// TestLeadership: a leader is whom the first answer names that was asked for when the fault was due, or later.
func TestLeadership(t *testing.T) {
	replicas := []string{"b-1", "b-2", "b-3"}
	hittable := []*clusters.Node{{Name: "b-2"}, {Name: "b-3"}}
	for _, c := range []struct {
		name   string
		answer history.Event // to what is asked now
		want   string        // the leader, or with blanks why there is none
	}{
		{"by its name", history.Event{Answer: &history.Answer{Rows: []string{"b-2"}}}, "b-2"},
		{"by its number", history.Event{Answer: &history.Answer{Rows: []string{"3"}}}, "b-3"},
		{"in the first row and column", history.Event{Answer: &history.Answer{Rows: []string{" b-3 \t5s", "b-2"}}}, "b-3"},
		{"one that may not be hit", history.Event{Answer: &history.Answer{Rows: []string{"1"}}}, `no replica led: the answer was "1", which is no replica that faults may hit`},
		{"nobody", history.Event{Answer: &history.Answer{}}, "no replica led: the answer was empty"},
		{"no answer", history.Event{Type: history.Info, Error: "refused"}, "no replica led: refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLeadership(replicas, hittable)
			early := history.Event{F: history.Asked, Key: history.InvariantLeader, From: history.Now(), Answer: &history.Answer{Rows: []string{"b-2"}}}
			l.Observe(early) // before it is due
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			type answer struct {
				leader string
				err    error
			}
			got := make(chan answer)
			go func() {
				leader, err := l.Leader(ctx)
				got <- answer{leader, err}
			}()
			c.answer.F, c.answer.Key = history.Asked, history.InvariantLeader
			for a := (answer{}); ; {
				c.answer.From = history.Now()
				l.Observe(c.answer)
				if strings.Contains(c.want, " ") {
					cancel()
				}
				select {
				case a = <-got:
				case <-time.After(time.Millisecond): // it may not have begun to wait
					continue
				}
				if a.err == nil && a.leader != c.want || a.err != nil && a.err.Error() != c.want {
					t.Errorf("%q, %v; want %q", a.leader, a.err, c.want)
				}
				return
			}
		})
	}
}

// elected is an application whose leader holds a lock of the kernel, and alone does any work.
const elected = `
name: elected
app:
  command: [sh, -c, 'exec flock $LOCKCHECK_SHARED/lock sh -c "$LEAD"']
  environment:
    LEAD: |
      echo $LOCKCHECK_REPLICA >$LOCKCHECK_SHARED/new; mv $LOCKCHECK_SHARED/new $LOCKCHECK_SHARED/leader
      while :; do n=$((n+1)); echo "did $LOCKCHECK_REPLICA-$$-$n"; sleep 0.1; done
  lease: 1s
  says: {did: 'did (?P<id>\S+)'}
  leader: {ask: QUESTION}
invariants: [{never: exit 0}]
`

// electedOptions are those of a run whose question for the leader is a shell command.
func electedOptions(t *testing.T, question, faults string) ApplicationOptions {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(elected, "QUESTION", question, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	app, err := appfile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return ApplicationOptions{
		App: app, Nemesis: faults, Interval: time.Second, TimeLimit: app.Lease + settleTime + clustertest.Slow(12*time.Second), MinOps: 1, Seed: 1,
		Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
	}
}

// TestFaultsOfLeader: a fault of the leader hits whom the application names when the fault is due, also after another replica
// has taken over, and is left out, with why, where nobody leads.
func TestFaultsOfLeader(t *testing.T) {
	t.Parallel()
	t.Run("somebody leads", func(t *testing.T) {
		t.Parallel()
		o := electedOptions(t, "cat $LOCKCHECK_SHARED/leader", "pause:leader,kill:leader")
		var h *history.History
		for _, longer := range []time.Duration{1, 2, 4} {
			again := o
			again.TimeLimit = longer * o.TimeLimit
			outcome := runApplication(t, again)
			if h = outcome.History; outcome.Results.Verdict == checker.Valid {
				break
			}
		}
		var led []string // by the answers so far
		hit := 0
		for _, e := range h.Events {
			switch f := e.Fault; {
			case e.F == history.Asked && e.Key == history.InvariantLeader && e.Answer != nil && len(e.Answer.Rows) > 0:
				led = append(led, "elected-"+e.Answer.Rows[0])
			case f != nil && f.Stage == history.Requested:
				hit++
				last := led[max(0, len(led)-2):] // one may have come since the fault was aimed
				if len(f.Targets) != 1 || !slices.Contains(last, f.Targets[0]) {
					t.Errorf("fault %s hit %v while %s led", f.ID, f.Targets, last)
				}
			}
		}
		if hit < 2 {
			t.Errorf("%d faults hit the leader, want both kinds", hit)
		}
	})
	t.Run("nobody leads", func(t *testing.T) {
		t.Parallel()
		outcome := runApplication(t, electedOptions(t, "exit 0", "pause:leader"))
		skipped := slices.ContainsFunc(outcome.History.Events, func(e history.Event) bool {
			return e.Fault != nil && e.Fault.Stage == history.Skipped && strings.Contains(e.Fault.Evidence, "no replica led: the answer was empty")
		})
		if !skipped || outcome.Results.Verdict != checker.Undecided {
			t.Errorf("skipped %t: %s", skipped, outcome.Results.Sentence)
		}
	})
}

// TestTargetsOfApplications: targets that no run of an application can have are refused before it starts, with what to add.
func TestTargetsOfApplications(t *testing.T) {
	here := applicationOptions(t, "quartz", "right")
	onDocker := here
	var err error
	if onDocker.App, err = appfile.Read("../../examples/applications/billing.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options      ApplicationOptions
		faults, want string // part of the error; "" for none
	}{
		{here, "pause:leader", "app.leader in the app file says how to find out which replica leads"},
		{here, "pause:biler-2", `there is neither a node nor a role "biler-2" (the nodes are quartz-1, quartz-2, quartz-3)`},
		{here, "pause:quartz-2", ""},
		{here, "clock", "a replica on this machine has the clock of the machine; on Docker"},
		{here, "clock:replica", "a replica on this machine has the clock of the machine"},
		{onDocker, "clock", "app.clock in an app file"},
		{onDocker, "clock:biller-2", "app.clock in an app file"},
		{onDocker, "pause:redis", ""},
	} {
		o := c.options
		o.Nemesis, o.TimeLimit = c.faults, time.Minute
		_, err := prepareApplication(o)
		var usage *UsageError
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s of %s: %v, want %q", c.faults, o.App.Name, err, c.want)
		}
	}
}
