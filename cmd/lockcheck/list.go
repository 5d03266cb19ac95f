package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

func listCommand(s *system) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "list locks, clusters, faults, workloads or guards",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(what, short string, items func() []item) {
		list.AddCommand(&cobra.Command{
			Use: what, Short: short, Args: usageArgs(cobra.NoArgs),
			RunE: func(*cobra.Command, []string) error { return s.printItems(items()) },
		})
	}
	add("locks", "locks, with what a user must know of each", lockItems)
	add("clusters", "servers that a lock file can name, and whose locks they are", clusterItems)
	add("faults", "kinds of faults, and the clusters that they are supported on", faultItems)
	add("workloads", "what workers do under the lock", workloadItems)
	add("guards", "what the resource refuses, and for which locks", guardItems)
	list.AddCommand(&cobra.Command{
		Use: "lock NAME|FILE", Short: "one lock, and which faults can be tested on it", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			lock, err := lockfile.Find(args[0])
			if err != nil {
				return &runs.UsageError{Err: err, About: "lock"}
			}
			return s.printItems(append([]item{lockItem(lock)}, faultItemsOf(lock.Servers)...))
		},
	})
	return list
}

func lockItems() (items []item) {
	for _, lock := range clients.Table() {
		servers, _ := clusters.ByName(lock.Servers)
		items = append(items, lockItem(lockfile.Lock{Info: lock, Servers: servers}))
	}
	return items
}

func clusterItems() (items []item) {
	for _, spec := range clusters.Table() {
		var locks []string
		for _, lock := range clients.Table() {
			if lock.Servers == spec.Name {
				locks = append(locks, lock.Name)
			}
		}
		items = append(items, item{spec.Name, []string{"servers: " + serversOf(spec, false), "locks: " + strings.Join(locks, ", ")}})
	}
	return items
}

func lockItem(of lockfile.Lock) item {
	lock := of.Info
	facts := []string{
		lockSummary(lock),
		fmt.Sprintf("fencing token: %s; loss notification: %s", cmp.Or(lock.Token, "none"), lock.LossNotification),
		"depends on: " + lock.Clock,
	}
	return item{lock.Name, append(facts, lockDetails(of, lock.Options)...)}
}

// faultItemsOf says of each fault whether it is supported on one cluster, and why not.
func faultItemsOf(spec clusters.Spec) (items []item) {
	answer := func(why error) string {
		if why != nil {
			return "not supported: " + why.Error()
		}
		return "supported"
	}
	for _, kind := range nemesis.Kinds() {
		can := kind.Support(spec)
		facts := []string{"workers: " + answer(can.Workers)}
		if spec.Nodes > 0 {
			facts = append([]string{"servers: " + answer(can.Servers)}, facts...)
		}
		items = append(items, item{kind.Name, facts})
	}
	return items
}

// lockDetails are the facts about a lock and its options for which the table of the
// reference has no column.
func lockDetails(of lockfile.Lock, options []clients.Option) []string {
	lock := of.Info
	facts := []string{
		"lease: " + leaseOf(lock),
		fmt.Sprintf("renewed: %s; when taken: %s", renewalOf(lock), attemptOf(lock)),
		"guards: " + guardsOf(lock),
		"servers: " + serversOf(of.Servers, lock.AnyServer),
	}
	if lock.Permits {
		facts = append(facts, "permits: 2 by default with --workload semaphore, or --permits; 1 with other workloads")
	}
	for _, o := range options {
		facts = append(facts, fmt.Sprintf("option %s+%s: %s", lock.Name, o.Name, o.Adds))
	}
	return facts
}

func lockSummary(lock clients.Info) string {
	summary := lock.Summary
	if lock.Library != "" {
		summary += ": " + lock.Library
	}
	if lock.Naive != "" {
		summary += " (naive: " + lock.Naive + ")"
	}
	return summary
}

// leaseOf says what the lease is, and when the lock of a dead holder is free.
func leaseOf(lock clients.Info) string {
	switch {
	case lock.TTL == 0 && lock.Grace == 0:
		return "none: only its release frees it"
	case lock.TTL == 0:
		return fmt.Sprintf("none: it ends with its holder's process or connection, within %s", lock.Grace)
	}
	text := fmt.Sprintf("%s by default, at least %s; of a dead holder: at most %s",
		lock.TTL, lock.MinTTL, lock.Effective(lock.TTL, lock.LockDelay))
	if lock.LockDelay > 0 {
		text += fmt.Sprintf(" (lock delay of %s included)", lock.LockDelay)
	}
	return text
}

func renewalOf(lock clients.Info) string {
	switch {
	case lock.Session:
		return "by its client, in the background"
	case lock.Renew:
		return "with --renew"
	}
	return "no"
}

