package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/internal/lockfile"
	"lockcheck/workloads"
)

// Locks lists lockcheck's own locks.
func Locks() (entries []Entry) {
	for _, lock := range clients.Table() {
		servers, _ := clusters.ByName(lock.Servers)
		entries = append(entries, Lock(lockfile.Lock{Info: lock, Servers: servers}))
	}
	return entries
}

// Lock describes one lock, lockcheck's or a user's.
func Lock(of lockfile.Lock) Entry {
	lock := of.Info
	details := []string{
		fmt.Sprintf("fencing token: %s; loss notification: %s", cmp.Or(lock.Token, "none"), lock.LossNotification),
		"depends on: " + lock.Clock,
		"lease: " + leaseOf(lock),
		fmt.Sprintf("renewed: %s; when taken: %s", renewalOf(lock), attemptOf(lock)),
		"guards: " + guardsOf(lock),
		"servers: " + serversOf(of.Servers, lock.AnyServer),
	}
	if lock.Permits {
		details = append(details, "permits: --permits, or 2 with --workload semaphore; 1 with other workloads")
	}
	set := strings.Split(lock.Name, "+")[1:]
	for _, o := range lock.Options {
		if slices.Contains(set, o.Name) {
			continue
		}
		details = append(details, fmt.Sprintf("option %s+%s: %s", lock.Name, o.Name, o.Adds))
	}
	return Entry{lock.Name, summaryOf(lock), details}
}

func summaryOf(lock clients.Info) string {
	summary := lock.Summary
	if lock.Library != "" {
		summary += ": " + lock.Library
	}
	if lock.Naive != "" {
		summary += " (naive: " + lock.Naive + ")"
	}
	return summary
}

// leaseOf describes the lease, and when the lock of a dead holder becomes free.
func leaseOf(lock clients.Info) string {
	switch {
	case lock.TTL == 0 && lock.Grace == 0:
		return "none: only a release frees the lock"
	case lock.TTL == 0:
		return fmt.Sprintf("none: the lock ends with its holder's process or connection, within %s", lock.Grace)
	}
	text := fmt.Sprintf("%s by default, at least %s; the lock of a dead holder is free after at most %s",
		lock.TTL, lock.MinTTL, lock.Effective(lock.TTL, lock.LockDelay))
	if lock.LockDelay > 0 {
		text += fmt.Sprintf(" (including a lock delay of %s)", lock.LockDelay)
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
		return "an attempt waits for the lock, without a timeout"
	case lock.Queues:
		return "an attempt waits for the lock"
	}
	return "an attempt is refused at once"
}

// guardsOf lists the guards that can be used with the lock.
func guardsOf(lock clients.Info) string {
	fits := func(guard string) bool { return workloads.Guard(guard).Lacks(lock) == "" }
	return strings.Join(slices.DeleteFunc(workloads.Guards(), func(guard string) bool { return !fits(guard) }), ", ")
}

// serversOf describes how many servers there are, and what a user can choose about them.
func serversOf(servers clusters.Spec, anyServer bool) string {
	if servers.Nodes == 0 {
		return "none"
	}
	text := fmt.Sprint(servers.Nodes)
	if len(servers.Sizes) > 0 {
		text += ", or --nodes " + either(servers.Sizes)
	}
	if anyServer {
		text += "; --pin ties each worker to one server"
	}
	if versions := servers.AllVersions(); len(versions) > 0 {
		text += "; --version " + either(versions)
	}
	return text
}

// either joins alternatives with "or".
func either[T any](values []T) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, " or ")
}
