package runs

import (
	"cmp"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/checker"
	"lockcheck/clusters/clustertest"
	"lockcheck/internal/appfile"
	"lockcheck/internal/cleanup"
)

// hostileApp is an application that does something to the run. What is "" is as in one that does not.
type hostileApp struct {
	name string
	// Shell commands: the first replica, the load, and questions.
	replica, load, never, kept, work string
	did                              string // another pattern for work that was done
	// verdict is what the run must end with, and says is part of the reason.
	verdict checker.Verdict
	says    string
	// late: the run takes long, because a question is asked until its time limit.
	late bool
}

const (
	// works is a replica that does a piece of work, counted by n, again and again.
	works = `while :; do n=$((n+1)); echo "did $LOCKCHECK_REPLICA-$n"; echo "$LOCKCHECK_REPLICA-$n" >>$LOCKCHECK_SHARED/done; sleep 0.2; done`
	// gives is a load that does the work itself that it says was accepted.
	gives = `while :; do n=$((n+1)); echo "load-$n" >>$LOCKCHECK_SHARED/done; echo "accepted load-$n"; sleep 0.2; done`
	// done prints all work that was done.
	done = `cat $LOCKCHECK_SHARED/done`
)

// hostileApps: what is hostile either changes nothing, or the run says what it could have hidden.
// Floods are nice, so that they take no time from the tests beside them.
func hostileApps(t *testing.T) []hostileApp {
	const (
		lost      = "lines of hostile-1 are missing: "
		unwatched = "invariant never-1 was never answered: "
	)
	deaf := "http://" + deafServer(t) + "/"
	return []hostileApp{
		{name: "replica floods", replica: works + ` & exec nice -n 19 yes nothing`, verdict: checker.Valid},
		{name: "replica floods with work", replica: `exec nice -n 19 awk 'BEGIN { for (;;) print "did 1-" ++n }'`, verdict: checker.Undecided, says: lost + "more than 2000 lines in a second"},
		{name: "replica prints one endless line", replica: `exec nice -n 19 tr '\0' x </dev/zero`, verdict: checker.Undecided, says: lost + "a line of more than 65536 bytes"},
		{name: "replica does not end", replica: `trap '' TERM; (setsid sleep 3600 &); (env -i setsid sleep 3600 &); ` + works, verdict: checker.Valid, late: true},
		{name: "line for an exponential pattern", replica: `long=$(head -c 60000 /dev/zero | tr '\0' x); (while sleep 0.1; do echo $long; done) & ` + works, did: `^(?P<id>(x+x+)+y)$`, verdict: checker.Valid},
		{name: "invariant hangs", never: `trap '' TERM; sleep 3600`, verdict: checker.Undecided, says: unwatched + "no answer within 5s", late: true},
		{name: "invariant forks", never: `sleep 3600 & exit 0`, verdict: checker.Valid},
		{name: "invariant forks into another group", never: `f=$LOCKCHECK_SHARED/$$; setsid sh -c "echo >$f; exec sleep 3600" & until [ -e $f ]; do sleep 0.01; done`, verdict: checker.Undecided, says: unwatched + "the command has ended, and something that it left behind keeps its output open", late: true},
		{name: "invariant prints without end", never: `exec nice -n 19 yes`, verdict: checker.Undecided, says: unwatched, late: true},
		{name: "invariant complains without end", never: `exec nice -n 19 yes >&2`, verdict: checker.Undecided, says: unwatched, late: true},
		{name: "request is never answered", never: deaf, verdict: checker.Undecided, says: unwatched + "no answer within 5s"},
		{name: "kept prints without end", load: gives, kept: `exec nice -n 19 yes`, verdict: checker.Undecided, says: "invariant kept-2 was never answered: the answer has more than"},
		{name: "work hangs", work: `sleep 3600`, verdict: checker.Undecided, says: "work was never answered (unknown", late: true},
		{name: "load does not end", load: `trap '' TERM; (setsid sleep 3600 &); ` + gives, kept: done, verdict: checker.Valid, late: true},
		{name: "load floods", load: `exec nice -n 19 awk 'BEGIN { for (;;) print "accepted load-" ++n }'`, kept: done, verdict: checker.Violation, says: "kept-2"},
		{name: "load floods with one piece", load: `echo load-0 >>$LOCKCHECK_SHARED/done; exec nice -n 19 yes accepted load-0`, kept: done, verdict: checker.Undecided, says: "lines of load are missing: more than 2000 lines in a second"},
	}
}

