package runs

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters/images"
	"lockcheck/internal/spelling"
	"lockcheck/workloads"
)

// checkValues refuses what the lock cannot do and values that make no sense, after filling in the defaults.
func (t *test) checkValues() error {
	t.fillIn()
	if err := t.checkPermits(); err != nil {
		return err
	}
	if err := t.checkReaders(); err != nil {
		return err
	}
	switch {
	case t.workload.Bars(t.guard()) != "":
		return BadFlag("guard", t.Guard, "lock %s %s (workload %s works with %s)", t.Lock, t.workload.Bars(t.guard()), t.Workload, guardsOf(t.workload))
	case t.guard().Lacks(t.info) != "":
		return BadFlag("guard", t.Guard, "lock %s %s (it works with %s)", t.Lock, t.guard().Lacks(t.info), namesOf(func(i clients.Info) bool { return t.guard().Lacks(i) == "" }))
	case t.Renew && t.info.Session:
		return BadFlag("renew", nil, "the client of lock %s renews its session by itself; omit --renew", t.Lock)
	case t.Renew && !t.info.Renew:
		return BadFlag("renew", nil, "lock %s cannot be renewed; omit --renew, or ask for a longer lease with --ttl", t.Lock)
	case t.AnyUse(func(u workloads.Use) bool { return u.ExitOnLoss }) && t.lock.Definition != nil:
		return BadFlag("exit-on-loss", nil, "the client of lock %s is your own program, which can exit by itself; omit --exit-on-loss", t.Lock)
	case t.exitsUnaware():
		return BadFlag("exit-on-loss", nil, "nothing notifies a holder of lock %s that it is lost; see --renew and --check-before-write", t.Lock)
	case !t.spec.HasVersion(t.ServerVersion):
		return BadFlag("version", t.ServerVersion, "for lock %s there is %s", t.Lock, alternatives(t.spec.AllVersions()))
	case !t.spec.HasSize(t.Nodes):
		return BadFlag("nodes", t.Nodes, "lock %s has %s servers", t.Lock, alternatives(t.spec.AllSizes()))
	case t.Pin && !t.info.AnyServer:
		return BadFlag("pin", nil, "a worker of lock %s needs all servers; omit --pin", t.Lock)
	case *t.LockDelay < 0:
		return BadFlag("lock-delay", t.LockDelay, "it must not be negative; 0 means none")
	case *t.LockDelay > 0 && t.info.LockDelay == 0:
		return BadFlag("lock-delay", t.LockDelay, "lock %s has no lock delay; omit --lock-delay", t.Lock)
	case t.Wait < 0:
		return BadFlag("wait", t.Wait, "it must not be negative")
	case t.Wait > 0 && t.info.Endless:
		return BadFlag("wait", t.Wait, "an attempt on lock %s waits until the lock is free; it has no timeout, so omit --wait", t.Lock)
	case t.Concurrency < 1:
		return BadFlag("concurrency", t.Concurrency, "at least 2 workers are needed to compete for the lock; write --concurrency 2")
	case len(t.Workers) > t.Concurrency:
		return Usagef("%d workers are described, but only %d run", len(t.Workers), t.Concurrency)
	case t.Concurrency > maxConcurrency:
		return BadFlag("concurrency", t.Concurrency, "at most %d workers are possible; write --concurrency %d", maxConcurrency, maxConcurrency)
	case !(t.Rate >= 0) || math.IsInf(t.Rate, 1):
		return BadFlag("rate", t.Rate, "it must be a number, and not negative; 0 is for no bound")
	case t.Think != nil && t.Think.Min < 0:
		return BadFlag("think", t.Think, "it must not be negative")
	case t.Think != nil && t.Rate > 0:
		return BadFlag("think", t.Think, "it excludes --rate; omit one of them")
	case t.Pause < 0:
		return BadFlag("pause", t.Pause, "it must not be negative")
	case t.MinOps < 0:
		return BadFlag("min-ops", t.MinOps, "it must not be negative")
	case t.Handover < 0:
		return BadFlag("handover", t.Handover, "it must not be negative")
	case t.Handover > 0 && !slices.Contains(t.Require, string(checker.NoIdleLock)):
		return BadFlag("handover", t.Handover, "it bounds a property that is not judged; add --require %s", checker.NoIdleLock)
	case t.Updates < 0:
		return BadFlag("updates", t.Updates, "it must not be negative")
	case t.Updates > 0 && t.workload.Update == nil:
		return BadFlag("updates", t.Updates, "workload %s updates nothing; omit --updates", t.Workload)
	case t.Section.Min < 0:
		return BadFlag("section", t.Section, "it must not be negative")
	case t.Section.Max < t.Section.Min:
		return BadFlag("section", t.Section, "the range is reversed; write %s-%s", t.Section.Max, t.Section.Min)
	}
	for i, ttl := range t.ttls() {
		if err := t.checkTTL(ttl); err != nil && ttl != t.TTL {
			return &UsageError{Err: fmt.Errorf("worker w%d: %w", i+1, err)}
		} else if err != nil {
			return err
		}
	}
	if err := t.checkUpgrade(); err != nil {
		return err
	}
	if err := t.checkOfficial(); err != nil {
		return &UsageError{Err: err, About: "version"}
	}
	for name := range t.Images {
		if name != t.spec.Image || !t.spec.OnDocker() {
			return BadFlag("image", name, "lock %s does not use that image%s", t.Lock, t.imageHint(name))
		}
	}
	return checkRequired(t.Require, checker.Properties())
}

