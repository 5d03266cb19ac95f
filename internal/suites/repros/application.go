package repros

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"lockcheck/history"
	"lockcheck/internal/appfile"
	"lockcheck/internal/runs"
	"lockcheck/internal/spelling"
	"lockcheck/internal/yamlfile"
	"lockcheck/nemesis"
)

// Application is what a reproduction says of the test of an application, in place of a lock.
type Application struct {
	// App is the path of an app file; "" for a reproduction of a lock.
	App string `yaml:"app,omitempty"`
	// Environment is added to that of the replicas, as app.environment of an app file has it.
	Environment map[string]*string `yaml:"environment,omitempty"`
	// Nemesis lists kinds of faults for a random schedule, in place of the schedule of the file; "" for that. A fault
	// comes each Interval, by default runs.DefaultInterval, and Seed decides which.
	Nemesis  string        `yaml:"nemesis,omitempty"`
	Interval time.Duration `yaml:"interval,omitempty"`
	Seed     uint64        `yaml:"seed,omitempty"`
}

// application reads the app file, and completes the options of its test.
func (s Setup) application(schedule nemesis.Schedule) (*runs.ApplicationOptions, error) {
	app, err := appfile.Read(s.App)
	if err != nil {
		return nil, &runs.UsageError{Err: err}
	}
	o := &runs.ApplicationOptions{
		App: app.With(s.Environment), Nemesis: s.Nemesis, Interval: cmp.Or(s.Interval, runs.DefaultInterval), Seed: s.Seed,
		TimeLimit: s.TimeLimit, MinOps: s.MinOps, Require: s.Require,
	}
	if s.Nemesis == "" {
		o.Schedule, o.Seed = &schedule, schedule.Seed
	}
	return o, nil
}

// haveInvariants refuses to expect something of an invariant that the app file has not: a name that is misspelt would
// never be violated.
func haveInvariants(app appfile.App, names []string) error {
	var known []string
	for _, q := range app.Questions {
		if q.Invariant.Kind != history.InvariantWork {
			known = append(known, q.Invariant.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &runs.UsageError{Err: fmt.Errorf("expect: %s has no invariant %q%s", app.Path, name, spelling.Hint(name, known))}
		}
	}
	return nil
}

// keysOfApplications lists the keys that the reproduction of an application may have in a part of its file: those that
// the reproduction of a lock may have, too, and those that it may not.
func keysOfApplications(part string) (shared, alone []string) {
	if part == "expect" {
		return []string{"verdict", "violated", "cause", "kept", "may-violate"}, []string{"invariants"}
	}
	shared, alone = []string{"time-limit", "min-ops", "require"}, []string{"app", "environment", "nemesis", "interval", "seed"}
	if part == "" {
		shared = append(shared, "name", "summary", "claim", "source", "schedule", "expect", "control")
	}
	return shared, alone
}

// checkKeys refuses keys that say nothing of what the file is about: they would be without effect.
func (r Reproduction) checkKeys(f *yamlfile.File) error {
	for _, p := range []struct {
		part string
		path []any
	}{
		{"", nil}, {"expect", []any{"expect"}}, {"setup", []any{"control", "setup"}}, {"expect", []any{"control", "expect"}},
		{"setup", []any{"fast", "setup"}},
	} {
		shared, alone := keysOfApplications(p.part)
		for _, key := range f.Keys(p.path...) {
			switch ofApplications := slices.Contains(alone, key.Name); {
			case r.Setup.App == "" && ofApplications:
				return fmt.Errorf("line %d: %s: it goes with an application, and the file names none by app", key.Line, key.Name)
			case r.Setup.App != "" && !ofApplications && !slices.Contains(shared, key.Name):
				return fmt.Errorf("line %d: %s: it goes with a lock, and app names an application", key.Line, key.Name)
			}
		}
	}
	return r.Setup.checkFaults(f, len(r.Schedule.Steps))
}

// checkFaults makes sure that the faults of an application are said once.
func (a Application) checkFaults(f *yamlfile.File, steps int) error {
	wrong := func(field, why string) error {
		return f.At(&yamlfile.FieldError{Field: field, Err: errors.New(why)})
	}
	switch {
	case a.Nemesis != "" && steps > 0:
		return wrong("nemesis", "the file has a schedule, too")
	case a.Nemesis == "" && a.Interval != 0:
		return wrong("interval", "it goes with nemesis")
	case a.Nemesis == "" && a.Seed != 0:
		return wrong("seed", "it goes with nemesis; that of a schedule is part of it")
	}
	return nil
}
