package conformance

import (
	"context"

	"lockcheck/clients"
)

// rule is a rule of the protocol.
type rule struct {
	name  string
	tries string // what is tried, in words
	says  string // the sentence of docs/protocol.md
	// needs are the rules without which a try would show nothing.
	needs []string
	// unless returns why the rule does not apply to a lock; "" if it applies. nil: it applies to all locks.
	unless func(clients.Definition) string
	// do tries the rule; nil for a rule that holds throughout the check. The error is a *failureError, a
	// *skippedError, errSlow or an error of package protocol. Any other error says why the rule could not be
	// tried.
	do func(context.Context, *session) error
	// asBefore: the rule examines the exchange of the previous rule.
	asBefore bool
}

// firstRule is the rule without which no other can be tried.
const firstRule = "hello"

func (r rule) inapplicable(d clients.Definition) string {
	if r.unless == nil {
		return ""
	}
	return r.unless(d)
}

// Sentences that belong to several rules.
const (
	saysBusy     = "With `wait_ms` 0 the answer is `busy` if somebody else has the lock"
	saysNotHeld  = "`not_held` says that the attempt does not have the lock, by the service's word, and `ok` to `release` that it had it until then."
	saysRenew    = "**`renew`** extends the lease by `ttl_ms` from now"
	saysNoLonger = "`not_held` says that the attempt does not have the lock, by the service's word"
	saysRelease  = "**`release`** gives the lock back"
)

// rules lists the rules that are tried, in order.
func rules() []rule {
	return []rule{
		{name: firstRule, tries: "three clients begin", says: "The client connects and answers within 30 s", do: hello},
		{name: "version", tries: "the protocol is that of the check", says: "`protocol` is 1.", needs: []string{firstRule}, do: version, asBefore: true},
		{name: "clock", tries: "the clock is CLOCK_MONOTONIC", says: "It must fall between the sending of the request and the arrival of the answer", needs: []string{firstRule, "version"}, do: clock, asBefore: true},
		{name: "acquire", tries: "a free lock is granted", says: "**`acquire`** makes one attempt.", needs: []string{firstRule, "version"}, do: holding(acquireFree)},
		{name: "busy", tries: "a second client is kept out", says: saysBusy, needs: []string{"acquire"}, do: contended(busy)},
		{name: "until", tries: "the validity ends with the lease, and not after it", says: "It is not later than the lease from the call to the service", needs: []string{"acquire", "clock"}, unless: noLease, do: until},
		{name: "release", tries: "the holder gives the lock back", says: saysRelease, needs: []string{"acquire"}, do: holding(release)},
		{name: "released", tries: "another client gets the lock after the release, and the first is kept out", says: saysRelease, needs: []string{"release", "busy"}, do: contended(released)},
		{name: "release-twice", tries: "a second release is not ok", says: saysNotHeld, needs: []string{"release"}, do: holding(releaseTwice)},
		{name: "release-unknown", tries: "the release of no grant frees nobody's lock", says: saysNotHeld, needs: []string{"release", "busy"}, do: contended(releaseUnknown)},
		{name: "older-attempt", tries: "a second release of an earlier attempt does not free the current one", says: "Nothing that is sent of one attempt frees the lock of another.", needs: []string{"released"}, do: contended(olderAttempt)},
		{name: "expiry", tries: "a lease ends in time, and not before", says: "`ttl_ms` is the lease to ask for", needs: []string{"acquire", "busy"}, unless: noEnd, do: contended(expiry)},
		{name: "release-expired", tries: "a late release frees nobody's lock", says: saysNotHeld, needs: []string{"expiry", "release"}, unless: noLease, do: releaseExpired},
		{name: "renew", tries: "a renewed lease lasts", says: saysRenew, needs: []string{"acquire", "busy"}, unless: noRenewal, do: contended(renew)},
		{name: "release-renewed", tries: "one release frees a lock that was renewed twice", says: saysRelease, needs: []string{"released", "renew"}, unless: noRenewal, do: contended(releaseRenewed)},
		{name: "renewed-expiry", tries: "a renewed lease ends in time, and not before", says: saysRenew, needs: []string{"expiry", "renew"}, unless: noRenewal, do: contended(renewedExpiry)},
		{name: "renew-expired", tries: "an expired lease is not renewed, whoever has the lock now", says: saysNoLonger, needs: []string{"expiry", "renew"}, unless: noRenewal, do: renewExpired},
		{name: "tokens", tries: "tokens of one lock grow", says: "`token` is the fencing token, a positive integer that grows with each grant of a key", needs: []string{"released", "expiry"}, unless: noTokens, do: tokens},
		{name: "holds", tries: "the service tells who has the lock", says: "**`holds`** asks the service whether the attempt has the lock, and is sent to clients that made no attempt themselves.", needs: []string{"released"}, unless: noHolds, do: holds},
		{name: "wait", tries: "an attempt waits for its turn", says: "otherwise the client may wait that long for its turn", needs: []string{"released"}, unless: noQueue, do: contended(wait)},
		{name: "cancel", tries: "an acquire that is cancelled is answered", says: "That acquire still must be answered", needs: []string{"released"}, do: contended(cancelled)},
		{name: "pipelining", tries: "requests that come at once are answered", says: "A request may come before the one before it is answered.", needs: []string{"release"}, do: pipelining},
		{name: "work", tries: "work takes its time", says: "**`work`** lets `ms` milliseconds pass inside the client", needs: []string{"acquire"}, unless: noWork, do: holding(work)},
		{name: "unknown-fields", tries: "fields of a later version are ignored", says: "Unknown fields are ignored, on both sides.", needs: []string{"release"}, do: unknownFields},
		{name: "unknown-operation", tries: "an operation of a later version is refused", says: "An operation that the client does not know is answered by `error` with the effect `none`.", needs: []string{"acquire"}, do: unknownOperation},
		{name: "end", tries: "the client ends with its input", says: "At the end of its input the client exits within a second", needs: []string{firstRule}, do: end},
		{name: "nothing-left", tries: "and leaves no process", says: "What it started ends with it.", needs: []string{firstRule}, do: nothingLeft},
	}
}