func attemptOf(lock clients.Info) string {
	switch {
	case lock.Endless:
		return "it waits until it is free, and nothing else ends that"
	case lock.Queues:
		return "it waits until it is free"
	}
	return "refused at once"
}

// guardsOf lists the guards that have what they need of the lock.
func guardsOf(lock clients.Info) string {
	fits := func(guard string) bool { return workloads.Guard(guard).Lacks(lock) == "" }
	return strings.Join(slices.DeleteFunc(workloads.Guards(), func(guard string) bool { return !fits(guard) }), ", ")
}

// serversOf says how many servers there are, and what can be chosen of them.
func serversOf(servers clusters.Spec, anyServer bool) string {
	if servers.Nodes == 0 {
		return "none"
	}
	text := fmt.Sprint(servers.Nodes)
	if len(servers.Sizes) > 0 {
		text += ", or --nodes " + either(servers.Sizes)
	}
	if anyServer {
		text += "; --pin ties workers to one each"
	}
	if versions := servers.AllVersions(); len(versions) > 0 {
		text += "; --version " + either(versions)
	}
	return text
}

// either lists what there is to choose from.
func either[T any](values []T) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, " or ")
}

// faultItems is the table of faults and clusters: on whose servers and with whose
// workers each is supported, and why not on the others.
func faultItems() (items []item) {
	for _, kind := range nemesis.Kinds() {
		var servers, workers possibilities
		for _, spec := range clusters.Table() {
			can := kind.Support(spec)
			if spec.Nodes > 0 {
				servers.add(spec.Name, can.Servers)
			}
			workers.add(spec.Name, can.Workers)
		}
		items = append(items, item{kind.Name, []string{
			kind.Summary, "target by default: " + kind.Target,
			"servers: " + servers.String(), "workers: " + workers.String(),
		}})
	}
	return append(items, item{"targets", []string{targetsHelp}})
}

// targetsHelp says whom a fault can be aimed at.
const targetsHelp = "after a colon, as in pause:leader or \"kill:one worker\": holder, waiter, leader, follower, one, minority, " +
	"majority, all (of the servers, or with worker or workers after it of those), halves, ring, bridge, or names, as in n1 or w2"

// possibilities groups clusters by why a fault is not supported on them.
type possibilities struct {
	can     []string
	reasons []string            // in the order of their first cluster
	cannot  map[string][]string // by reason
	refused int
}

func (p *possibilities) add(cluster string, why error) {
	if why == nil {
		p.can = append(p.can, cluster)
		return
	}
	if p.cannot == nil {
		p.cannot = make(map[string][]string)
	}
	reason := why.Error()
	if p.cannot[reason] == nil {
		p.reasons = append(p.reasons, reason)
	}
	p.cannot[reason] = append(p.cannot[reason], cluster)
	p.refused++
}

// String lists whichever are fewer.
func (p *possibilities) String() string {
	if p.refused == 0 {
		return "all"
	}
	if len(p.can) == 0 && len(p.reasons) == 1 {
		return "no: " + p.reasons[0]
	}
	var not []string
	for _, reason := range p.reasons {
		not = append(not, fmt.Sprintf("%s (%s)", strings.Join(p.cannot[reason], ", "), reason))
	}
	if p.refused < len(p.can) {
		return "all but " + strings.Join(not, "; ")
	}
	return strings.Join(p.can, ", ") + "; not " + strings.Join(not, "; ")
}

func workloadItems() (items []item) {
	for _, workload := range workloads.Table() {
		items = append(items, item{workload.Name, []string{workload.Summary}})
	}
	return items
}

func guardItems() (items []item) {
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
		locks := "all"
		switch {
		case len(without) > len(with):
			locks = strings.Join(with, ", ")
		case len(without) > 0:
			locks = "all but " + strings.Join(without, ", ")
		}
		items = append(items, item{name, []string{"refuses " + refused(guard), "locks: " + locks}})
	}
	return items
}

// refused is what the resource refuses under a guard, in words; "" for one that is not known.
func refused(guard workloads.Guard) string {
	return map[workloads.Guard]string{
		workloads.NoGuard:        "nothing",
		workloads.Fence:          "a read or write with a fencing token lower than the highest seen in either",
		workloads.FenceWrites:    "a write with a fencing token lower than the highest seen in a write: a known mistake",
		workloads.Ask:            "a read or write whose grant the lock service, asked at that moment, does not have on record as the holder",
		workloads.Database:       "nothing itself: the data are in the lock's own database, and reached by the connection that has the lock",
		workloads.CompareAndSet:  "a write computed from a version that is no longer the current one",
		workloads.IdempotencyKey: "a write of an element that was written before: of the workload jobs, a job that is done",
		workloads.Match:          "a write, if another attempt has read since its own did: a read leaves its attempt's unique value at the resource, and a write must find it there",
	}[guard]
}
