// Package catalog prints what `lockcheck list` shows: locks, clusters, faults, workloads, guards, properties,
// verdicts and causes, each with what a user must know about it.
package catalog

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/internal/remedies"
	"lockcheck/nemesis"
	"lockcheck/present"
	"lockcheck/reports"
	"lockcheck/workloads"
)

// Entry is one row of a list.
type Entry struct {
	Name    string
	Summary string
	Details []string // one line each; nil: no details
}

// widestName is the most columns that a name may take in the first column. A longer name gets a line of its
// own; otherwise the second column would become too narrow.
const widestName = 24

// Write prints names in one column and, next to them, their summaries and details, wrapped to a width in
// columns.
func Write(w io.Writer, entries []Entry, width int) error {
	var text strings.Builder
	indent, long := 0, 0
	for _, e := range entries {
		if n := utf8.RuneCountInString(e.Name); n <= widestName {
			indent = max(indent, n+2)
		} else {
			long++
		}
	}
	if 2*long > len(entries) { // if most names are too long for the column, it only wastes width
		indent = 4
	}
	for _, e := range entries {
		name := e.Name
		if utf8.RuneCountInString(name) > min(widestName, indent-2) {
			text.WriteString(name + "\n")
			name = ""
		}
		for _, line := range append([]string{e.Summary}, e.Details...) {
			for n, part := range reports.Wrap(line, width-indent, width-indent-2, false) {
				if n > 0 {
					part = "  " + part
				}
				fmt.Fprintf(&text, "%-*s%s\n", indent, name, part)
				name = ""
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Brief returns the entries without their details.
func Brief(entries []Entry) []Entry {
	var brief []Entry
	for _, e := range entries {
		brief = append(brief, Entry{Name: e.Name, Summary: e.Summary})
	}
	return brief
}

// Clusters lists the clusters that a lock file can name, with the locks that run on each.
func Clusters() (entries []Entry) {
	for _, spec := range clusters.Table() {
		var locks []string
		for _, lock := range clients.Table() {
			if lock.Servers == spec.Name {
				locks = append(locks, lock.Name)
			}
		}
		entries = append(entries, Entry{spec.Name, "servers: " + serversOf(spec, false), []string{"locks: " + strings.Join(locks, ", ")}})
	}
	return entries
}

// Workloads lists what workers can do while they hold the lock.
func Workloads() (entries []Entry) {
	for _, workload := range workloads.Table() {
		entries = append(entries, Entry{Name: workload.Name, Summary: workload.Summary})
	}
	return entries
}

// Guards lists the checks that the resource can apply to reads and writes.
func Guards() (entries []Entry) {
	for _, name := range workloads.Guards() {
		guard := workloads.Guard(name)
		var with, without []string
		for _, lock := range clients.Table() {
			if guard.Lacks(lock) == "" {
				with = append(with, lock.Name)
			} else {
				without = append(without, lock.Name)
			}
		}
		entries = append(entries, Entry{name, "refuses " + refusedBy(guard), []string{"locks: " + shorter(with, without)}})
	}
	return entries
}

// shorter names the members of a group, or the non-members if there are fewer of them.
func shorter(with, without []string) string {
	switch {
	case len(without) == 0:
		return "all"
	case len(without) > len(with):
		return strings.Join(with, ", ")
	}
	return "all except " + strings.Join(without, ", ")
}

// refusedBy describes what the resource refuses under a guard; "" for an unknown guard.
func refusedBy(guard workloads.Guard) string {
	return map[workloads.Guard]string{
		workloads.NoGuard:        "nothing",
		workloads.Fence:          "a read or write whose fencing token is lower than the highest token in any read or write so far",
		workloads.FenceWrites:    "a write whose fencing token is lower than the highest token in any write so far (a known mistake: reads are not checked)",
		workloads.Ask:            "a read or write unless the lock service, asked at that moment, has its grant on record",
		workloads.Database:       "nothing itself: the data are in the lock's own database, and accessed through the connection that holds the lock",
		workloads.CompareAndSet:  "a write that was computed from an outdated version",
		workloads.IdempotencyKey: "a write of an element that is already there; with the workload jobs, a job that is already done",
		workloads.Match:          "a write if another attempt has read since: a read leaves its attempt's unique value at the resource, and a write must find that value there",
	}[guard]
}

// Faults lists the kinds of faults. For each kind it names the clusters whose servers or workers support it,
// and why the other clusters do not.
func Faults() (entries []Entry) {
	for _, kind := range nemesis.Kinds() {
		var servers, workers support
		for _, spec := range clusters.Table() {
			can := kind.Support(spec)
			if spec.Nodes > 0 {
				servers.add(spec.Name, can.Servers)
			}
			workers.add(spec.Name, can.Workers)
		}
		entries = append(entries, Entry{kind.Name, kind.Summary, []string{
			"default target: " + kind.Target, "servers: " + servers.String(), "workers: " + workers.String(),
		}})
	}
	return append(entries, Entry{Name: "targets", Summary: targets})
}

// targets describes what a fault can be aimed at.
const targets = "after a colon, as in pause:leader or \"kill:one worker\": holder, waiter, leader, follower, one, minority, " +
	"majority, all (servers, unless worker or workers follows), halves, ring, bridge, or names, as in n1 or w2"

// FaultsOn lists, for each kind of fault, whether one cluster supports it, and if not, why.
func FaultsOn(spec clusters.Spec) (entries []Entry) {
	answer := func(why error) string {
		if why != nil {
			return "not supported: " + why.Error()
		}
		return "supported"
	}
	for _, kind := range nemesis.Kinds() {
		can := kind.Support(spec)
		e := Entry{Name: kind.Name, Summary: "workers: " + answer(can.Workers)}
		if spec.Nodes > 0 {
			e.Summary, e.Details = "servers: "+answer(can.Servers), []string{e.Summary}
		}
		entries = append(entries, e)
	}
	return entries
}

// support groups clusters by the reason why they do not support a fault.
type support struct {
	can     []string
	reasons []string            // in the order of their first cluster
	cannot  map[string][]string // reason to clusters
	refused int
}

func (s *support) add(cluster string, why error) {
	if why == nil {
		s.can = append(s.can, cluster)
		return
	}
	if s.cannot == nil {
		s.cannot = make(map[string][]string)
	}
	reason := why.Error()
	if s.cannot[reason] == nil {
		s.reasons = append(s.reasons, reason)
	}
	s.cannot[reason] = append(s.cannot[reason], cluster)
	s.refused++
}

// String lists the clusters that support the fault, or those that do not if they are fewer.
func (s *support) String() string {
	if s.refused == 0 {
		return "all"
	}
	if len(s.can) == 0 && len(s.reasons) == 1 {
		return "none: " + s.reasons[0]
	}
	var not []string
	for _, reason := range s.reasons {
		not = append(not, fmt.Sprintf("%s (%s)", strings.Join(s.cannot[reason], ", "), reason))
	}
	if s.refused < len(s.can) {
		return "all except " + strings.Join(not, "; ")
	}
	return strings.Join(s.can, ", ") + "; not " + strings.Join(not, "; ")
}

// Properties lists the properties by which a run is judged.
func Properties() (entries []Entry) {
	for _, p := range checker.Properties() {
		entries = append(entries, Entry{string(p), present.Property(p), []string{"required: " + requiredWhen(p)}})
	}
	return entries
}

// requiredWhen asks the checkers under which conditions a run must have the property.
func requiredWhen(p checker.Property) string {
	required := func(h history.Header) bool {
		for _, r := range checker.Required(h) {
			if r == p {
				return true
			}
		}
		return false
	}
	plain, guarded := required(history.Header{}), required(history.Header{Guard: string(workloads.CompareAndSet)})
	switch {
	case plain && guarded:
		return "always"
	case plain:
		return "without a guard"
	case required(history.Header{Renewed: true}):
		return "if holders renew, without a guard"
	case required(history.Header{Tokens: true}):
		return "if the lock has fencing tokens"
	case required(history.Header{Workload: history.WorkloadReadWrite}):
		return "with --workload read-write"
	}
	return "with --require " + string(p)
}

// Verdicts lists the possible verdicts on a run.
func Verdicts() (entries []Entry) {
	for _, v := range append(checker.Verdicts(), checker.NotApplicable) {
		entries = append(entries, Entry{Name: string(v), Summary: present.Verdict(v)})
	}
	return entries
}

// Causes lists the causes to which a violation can be attributed, and what helps against each. In their
// summaries "it" is the earlier holder.
func Causes() (entries []Entry) {
	for _, c := range checker.Causes() {
		e := Entry{Name: c.Name, Summary: present.Cause(c.Name)}
		if c.Inherent {
			e.Details = append(e.Details, "inherent in leases: no lock with a lease can prevent it")
		}
		for _, a := range remedies.For(c.Name) {
			e.Details = append(e.Details, fmt.Sprintf("%s (%s): %s", remedies.ByName(a.Remedy).Words, a.Effect, a.Why))
		}
		entries = append(entries, e)
	}
	return entries
}