// always lists the rules that hold throughout the check.
func always() []rule {
	return []rule{
		{name: "lines", tries: "lines with a brace are of the protocol", says: "Each line is one JSON object, in UTF-8, at most 1 MiB long."},
		{name: "answers", tries: "each request has one answer of its kind", says: "Each is answered once, by a line with the same `id`"},
		{name: "until-needs-now", tries: "who says until has said now", says: "A client that never sends `until` may leave it out."},
		{name: "until-time", tries: "until is a time of CLOCK_MONOTONIC", says: "it is no earlier than its request was sent, and no later than a day beyond the lease"},
		{name: "events", tries: "events are about locks that are held", says: "events about locks that it does not hold are 10,000 at most"},
		{name: "stays", tries: "the client does not end by itself", says: "the end of the client comes after that of its input"},
	}
}

// Reasons why rules do not apply.

func noLease(d clients.Definition) string {
	switch {
	case d.TTL == 0:
		return "the lock has no lease"
	case d.Session:
		return "the client keeps the lease alive (session)"
	}
	return ""
}

func noEnd(d clients.Definition) string {
	if d.TTL == 0 {
		return "the lock has no lease"
	}
	return ""
}

func noRenewal(d clients.Definition) string {
	if why := noLease(d); why != "" {
		return why
	}
	return unlessTrue(d.Renew, "renew")
}

func noTokens(d clients.Definition) string { return unlessTrue(d.Tokens, "tokens") }
func noHolds(d clients.Definition) string  { return unlessTrue(d.Ask, "holds") }
func noQueue(d clients.Definition) string  { return unlessTrue(d.Queues, "queues") }
func noWork(d clients.Definition) string   { return unlessTrue(d.Works, "work") }

func unlessTrue(there bool, key string) string {
	if there {
		return ""
	}
	return "the lock is not described with " + key
}
