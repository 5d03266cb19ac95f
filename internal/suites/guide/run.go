// Package guide has what runs have shown of each lock under each fault, the worst that is
// known before all that came later.
//
// Its evidence is one Run for each run, in a file of the repository that is part of the
// program. A run is judged by what it did, whatever it was called: the control of a
// reproduction is evidence of its own lock, faults and guard alone.
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

	// Lock as a test names it, with "@" and the version of its servers if that is not the
	// usual one.
	Lock     string            `json:"lock"`
	Servers  int               `json:"servers,omitempty"`
	Versions map[string]string `json:"versions,omitempty"` // of servers and client modules
	Workload string            `json:"workload"`
	Guard    string            `json:"guard"`
	Lease    time.Duration     `json:"lease_ns,omitempty"` // 0 for a lock that never ends by itself
	Seed     uint64            `json:"seed"`
	// Experiment names the test if it is one that is known, as in
	// "repro/redlock-clock-jump/control" or, of a trial, "attack/clock-stepped"; "" for random faults.
	Experiment string `json:"experiment,omitempty"`
	// Setup is what it did otherwise than the lock is usually used, in words.
	Setup []string `json:"setup,omitempty"`
	// Faults that it asked for, by name.
	Faults []Fault `json:"faults,omitempty"`

	Verdict  checker.Verdict    `json:"verdict"`
	Sentence string             `json:"sentence"`
	Violated []checker.Property `json:"violated,omitempty"` // of those required
	// DoubleGrants and UsesAfterExpiry are overlapping holders by their class.
	DoubleGrants    int64 `json:"double_grants,omitempty"`
	UsesAfterExpiry int64 `json:"uses_after_expiry,omitempty"`
	// Causes of all violations, see checker.Finding.
	Causes map[string]int64 `json:"causes,omitempty"`
	// Updates is nil for a run of which none was acknowledged.
	Updates *Updates `json:"updates,omitempty"`

	// Acquire is how long it took to get the lock while nobody else wanted it, of a run
	// without faults; nil for others.
	Acquire *Acquire `json:"acquire,omitempty"`
	// Failover is how long the lock took to pass on from holders that were stopped, cut off
	// or killed; nil if there was none of them.
	Failover *Failover `json:"failover,omitempty"`

	// Section is the longest that a holder's work was asked to take; 0 where nothing is known.
	Section time.Duration `json:"section_ns,omitempty"`
	// Renewed says that workers were asked to renew their leases.
	Renewed bool `json:"renewed,omitempty"`
	// LockDelay is what the run set it to; nil for the delay of the lock.
	LockDelay *time.Duration `json:"lock_delay_ns,omitempty"`

	// Of is how many runs of one experiment the line sums up, of which Met gave what the line says;
	// 0 for a single run. Runs that are no longer stored are known from the track record only.
	Of  int64 `json:"of,omitempty"`
	Met int64 `json:"met,omitempty"`

	// Line repeats the run; "" for an experiment that is built in, see Command.
	Line string `json:"line,omitempty"`

	// refused: the guard refused accesses that would have broken the run.
	refused bool
}

// unguarded is a run behind a guard as what it shows of the lock alone, which knows of no guard:
// two held it at once. It is false of a run that shows no such thing, or not by which fault.
func (r Run) unguarded() (Run, bool) {
	proven := 0
	for _, f := range r.Faults {
		proven += one(f.Met > 0)
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
	// Asked is how often it was tried, Met how often of those it was proven by its target and met
	// somebody: only then it counts.
	Asked int `json:"asked"`
	Met   int `json:"met"`
}

// Updates sums up what became of acknowledged updates, see checker.UpdateSummary.
type Updates struct {
	Acknowledged int64 `json:"acknowledged"`
	Lost         int64 `json:"lost"`
	// Over says what Units are: independent parts of the run.
	Over  string `json:"over,omitempty"`
	Units units  `json:"units,omitempty"`
}

// units are written as one flat list, lost and acknowledged in turn: they are most of a run.
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
	Stuck   int64         `json:"stuck,omitempty"` // of those, whose lock nobody was granted again
	Median  time.Duration `json:"median_ns"`
	Longest time.Duration `json:"longest_ns"`
}

// Names of what is no fault of lockcheck's own.
const (
	// None is no fault at all.
	None = "none"
	// LongWork is work that takes longer than a lease which nobody renews.
	LongWork = "work longer than the lease"
)

// Class says whose fault it is that a lock was broken.
type Class string

