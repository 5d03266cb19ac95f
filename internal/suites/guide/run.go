// Package guide collects what runs have shown of each lock under each fault. The worst result known counts,
// whatever came later.
//
// Its evidence has one Run per run and is embedded from a file of the repository. A run is judged by what it
// did, whatever its name: the control of a reproduction is evidence only about its own lock, faults and
// guard.
package guide

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/stats"
)

// Run is what one run has shown.
type Run struct {
	ID        string `json:"id"`   // history.Header.Run
	When      string `json:"when"` // RFC 3339
	Lockcheck string `json:"lockcheck"`

	// Lock as a test names it, followed by "@" and the version of its servers if that is not the default
	// version.
	Lock     string            `json:"lock"`
	Servers  int               `json:"servers,omitempty"`
	Versions map[string]string `json:"versions,omitempty"` // of servers and client modules
	Workload string            `json:"workload"`
	Guard    string            `json:"guard"`
	Lease    time.Duration     `json:"lease_ns,omitempty"` // 0 for a lock that never expires
	Seed     uint64            `json:"seed"`
	// Experiment names a known test, such as "repro/redlock-clock-jump/control" or, for a trial,
	// "attack/clock-stepped"; "" for random faults.
	Experiment string `json:"experiment,omitempty"`
	// Setup lists in words where the run differed from the normal use of the lock.
	Setup []string `json:"setup,omitempty"`
	// Faults that the run asked for, by canonical name.
	Faults []Fault `json:"faults,omitempty"`

	Verdict  checker.Verdict    `json:"verdict"`
	Sentence string             `json:"sentence"`
	Violated []checker.Property `json:"violated,omitempty"` // required properties only
	// DoubleGrants and UsesAfterExpiry count overlapping holders by class.
	DoubleGrants    int64 `json:"double_grants,omitempty"`
	UsesAfterExpiry int64 `json:"uses_after_expiry,omitempty"`
	// Causes counts the causes of all violations, see checker.Finding.
	Causes map[string]int64 `json:"causes,omitempty"`
	// Updates is nil if the run acknowledged no update.
	Updates *Updates `json:"updates,omitempty"`

	// Acquire is how long uncontended acquires took in a run without faults; nil for other runs.
	Acquire *Acquire `json:"acquire,omitempty"`
	// Failover is how long the lock took to pass on from holders that were paused, cut off or killed; nil if
	// there were none.
	Failover *Failover `json:"failover,omitempty"`

	// Section is the longest section that the run asked for; 0 if unknown.
	Section time.Duration `json:"section_ns,omitempty"`
	// Renewed says that workers were asked to renew their leases.
	Renewed bool `json:"renewed,omitempty"`
	// LockDelay is the delay that the run set; nil for the lock's own delay.
	LockDelay *time.Duration `json:"lock_delay_ns,omitempty"`

	// Of is how many runs of an experiment the entry sums up, and Met how many of them gave the result of the
	// entry; 0 for a single run. Trials are known only from such sums, and so are runs that are no longer stored.
	Of  int64 `json:"of,omitempty"`
	Met int64 `json:"met,omitempty"`

	// Line repeats the run; "" for a built-in experiment, see Command.
	Line string `json:"line,omitempty"`

	// refused: the guard refused accesses that would have broken the run.
	refused bool
}

// unguarded turns a run behind a guard into evidence about the lock alone: two workers held the lock at once.
// It is false if the run shows no overlap, or if it is unclear which fault caused the overlap.
func (r Run) unguarded() (Run, bool) {
	proven := 0
	for _, f := range r.Faults {
		proven += boolToInt(f.Met > 0)
	}
	overlapped := r.DoubleGrants+r.UsesAfterExpiry > 0
	if r.Guard == history.GuardNone || !overlapped || proven != len(r.Faults) || proven > 1 || r.outlastsLease() {
		return r, false
	}
	r.Verdict, r.Violated, r.Causes, r.refused = checker.Violation, []checker.Property{checker.MutualExclusion}, nil, true
	r.Setup = append(slices.Clone(r.Setup), "behind a guard")
	return r, true
}

// Fault is one kind of fault at one kind of target.
type Fault struct {
	Name string `json:"name"` // see Normal
	// Asked is how often the fault was requested. Met is how often it was both proven by its target and
	// exercised; only then does it count.
	Asked int `json:"asked"`
	Met   int `json:"met"`
}

// Updates sums up what happened to acknowledged updates, see checker.UpdateSummary.
type Updates struct {
	Acknowledged int64 `json:"acknowledged"`
	Lost         int64 `json:"lost"`
	// Over says what Units are: independent parts of the run.
	Over  string `json:"over,omitempty"`
	Units units  `json:"units,omitempty"`
}

// units are encoded as one flat list, lost and acknowledged alternating, because they are most of a run's
// data.
type units []stats.Count

func (u units) MarshalJSON() ([]byte, error) {
	flat := make([]int64, 0, 2*len(u))
	for _, c := range u {
		flat = append(flat, c.K, c.N)
	}
	return json.Marshal(flat)
}

func (u *units) UnmarshalJSON(text []byte) error {
	var flat []int64
	if err := json.Unmarshal(text, &flat); err != nil {
		return err
	}
	if len(flat)%2 != 0 {
		return errors.New("units: a count is cut off")
	}
	*u = nil
	for i := 0; i < len(flat); i += 2 {
		*u = append(*u, stats.Count{K: flat[i], N: flat[i+1]})
	}
	return nil
}

