package guide

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/suites"
	"lockcheck/internal/suites/findings"
	"lockcheck/internal/suites/matrix"
	"lockcheck/nemesis"
)

// Annotate adds to each cell of a comparison what other runs have shown, if that is worse than what the
// comparison saw. If an attack broke the lock, it adds the reproduction that shows the same break.
func (e Evidence) Annotate(m *matrix.Comparison) error {
	reproductions, err := findings.Experiments()
	if err != nil {
		return err
	}
	for i := range m.Cells {
		c := &m.Cells[i]
		_, attack := matrix.AttackByName(c.Fault)
		if c.Unavailable != "" || c.Verdict == checker.Violation && !attack {
			continue
		}
		known := e.Cell(nameOfLock(c.Lock), Normal(matrix.Nemesis(c.Fault)), c.Guard)
		if c.Verdict == checker.Violation {
			c.Repro = known.reproduction(aimsOfAttack(c.Place), reproductions)
		} else if g, broke := known.Worst(); broke {
			c.Known = &matrix.Known{Text: g.Text(), Line: g.Command()}
		}
	}
	return nil
}

// reproduction is the command of the first reproduction that breaks the lock and has a step aimed like the
// attack; nil for none. Several attacks may have the same fault, such as a lost answer. A reproduction with
// that fault at another moment shows something else.
func (c Cell) reproduction(attack []aim, known []suites.Experiment) []string {
	for _, g := range c.Groups {
		i := slices.IndexFunc(known, func(e suites.Experiment) bool { return e.Name == g.Experiment && e.Setting == suites.SettingFinding })
		if i < 0 || g.Broke == 0 || !strings.HasPrefix(g.Experiment, "repro/") {
			continue
		}
		outline, err := runs.OutlineOf(known[i].Options)
		if err == nil && slices.ContainsFunc(aimsOf(outline), func(a aim) bool { return slices.Contains(attack, a) }) {
			return strings.Fields(g.Command())
		}
	}
	return nil
}

// aim is a step's fault, its target, and its moment.
type aim struct{ kind, whom, moment string }

// aimsOfAttack lists the aims of the steps with the fault that gives the attack its name. The other steps
// only prepare for it.
func aimsOfAttack(place matrix.Place) []aim {
	outline, err := place.Trial()
	if err != nil {
		return nil
	}
	kind, _ := splitFault(matrix.Nemesis(place.Fault))
	return slices.DeleteFunc(aimsOf(outline), func(a aim) bool { return a.kind != kind })
}

func aimsOf(outline runs.Outline) []aim {
	var h history.Header
	for i := range outline.Servers {
		h.Servers = append(h.Servers, fmt.Sprintf("n%d", i+1))
	}
	for i := range outline.Options.Concurrency {
		h.Workers = append(h.Workers, fmt.Sprintf("w%d", i+1))
	}
	var all []aim
	for _, s := range outline.Schedule.Steps {
		whom := whomOf(s, h)
		switch actor := whom == "actor" || whom == "one worker" && s.Of == s.Target; {
		case actor && s.When == nemesis.WhenHolding:
			whom = "holder"
		case actor:
			whom = "actor"
		}
		all = append(all, aim{s.Fault, whom, s.When})
	}
	return all
}

// nameOfLock translates the name that a comparison uses for a lock into the name in the evidence. A lock from
// a file goes by the name in that file.
func nameOfLock(lock string) string {
	path, version, _ := strings.Cut(lock, "@")
	found, err := lockfile.Find(path)
	if err != nil {
		return lock
	}
	if version == "" || version == found.Servers.Version("") {
		return found.Info.Name
	}
	return found.Info.Name + "@" + version
}