// deafServer accepts connections, reads nothing and says nothing. It returns its address.
func deafServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the kernel completes connections that nobody accepts
	return listener.Addr().String()
}

// met says whether a run ended as it must.
func (h hostileApp) met(r checker.Results) bool {
	return r.Verdict == h.verdict && strings.Contains(strings.ToLower(r.Sentence), h.says)
}

// file is the app file of the application.
func (h hostileApp) file(t *testing.T) string {
	t.Helper()
	did := []string{`^did (?P<id>\S+)$`}
	if h.did != "" {
		did = append(did, h.did)
	}
	invariants := []map[string]string{{"never": cmp.Or(h.never, "exit 0")}}
	app := map[string]any{
		"name": "hostile",
		"app": map[string]any{
			"command": []string{"sh", "-c", `if [ $LOCKCHECK_REPLICA = 1 ]; then ` + cmp.Or(h.replica, works) + "; fi; " + works},
			"lease":   "1s",
			"says":    map[string]any{"did": did},
		},
	}
	if h.load != "" {
		app["load"] = map[string]any{"command": []string{"sh", "-c", h.load}}
		invariants = append(invariants, map[string]string{"kept": h.kept})
	}
	if h.work != "" {
		app["work"] = map[string]string{"ask": h.work}
	}
	app["invariants"] = invariants
	text, err := yaml.Marshal(app)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "app.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHostileApplications: whatever an application, its load or a question does, the run ends within its limits, says what
// went unseen, and leaves no process behind. How a launcher and an asker bear each is tried in their packages; these are
// whole runs. make test has one question that is never answered and one that is answered without end.
func TestHostileApplications(t *testing.T) {
	t.Parallel()
	for _, h := range hostileApps(t) {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			if h.late {
				clustertest.StartsServers(t, clustertest.Rest)
			}
			app, err := appfile.Read(h.file(t))
			if err != nil {
				t.Fatal(err)
			}
			o := ApplicationOptions{
				App: app, Nemesis: "none", Interval: time.Second, TimeLimit: app.Lease + settleTime + clustertest.Slow(3*time.Second), MinOps: 1, Seed: 1,
				Machine: Machine{Store: t.TempDir(), Binary: clustertest.Binary(t), Version: "test"},
			}
			outcome := h.endsInTime(t, o)
			r := outcome.Results
			if !h.met(r) {
				t.Errorf("%s: %s; want %s with %q", r.Verdict, r.Sentence, h.verdict, h.says)
			}
			if left, err := cleanup.Running(outcome.History.Header.Run); err != nil || len(left) != 0 {
				t.Errorf("processes %v, %v: none is to be left", left, err)
			}
			boundedLogs(t, outcome)
		})
	}
}

// endsInTime runs the application, again and longer if a busy machine let it show too little or end too late, and makes sure that each run ends
// when its limits say so: of the time of the run, and of the ends of the load, the askers and the replicas.
func (h hostileApp) endsInTime(t *testing.T, o ApplicationOptions) (outcome Outcome) {
	t.Helper()
	for _, longer := range []time.Duration{1, 3, 6} {
		again := o
		again.TimeLimit = longer * o.TimeLimit
		const ends = 3 // of programs that are waited for one after the other
		limit := clustertest.Slow(again.TimeLimit + settleTime + ends*(finalLimit+callsToTheirLimits))
		began := time.Now()
		outcome = runApplication(t, again)
		if took := time.Since(began); took > limit {
			t.Errorf("the run took %s, want at most %s", took, limit)
		}
		if r := outcome.Results; h.met(r) || r.Verdict == checker.Violation {
			break
		}
	}
	return outcome
}