// Acquire has quantiles of N acquires.
type Acquire struct {
	N   int64         `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

// Failover sums up checker.FailoverSummary.
type Failover struct {
	Holders int64         `json:"holders"`
	Stuck   int64         `json:"stuck,omitempty"` // holders whose lock was never granted again
	Longest time.Duration `json:"longest_ns"`
}

// Entries in place of a fault.
const (
	// None means no fault.
	None = "none"
	// LongWork is work that takes longer than an unrenewed lease.
	LongWork = "work longer than the lease"
)

// Class says who or what is responsible for a break.
type Class string

const (
	// ByLock: the service granted the lock twice, or the client library misbehaved.
	ByLock Class = "by the lock"
	// ByExpiry: a holder continued after its lease had ended. No lease prevents that; a guard or a check is
	// needed.
	ByExpiry Class = "after expiry"
	// ByUse: the program wrote without the lock, because it ignored the answer to a request.
	ByUse Class = "by its use"
	// ByToken: a fencing token did not increase, and nothing worse was violated.
	ByToken Class = "by its token"
	// Stuck: nothing was lost, but no worker was granted the lock again.
	Stuck Class = "stuck"
	// Late: nothing was lost, but the lock passed on much later than its rule says.
	Late Class = "late"
)

// classes of breaks, the worst first.
var classes = [...]Class{ByLock, ByExpiry, ByUse, ByToken, Stuck, Late}

// severity is the rank of a class, 0 for the worst; -1 for no class.
func (c Class) severity() int { return slices.Index(classes[:], c) }

// Breaks says whether the run shows that the lock broke. A run that is undecided or broken itself shows
// nothing.
func (r Run) Breaks() bool { return r.Verdict == checker.Violation || r.passedOnLate() }

// endsWithConnection says whether a known lock lasts as long as its connection.
func endsWithConnection(lock string) bool {
	family, known := FamilyOf(lock)
	return known && (family.End == EndsConnection || family.End == EndsTransaction)
}

// Class classifies a run that breaks. A break without a cause that is known to be inherent counts against the
// lock.
func (r Run) Class() Class {
	switch {
	case r.refused && r.DoubleGrants == 0:
		return ByExpiry
	case r.passedOnLate():
		return Late
	case r.violatedOnly(checker.Liveness):
		return Stuck
	case r.violatedOnly(checker.Liveness, checker.FencingOrder):
		return ByToken
	}
	inherent, unlocked := false, r.Causes[checker.CauseUnlocked] > 0
	for _, cause := range checker.Causes() {
		if r.Causes[cause.Name] == 0 {
			continue
		}
		// A lock without a lease ends with its connection, and so with its server. The service did not grant
		// it twice.
		if !cause.Inherent && !(cause.Name == checker.CauseServerLost && endsWithConnection(r.Lock)) {
			return ByLock
		}
		inherent = true
	}
	ownRules := []checker.Property{checker.NoExpiredGrant, checker.NoWrongRelease, checker.NoWrongRenewal, checker.FencingOrder}
	rule := slices.ContainsFunc(ownRules, func(p checker.Property) bool { return slices.Contains(r.Violated, p) })
	if r.DoubleGrants > 0 || rule || !inherent {
		return ByLock
	}
	if unlocked && r.UsesAfterExpiry == 0 {
		return ByUse
	}
	return ByExpiry
}

// violatedOnly says whether some of these properties were violated, and no other.
func (r Run) violatedOnly(these ...checker.Property) bool {
	return len(r.Violated) > 0 && !slices.ContainsFunc(r.Violated, func(p checker.Property) bool { return !slices.Contains(these, p) })
}

// Control says whether the run was the control of a reproduction or claim.
func (r Run) Control() bool { return strings.HasSuffix(r.Experiment, "/control") }

// fault returns a fault of the run; false if the run did not ask for it.
func (r Run) fault(name string) (Fault, bool) {
	i := slices.IndexFunc(r.Faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return r.Faults[i], true
}

// runsWithVerdict is the number of runs behind the entry that gave its verdict.
func (r Run) runsWithVerdict() int64 {
	if r.Of == 0 {
		return 1
	}
	return r.Met
}

// conclusiveRuns is the number of conclusive runs behind the entry. If the entry sums up breaks, the other runs are
// conclusive too. If it sums up runs that held, the other runs were inconclusive.
func (r Run) conclusiveRuns() int64 {
	if r.Of > 0 && r.Breaks() {
		return r.Of
	}
	return r.runsWithVerdict()
}

// products are the servers whose version represents the run, in order of priority.
var products = [...]string{"kube-apiserver", "postgres", "etcd", "zookeeper", "consul", "nats", "mariadb", "memcached", "versitygw", "valkey", "redis"}

// Version names the servers of the run and their version, such as "etcd 3.6.16"; "" for a lock without
// servers.
func (r Run) Version() string {
	for _, product := range products {
		if words := strings.Fields(r.Versions[product]); len(words) > 0 {
			version, _, _ := strings.Cut(words[0], "-")
			return product + " " + strings.TrimPrefix(version, "v")
		}
	}
	return ""
}

// releaseLine is the release line of a version. Releases of one line differ by fixes, and a break in one counts
// against all. PostgreSQL numbers its lines with one number, other products with two.
func releaseLine(version string) string {
	product, number, _ := strings.Cut(version, " ")
	parts := strings.Split(number, ".")
	if product == "postgres" {
		return product + " " + parts[0]
	}
	return product + " " + strings.Join(parts[:min(2, len(parts))], ".")
}
