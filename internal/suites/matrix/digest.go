package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites/trials"
	"lockcheck/internal/yamlfile"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

// trialForm has everything that an attack determines in a trial. Lock, version and guard are the trial's
// place instead. Empty fields are left out of the digest. So a new field does not change the digest of trials
// that do not use it.
type trialForm struct {
	workloads.Use  `yaml:",inline"`
	Concurrency    int              `yaml:"concurrency,omitempty"`
	Nodes          int              `yaml:"nodes,omitempty"`
	Pin            bool             `yaml:"pin,omitempty"`
	Nemesis        string           `yaml:"nemesis,omitempty"`
	Interval       time.Duration    `yaml:"interval,omitempty"`
	TimeLimit      time.Duration    `yaml:"time-limit,omitempty"`
	EndEarly       bool             `yaml:"end-early,omitempty"`
	EndRecovered   bool             `yaml:"end-recovered,omitempty"`
	UntilViolation bool             `yaml:"until-violation,omitempty"`
	Schedule       nemesis.Schedule `yaml:"schedule,omitempty"`
}

func trialFormOf(outline runs.Outline) trialForm {
	o := outline.Options
	return trialForm{
		Use: o.Use, Concurrency: o.Concurrency, Nodes: o.Nodes, Pin: o.Pin, Nemesis: o.Nemesis, Interval: o.Interval, TimeLimit: o.TimeLimit,
		EndEarly: o.EndEarly, EndRecovered: o.EndRecovered, UntilViolation: o.UntilViolation, Schedule: outline.Schedule,
	}
}

// attackDigest is the digest of the cell's attack; "" for random faults, and if no trial is possible.
func (c Place) attackDigest() string {
	attack, is := AttackByName(c.Fault)
	name, version := lockfile.CutVersion(c.Lock)
	lock, err := lockfile.Find(name)
	if !is || err != nil {
		return ""
	}
	return attack.digest(trials.Subject{Lock: lock, Name: name, Version: version}, c.Guard)
}

// digest distinguishes an attack on a lock from earlier versions of the attack, because their trials must not
// be pooled. It does not depend on the seeds of a suite. So a longer comparison can be compared with a
// shorter one.
func (a Attack) digest(s trials.Subject, guard string) string {
	digest := sha256.New()
	for turn := range a.turns() {
		outline, err := a.trialOutline(s, guard, turn+1)
		if err == nil {
			err = yamlfile.Write(digest, trialFormOf(outline))
		}
		if err != nil {
			return ""
		}
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// turns is the number of seeds after which the trials of an attack repeat, except for chance.
func (a Attack) turns() uint64 {
	most := 1
	for _, f := range a.Forms {
		most = max(most, len(f.Random))
	}
	return uint64(most)
}
