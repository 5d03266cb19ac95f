package guide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockcheck/clients"
)

// ofKin says what broke locks that end by the same rule: on the same servers by the same clock,
// or with a connection, if that counts. It is no evidence of this one, but who chooses it should know.
func (e Evidence) ofKin(lock, guard string, counts func(clients.Info, Class) bool) []string {
	info, known := infoOf(lock)
	if !known {
		return nil
	}
	var order []string
	kin := make(map[string][]string) // by what broke them
	for _, other := range e.Locks() {
		theirs, is := infoOf(other)
		if !is || !kinship(lock, other, info, theirs) {
			continue
		}
		what := e.brokeKin(lock, other, guard, func(c Class) bool { return counts(info, c) })
		if what == "" {
			continue
		}
		if len(kin[what]) == 0 {
			order = append(order, what)
		}
		kin[what] = append(kin[what], other)
	}
	for i, what := range order {
		others, end := kin[what], "ends"
		if len(others) > 1 {
			end = "end"
			what = strings.NewReplacer("was ", "were ", "by itself", "by themselves").Replace(what)
		}
		order[i] = fmt.Sprintf("%s, which %s by the same rule, %s", strings.Join(others, ", "), end, what)
	}
	return order
}

// brokeKin says in words how the other lock broke where this one did not as badly; "" if in no way
// that counts.
func (e Evidence) brokeKin(lock, other, guard string, counts func(Class) bool) string {
	var all []string
	for _, class := range []Class{ByLock, ByExpiry, Late} {
		var faults []string
		for _, fault := range e.faultsOf(other, guard) {
			worst, worse := e.worseOfKin(lock, other, fault, guard)
			if !worse || worst.Class != class || !counts(class) {
				continue
			}
			// A case is named once, not under each fault that it is a case of.
			if under := worst.under(cmp.Or(worst.Case, fault)); !slices.Contains(faults, under) {
				faults = append(faults, under)
			}
		}
		if i := slices.Index(faults, None); i >= 0 {
			all, faults = append(all, kinWords(class)+" without any fault"), slices.Delete(faults, i, i+1)
		}
		if len(faults) > 0 {
			all = append(all, kinWords(class)+" under "+strings.Join(faults, ", "))
		}
	}
	return strings.Join(all, ", and ")
}

func kinWords(class Class) string {
	if class == Late || class == ByLock {
		return brokenWords(class)
	}
	return "was " + brokenWords(class)
}

// kinship says whether what broke the other lock says something of this one.
func kinship(lock, other string, info, theirs clients.Info) bool {
	return other != lock && theirs.Naive == "" && !strings.ContainsAny(other, useSign+"+") && related(info, theirs)
}

// worseOfKin is how the other lock broke under a fault, if that is worse than what is known of
// this one.
func (e Evidence) worseOfKin(lock, other, fault, guard string) (Group, bool) {
	theirs, broken := e.Cell(other, fault, guard).Worst()
	ours, also := e.Cell(lock, fault, guard).Worst()
	return theirs, broken && (!also || theirs.Class.severity() < ours.Class.severity())
}

// brokenKin lists the locks that end by the same rule and failed by themselves where this one
// held.
func (e Evidence) brokenKin(lock, fault, guard string) []string {
	info, known := infoOf(lock)
	if !known {
		return nil
	}
	var kin []string
	for _, other := range e.Locks() {
		theirs, is := infoOf(other)
		if !is || !kinship(lock, other, info, theirs) {
			continue
		}
		if worst, worse := e.worseOfKin(lock, other, fault, guard); worse && worst.Class == ByLock {
			if under := worst.under(cmp.Or(worst.Case, fault)); under != fault {
				other += " (under " + under + ")"
			}
			kin = append(kin, other)
		}
	}
	return kin
}

// related says whether two locks end by the same rule.
func related(a, b clients.Info) bool {
	if inDatabase(a) || inDatabase(b) {
		return inDatabase(a) && inDatabase(b) && a.Clock == b.Clock
	}
	return a.TTL > 0 && b.TTL > 0 && kindOf(a.Servers) == kindOf(b.Servers) && a.Clock == b.Clock
}

// kindOf are the servers whose rules others have copied.
func kindOf(servers string) string {
	if servers == "valkey" {
		return "redis"
	}
	return servers
}

func inDatabase(info clients.Info) bool {
	return info.TTL == 0 && slices.Contains(databases[:], info.Servers)
}

// losesToo says whether what broke a lock of the same kin may lose data of this one. Each lock
// with a lease can be used after it, which its own runs show.
func losesToo(info clients.Info, class Class) bool {
	return class == ByLock || class == ByExpiry && info.TTL == 0
}

// breaksToo adds what kept others waiting.
func breaksToo(info clients.Info, class Class) bool { return losesToo(info, class) || class == Late }