// checkRequired refuses names of properties that a test does not judge.
func checkRequired(names []string, judged []checker.Property) error {
	var known []string
	for _, p := range judged {
		known = append(known, string(p))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return BadFlag("require", name, "no such property%s", spelling.Hint(name, known))
		}
	}
	return nil
}

// exitsUnaware says whether a worker is to exit on a loss that it never learns of.
func (t *test) exitsUnaware() bool {
	return t.AnyUse(func(u workloads.Use) bool {
		renews := u.Renew && t.info.Renew
		looks := u.CheckBeforeWrite && t.info.TTL > 0 && !t.info.Session
		return u.ExitOnLoss && !t.info.Notifies() && !renews && !looks
	})
}

// errUpgradedImage refuses another version of a program in an image whose layout is not known.
var errUpgradedImage = errors.New("version: only servers of lockcheck's own images can be started in another version; leave out --image and --version official")

func (t *test) checkUpgrade() error {
	replaced := t.serverImage() != "" || t.ServerVersion == images.Official
	if replaced && len(t.schedule.Versions()) > 0 {
		return errUpgradedImage
	}
	return nil
}

// checkOfficial refuses an official image without a known digest, before anything starts.
func (t *test) checkOfficial() error {
	if t.ServerVersion != images.Official || t.Images[t.spec.Image] != "" {
		return nil
	}
	_, err := images.OfficialNamed(t.spec.Recipe(t.ServerVersion))
	return err
}

// ttls are the leases that the workers ask for, in their order.
func (t *test) ttls() []time.Duration {
	ttls := slices.Repeat([]time.Duration{t.TTL}, t.Concurrency)
	for i, w := range t.Workers {
		ttls[i] = cmp.Or(w.TTL, t.TTL)
	}
	return ttls
}

func (t *test) checkTTL(ttl time.Duration) error {
	switch {
	case t.info.TTL == 0 && ttl != 0:
		return BadFlag("ttl", ttl, "lock %s has no lease; omit --ttl", t.Lock)
	case ttl < t.info.MinTTL:
		return BadFlag("ttl", ttl, "%s needs at least %s; write --ttl %s", t.Lock, t.info.MinTTL, t.info.MinTTL)
	case t.info.MaxTTL != 0 && ttl > t.info.MaxTTL:
		return BadFlag("ttl", ttl, "%s allows at most %s; write --ttl %s", t.Lock, t.info.MaxTTL, t.info.MaxTTL)
	case ttl%time.Millisecond != 0:
		return BadFlag("ttl", ttl, "a lease is a whole number of milliseconds; write --ttl %s", max(ttl.Truncate(time.Millisecond), time.Millisecond))
	}
	return nil
}

// alternatives lists what can be chosen, in words.
func alternatives[T any](values []T) string {
	if len(values) == 0 {
		return "no choice"
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ", ")
}

// imageHint suggests the image that the lock uses.
func (t *test) imageHint(name string) string {
	if !t.spec.OnDocker() {
		return ": it needs none"
	}
	return spelling.Hint(name, []string{t.spec.Image})
}
