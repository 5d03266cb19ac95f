package reports

import (
	"fmt"
	"strings"
)

// guideTerm is a word of the guide and what it means there.
type guideTerm struct{ Word, Meaning string }

// Terms that both the advice and the tables use.
var (
	withTerm  = guideTerm{"with", "another fault that was in force, too, each time; no run shows that it breaks without that."}
	casesTerm = guideTerm{"briefly, partly, back, among servers", "the fault was over before the lock could end by itself, by its lease or the end of its connection; it kept some of the servers out of reach; it set a clock back; it cut servers off from each other, not from their clients."}
)

// cellTerms are the words of the tables by lock and fault.
var cellTerms = [...]guideTerm{
	{guideBroken, "the lock gave itself to two, or let a wrong release through."},
	{"used after expiry", "a holder went on after its lease, or of a lock without one its connection, had ended. No lock prevents that of a holder that is stopped: it needs a guard, or work that may be done twice. One that is cut off can give up in time, as the client of zookeeper does."},
	{"written without the lock", "a worker ignored that its request failed."},
	{"token out of order", "a fencing token did not increase, and nothing else was violated; the page of the lock says why."},
	{"stuck", "nothing was lost, but nobody was granted the lock again for much longer than its rule says, or ever; the page of the lock says which."},
	{guideLate, "nothing was lost, but a moved clock kept the lock with a dead or silent holder for much longer than its lease and all that its rule adds to that."},
	{"in n of m runs", "of the experiment that is named, the worst of the cell, alone; n broke as the cell says, others may have broken less badly. In brackets is what it did otherwise than the lock is usually used."},
	withTerm,
	{"which ends by the same rule", "a lock on servers of the same kind whose clock ends its lease, or one that ends with a connection, too. Its run may have been another experiment, which this lock was not put to."},
	{"held", "in all runs that tell. Behind a guard: nothing was lost, though two may have held the lock at once. Up to so many of such runs may break it all the same: the upper end of the exact 95 % interval of 0 of that many, rounded up; of one run 98 %."},
	{"too short to tell", "it held, but could hardly do otherwise: who is kept from the servers, by a cut or because they fail, works on, and each was done before the lock could pass on by its lease, lock delay, or the end of its connection. Under a fault of servers, which may forget a lock, work of the usual 60 ms at most is always too short. This counts as not tried."},
	{"not tried", "no run tells. Not every experiment was made with each lock, so rows differ by that, too; the last column has only what broke. A lock that no table of a guard has was not tried behind it, or lacks what the guard needs: \"lockcheck list lock NAME\" says which guards it can have."},
	{"not supported", "lockcheck cannot do that to this lock. It does not say that it cannot happen, unless there is nothing to which it could: a leader where there is one server."},
	{"naive", "the lock shows a mistake that people make, which need not be one that any fault of these tables shows."},
	casesTerm,
	{"behind a guard", "the run had a guard that refused what a second holder did; the lock was given away all the same."},
	{"@, +", "stand before a version of the servers that is not the usual one, and before an option of the lock."},
	{"renewed", "locks of Redis, Valkey and PostgreSQL that have a lease are renewed only where it says so; clients of etcd, ZooKeeper and Consul renew by themselves."},
}

// guardTerms are guards: what the resource checks at each access.
var guardTerms = [...]guideTerm{
	{"guard fence", "that the token is not older than one that the resource has seen."},
	{"guard fence-writes", "the same, at writes alone."},
	{"guard cas", "that nothing was written since the worker read."},
	{"guard match", "that the last reader writes."},
	{"guard ask", "by asking the service, whether the worker still holds the lock."},
	{"guard database", "nothing: the data are in the database that is the lock, and written through the connection that holds it."},
	{"guard idempotency-key", "that the same work is not done twice."},
}

// fitTerms are the words of the advice by need.
var fitTerms = [...]guideTerm{
	{"held in", "runs without a break, and under how many of the settings that the need is about. To have no fault is one of them, but for failover, which is about one fault."},
	{"not ruled out", "how many of such runs may break it all the same: the upper end of the 95 % interval for the setting with the fewest runs that held, rounded up."},
	{"done twice", "two held it at once, by the lock's fault or because a holder went on after its lease."},
	withTerm, casesTerm,
	{"the usual faults", "the columns of the tables below, and for failover the death of a whole machine, crash:holder."},
	{"in long sections", "with work that goes on until the lock could pass on. Shorter runs do not count as held: see \"too short to tell\" below."},
	{"ruled out", "as it was tried, for the first reason found."},
	{"not listed", "naive locks, those whose program ignores answers, those that lockcheck serves itself, and other versions of servers (after an @)."},
	{"at the longest, p50", "times of runs, most of them made side by side with others: an idle machine may take less."},
	{"the order", "the fewest settings that did not hold come first, then it is that of names: no ranking."},
}

// speedTerms are the columns of the table of figures.
var speedTerms = [...]guideTerm{
	{"acquire", "without faults and without a guard, by a worker that is alone. Empty where no such run was made: where others wait at times, it is the fast acquires that meet nobody."},
	{"failover", "from the stop, cut or end of a holder to the next grant, where that came before the holder was back: the median of the runs (of an even number the longer of the two in the middle), and the longest of all. Of runs behind any guard or none, for no guard changes how soon a lock passes on, with the lease that most had, in which no clock was moved. Who is stopped or cut off counts only if that outlasts the lease and the grace period. Of a lock without a lease only holders whose process died count; it passes on from one that is cut off, too, when the connection is given up."},
	{"lost when stopped", "of the updates that were acknowledged in all runs without a guard and with stopped holders, and how many stops these had. They are different experiments, with different leases: they show that a lock loses updates then, and not which one loses more."},
	{"share lost", "of all updates of these runs, so that it is the smaller, the longer they went on without a stop. The interval is over the faults or runs that it names, each taken for one draw that weighs as many updates as it has; over runs where these seem to differ by more than their faults explain, which few runs do not tell. Where nothing was lost it is one-sided."},
}

// guideTerms are the words of the tables and those of guards.
func guideTerms() []guideTerm {
	return append(cellTerms[:len(cellTerms):len(cellTerms)], guardTerms[:]...)
}

func markdownTerms(b *strings.Builder, terms []guideTerm) {
	for _, t := range terms {
		fmt.Fprintf(b, "- **%s**: %s\n", markdown(t.Word), markdown(t.Meaning))
	}
	b.WriteString("\n")
}
