package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/remedies"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// TestEntries: every name in a table has an entry that explains it.
func TestEntries(t *testing.T) {
	names := func(entries []Entry) (all []string) {
		for _, e := range entries {
			if e.Summary == "" || strings.HasSuffix(e.Summary, "refuses ") || slices.Contains(e.Details, "") {
				t.Errorf("%s is not explained: %+v", e.Name, e)
			}
			all = append(all, e.Name)
		}
		return all
	}
	var causes, properties []string
	for _, c := range checker.Causes() {
		causes = append(causes, c.Name)
	}
	for _, p := range checker.Properties() {
		properties = append(properties, string(p))
	}
	for _, c := range []struct {
		what    string
		entries []Entry
		want    []string
	}{
		{"locks", Locks(), clients.Names()},
		{"faults", Faults(), append(nemesis.KindNames(), "targets")},
		{"workloads", Workloads(), workloads.Names()},
		{"guards", Guards(), workloads.Guards()},
		{"properties", Properties(), properties},
		{"causes", Causes(), causes},
	} {
		if got := names(c.entries); !slices.Equal(got, c.want) || len(got) == 0 {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	names(Clusters())
	names(Verdicts())
	for _, e := range Causes() {
		for _, a := range remedies.For(e.Name) {
			if !strings.Contains(strings.Join(e.Details, "\n"), a.Why) {
				t.Errorf("cause %s lacks the remedy %s", e.Name, a.Remedy)
			}
		}
	}
}

// TestLocks: the entry of a lock contains everything from its row in the table.
func TestLocks(t *testing.T) {
	entries := Locks()
	for i, lock := range clients.Table() {
		text := entries[i].Summary + "\n" + strings.Join(entries[i].Details, "\n")
		servers, _ := clusters.ByName(lock.Servers)
		said := append([]string{lock.Summary, lock.Token, lock.LossNotification, lock.Clock, lock.Library, lock.Naive}, servers.Versions...)
		if lock.TTL > 0 {
			said = append(said, lock.TTL.String(), lock.MinTTL.String(), lock.Effective(lock.TTL, lock.LockDelay).String())
		}
		for _, part := range said {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %q is not said in\n%s", lock.Name, part, text)
			}
		}
	}
}

// TestLock describes two locks that differ in every respect.
func TestLock(t *testing.T) {
	lease := clients.Info{TTL: 2 * time.Second, MinTTL: time.Second, Expiry: 2, LockDelay: time.Second, Session: true, Queues: true}
	servers := clusters.Spec{Nodes: 5, Sizes: []int{3, 1}, Versions: []string{"3.6", "3.4"}}
	bare := clients.Info{}
	for _, c := range [][2]string{
		{leaseOf(lease), "2s by default, at least 1s; the lock of a dead holder is free after at most 5s (including a lock delay of 1s)"},
		{renewalOf(lease), "by its client, in the background"}, {attemptOf(lease), "an attempt waits for the lock"},
		{serversOf(servers, true), "5, or --nodes 3 or 1; --pin ties each worker to one server; --version 3.6 or 3.4"},
		{guardsOf(lease), "none, cas, match, idempotency-key"},
		{leaseOf(clients.Info{Grace: time.Second}), "none: the lock ends with its holder's process or connection, within 1s"},
		{leaseOf(bare), "none: only a release frees the lock"}, {renewalOf(bare), "no"}, {attemptOf(bare), "an attempt is refused at once"},
		{serversOf(clusters.Spec{}, false), "none"}, {renewalOf(clients.Info{Renew: true}), "with --renew"},
		{guardsOf(clients.Info{Token: "counter"}), "none, fence, fence-writes, cas, match, idempotency-key"},
		{guardsOf(clients.Info{Ask: true}), "none, ask, cas, match, idempotency-key"},
		{guardsOf(clients.Info{Data: true}), "none, database, cas, match, idempotency-key"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
}

// TestWrite: a long name has a line of its own, and text is wrapped with an indent.
func TestWrite(t *testing.T) {
	var text strings.Builder
	long := strings.Repeat("x", 25)
	few := []Entry{{"a", "one two three", []string{"four"}}, {long, "five", nil}}
	many := []Entry{{"a", "one", nil}, {"abc", "two", nil}, {long, "five", nil}, {long, "six", nil}, {long, "seven", nil}}
	for want, entries := range map[string][]Entry{
		"a  one two\n     three\n   four\n" + long + "\n   five\n":                                        few,
		"a   one\nabc\n    two\n" + long + "\n    five\n" + long + "\n    six\n" + long + "\n    seven\n": many,
	} {
		text.Reset()
		if err := Write(&text, entries, 12); err != nil || text.String() != want {
			t.Errorf("%v, got\n%s\nwant\n%s", err, &text, want)
		}
	}
}
