package hunt

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/repros"
	"lockcheck/internal/suites/trials"
	"lockcheck/internal/yamlfile"
)

// reproduction describes a form as a file for "lockcheck repro". Its error says that the lock does not
// support the form.
func (p Plan) reproduction(name string, t Trial, s Signature, what string) (repros.Reproduction, error) {
	o, err := p.options(t)
	if err != nil {
		return repros.Reproduction{}, err
	}
	return repros.Reproduction{
		Name: name, Summary: summary(s, t), Claim: what, Source: fmt.Sprintf("lockcheck hunt --lock %s --seed %d", p.Lock, p.Seed),
		Setup: repros.Setup{
			Lock: o.Lock, Version: o.ServerVersion, Nodes: o.Nodes, Pin: o.Pin, Workload: o.Workload, Guard: o.Guard,
			Concurrency: o.Concurrency, Use: o.Use, TimeLimit: o.TimeLimit, MinOps: o.MinOps,
		},
		Schedule: *o.Schedule, Expect: s.expectation(),
	}, nil
}

func summary(s Signature, t Trial) string {
	var steps []string
	for _, step := range t.Steps {
		steps = append(steps, step.String())
	}
	if len(steps) == 0 {
		return s.String() + ", without any fault"
	}
	return s.String() + ", after " + strings.Join(steps, ", ")
}

// expectation is that the finding shows, whatever else shows.
func (s Signature) expectation() suites.Expectation {
	e := suites.Expectation{Verdict: checker.Violation, Violated: []checker.Property{s.Property}, Cause: s.Cause}
	if s.Property == checker.Linearizability { // the second opinion affects no verdict
		e.Verdict = ""
		e.MayViolate = s.others()
	}
	if s.Property == checker.MutualExclusion {
		e.DoubleGrant = !s.NotNotified
		if s.NotNotified && s.Cause == checker.CauseCutOff {
			e.Earlier = "cut off"
		}
	}
	return e
}

// experiment is what "lockcheck repro" will run for the file.
func experiment(r repros.Reproduction, control bool) (suites.Experiment, error) {
	return r.Experiment(repros.Form{Control: control})
}

// controls lists changes that could prevent the finding: one step less, a lock without the known flaw, the
// default lock delay, a section within the lease, no renewals.
func (p Plan) controls(t Trial, r repros.Reproduction) []repros.Control {
	var all []repros.Control
	for i, step := range t.Steps {
		all = append(all, repros.Control{Summary: "the same without the " + step.Fault + " of " + step.Target, Without: []string{r.Schedule.Steps[i].ID}})
	}
	if sibling := p.sibling(); sibling != "" {
		all = append(all, repros.Control{Summary: "the same with " + sibling, Setup: repros.Changes("lock", sibling)})
	}
	if p.subject.LockDelay() != nil {
		usual := p.subject.Info.LockDelay.String()
		o := p.sketch(t)
		o.LockDelay = &p.subject.Info.LockDelay
		if limit, err := trials.LimitOf(o, t.Use, t.Times); err == nil {
			all = append(all, repros.Control{
				Summary: "the same with a lock delay of " + usual, Setup: repros.Changes("lock-delay", usual, "time-limit", limit.String()),
			})
		}
	}
	if t.Section > shortest {
		short := t
		short.Section = shortest
		section := p.sketch(short).Section.String()
		all = append(all, repros.Control{Summary: "the same with a section of " + section, Setup: repros.Changes("section", section)})
	}
	if t.Renew && p.subject.Info.Renew {
		all = append(all, repros.Control{Summary: "the same without renewals", Setup: repros.Changes("renew", "false")})
	}
	return all
}

// sibling is a lock without a known flaw on the same servers, with or without a proxy in front of them. It is
// "" if there is none or if the lock itself has no known flaw.
func (p Plan) sibling() string {
	if p.subject.Info.Naive == "" {
		return ""
	}
	fits := func(i clients.Info) bool {
		servers := i.Servers == p.subject.Info.Servers || strings.HasPrefix(p.subject.Info.Servers, i.Servers+"-") // ignoring a proxy in front of the servers
		return servers && i.Naive == "" && !i.Unsafe && (i.TTL == 0) == (p.subject.Info.TTL == 0)
	}
	table := clients.Table()
	i := slices.IndexFunc(table, func(i clients.Info) bool { return fits(i) && i.Library == p.subject.Info.Library })
	if i < 0 {
		i = slices.IndexFunc(table, fits)
	}
	if i < 0 {
		return ""
	}
	return table[i].Name
}

// expectations are the results that a control may be expected to give, the strictest first.
func (s Signature) expectations() []suites.Expectation {
	return []suites.Expectation{
		{Verdict: checker.Valid},
		{Kept: []checker.Property{s.Property}, MayViolate: s.others()},
	}
}

// others are the properties that a control may violate.
func (s Signature) others() []checker.Property {
	return slices.DeleteFunc(checker.Properties(), func(p checker.Property) bool {
		return p == s.Property || p == checker.FaultEvidence || p == checker.Assumptions
	})
}

// write stores a reproduction in a folder and returns its path. The reproduction names a lock file relative
// to the folder.
func write(folder string, r repros.Reproduction) (string, error) {
	if lockfile.IsPath(r.Setup.Lock) {
		lock, err := filepath.Abs(r.Setup.Lock)
		if err != nil {
			return "", err
		}
		into, err := filepath.Abs(folder)
		if err != nil {
			return "", err
		}
		if r.Setup.Lock, err = filepath.Rel(into, lock); err != nil {
			return "", err
		}
		if !strings.HasPrefix(r.Setup.Lock, ".") {
			r.Setup.Lock = "./" + r.Setup.Lock
		}
	}
	name := r.Name + ".yaml"
	return filepath.Join(folder, name), runs.WriteFile(folder, name, func(w io.Writer) error { return yamlfile.Write(w, r) })
}