const (
	// ByLock: the service gave the lock away twice, or its client did wrong.
	ByLock Class = "by the lock"
	// ByExpiry: a holder went on after its lease had ended. No lease prevents that; a guard
	// or a check is needed.
	ByExpiry Class = "after expiry"
	// ByUse: it was written without the lock, for the answer to a request was ignored.
	ByUse Class = "by its use"
	// ByToken: a fencing token did not increase, and nothing else was violated.
	ByToken Class = "by its token"
	// Stuck: nothing was lost, but nobody was granted the lock again.
	Stuck Class = "stuck"
	// Late: nothing was lost, but the lock passed on much later than its rule says.
	Late Class = "late"
)

// severity is the order of classes, the worst first.
func (c Class) severity() int {
	return slices.Index([]Class{ByLock, ByExpiry, ByUse, ByToken, Stuck, Late}, c)
}

// Breaks says whether the run shows the lock broken; one that is undecided or broken itself
// shows nothing.
func (r Run) Breaks() bool { return r.Verdict == checker.Violation || r.late() }

// endsWithConnection says of a lock that lockcheck knows whether it lasts as long as its connection.
func endsWithConnection(lock string) bool {
	family, known := FamilyOf(lock)
	return known && (family.End == EndsConnection || family.End == EndsTransaction)
}

// Class of a run that breaks; one without a cause that is known to be inherent is
// held against the lock.
func (r Run) Class() Class {
	switch {
	case r.refused && r.DoubleGrants == 0:
		return ByExpiry
	case r.late():
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
		// A lock without a lease ends with its connection, and so with its server: the service gave nothing away.
		if !cause.Inherent && !(cause.Name == checker.CauseServerLost && endsWithConnection(r.Lock)) {
			return ByLock
		}
		inherent = true
	}
	ownRules := []checker.Property{checker.NoExpiredGrant, checker.NoWrongRelease, checker.FencingOrder}
	rule := slices.ContainsFunc(ownRules, func(p checker.Property) bool { return slices.Contains(r.Violated, p) })
	if r.DoubleGrants > 0 || rule || !inherent {
		return ByLock
	}
	if unlocked && r.UsesAfterExpiry == 0 {
		return ByUse
	}
	return ByExpiry
}

// violatedOnly says that some of these properties were violated, and no other.
func (r Run) violatedOnly(these ...checker.Property) bool {
	return len(r.Violated) > 0 && !slices.ContainsFunc(r.Violated, func(p checker.Property) bool { return !slices.Contains(these, p) })
}

// Control says whether the run was the control of a reproduction or claim.
func (r Run) Control() bool { return strings.HasSuffix(r.Experiment, "/control") }

// fault returns what became of a fault in the run; false if it was not asked for.
func (r Run) fault(name string) (Fault, bool) {
	i := slices.IndexFunc(r.Faults, func(f Fault) bool { return f.Name == name })
	if i < 0 {
		return Fault{}, false
	}
	return r.Faults[i], true
}

// shows is how many runs the line stands for that gave its verdict.
func (r Run) shows() int64 {
	if r.Of == 0 {
		return 1
	}
	return r.Met
}

// tells is how many runs the line stands for that say something. Of a sum of runs that broke the
// lock, those that did not are among them; of one that held, those are runs that said nothing.
func (r Run) tells() int64 {
	if r.Of > 0 && r.Breaks() {
		return r.Of
	}
	return r.shows()
}

// products are servers by which a version is named, those that make the difference first.
var products = [...]string{"kube-apiserver", "postgres", "etcd", "zookeeper", "consul", "nats", "mariadb", "memcached", "valkey", "redis"}

// Version names the servers of the run and their version, as in "etcd 3.6.16"; "" for a lock
// without servers.
func (r Run) Version() string {
	for _, product := range products {
		if words := strings.Fields(r.Versions[product]); len(words) > 0 {
			version, _, _ := strings.Cut(words[0], "-")
			return product + " " + strings.TrimPrefix(version, "v")
		}
	}
	return ""
}

// series is the release line of a version: releases of one line differ by repairs, and what breaks one is
// held against all. PostgreSQL numbers lines by one number, others by two.
func series(version string) string {
	product, number, _ := strings.Cut(version, " ")
	parts := strings.Split(number, ".")
	if product == "postgres" {
		return product + " " + parts[0]
	}
	return product + " " + strings.Join(parts[:min(2, len(parts))], ".")
}
