package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"lockcheck/clients"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/suites/matrix"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
	"lockcheck/workloads"
)

var (
	commandLine = regexp.MustCompile(`(?m)^[$ ]*(?:\./)?lockcheck +([a-z].*)$`)
	shellWord   = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)
	placeholder = regexp.MustCompile(`\b[A-Z]+\b`)
)

// commandsIn lists the lockcheck command lines of a page, in code blocks and in sentences, without shell
// syntax around them.
func commandsIn(page string) (all [][]string) {
	code := fence.FindAllString(page, -1)
	for _, inline := range inlineCode.FindAllString(fence.ReplaceAllString(page, ""), -1) {
		code = append(code, strings.Trim(inline, "`"))
	}
	for _, match := range commandLine.FindAllStringSubmatch(strings.Join(code, "\n"), -1) {
		var args []string
		for _, word := range shellWord.FindAllString(match[1], -1) {
			rest, ends := strings.CutSuffix(word, ";")
			if strings.ContainsAny(word[:1], "#>[") {
				break
			}
			args = append(args, strings.Trim(rest, `"'`))
			if ends {
				break
			}
		}
		all = append(all, args)
	}
	return all
}

// mistaken says why a documented command line cannot be run; "" if it can. Words in capitals are
// placeholders. A command without arguments is only mentioned.
func mistaken(args []string) string {
	if current := currentArgs(args); current != nil {
		args = current
	}
	root := rootCommand(&system{})
	root.InitDefaultHelpCmd()
	cmd, rest, err := root.Find(args)
	switch {
	case err != nil || cmd == root:
		return "there is no such command"
	case cmd.ParseFlags(rest) != nil:
		return cmd.ParseFlags(rest).Error()
	}
	positional := cmd.Flags().Args()
	err = cmd.ValidateArgs(filledIn(positional, cmd.ValidArgs))
	if len(rest) == 0 || cmd.Flags().Changed("help") {
		err = nil
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if check, checked := flagChecks[f.Name]; checked {
			err = errors.Join(err, checkEach(check, valuesOf(f)))
		}
	})
	switch list := cmd.Flags().Changed("list"); {
	case cmd.Name() == "repro" && !list:
		err = errors.Join(err, checkEach(isReproduction, positional))
	case cmd.Name() == "repro", cmd.Parent().Name() == "repro":
		err = errors.Join(err, checkEach(hasReproductions, positional))
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// filledIn replaces placeholders with an existing name.
func filledIn(args, names []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if len(names) > 0 && placeholder.MatchString(arg) {
			args[i] = names[0]
		}
	}
	return args
}

// flagChecks check the values of flags, by the name of the flag.
var flagChecks = map[string]func(string) error{
	"lock": isLock, "locks": isLock, "guard": isGuard, "guards": isGuard, "nemesis": isNemesis, "faults": isColumn,
	"file": isThere, "schedule": isThere,
}

// checkEach checks the values that are not placeholders.
func checkEach(check func(string) error, values []string) (err error) {
	for _, value := range values {
		if !placeholder.MatchString(value) {
			err = errors.Join(err, check(value))
		}
	}
	return err
}

func valuesOf(f *pflag.Flag) []string {
	if list, isList := f.Value.(pflag.SliceValue); isList {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

func isLock(name string) error {
	lock, _, _ := strings.Cut(name, "@")
	if lockfile.IsPath(lock) {
		_, err := lockfile.Find(filepath.Join(repository, lock))
		return err
	}
	if _, known := clients.ByName(lock); !known {
		return fmt.Errorf("there is no such lock: %q", name)
	}
	return nil
}

func isGuard(name string) error {
	if !slices.Contains(workloads.Guards(), name) {
		return fmt.Errorf("there is no such guard: %q", name)
	}
	return nil
}

func isNemesis(text string) error {
	_, err := nemesis.ParseRequests(text)
	return err
}

// isColumn checks a fault of a comparison.
func isColumn(fault string) error {
	if _, is := matrix.AttackByName(fault); is {
		return nil
	}
	return isNemesis(fault)
}

func isReproduction(name string) error {
	if lockfile.IsPath(name) {
		_, err := repros.FromFile(filepath.Join(repository, name))
		return err
	}
	if _, err := repros.Find(name, "memory"); err == nil { // a reproduction for many locks
		return nil
	}
	_, err := repros.ByName(name)
	return err
}

func hasReproductions(path string) error {
	_, err := repros.In([]string{filepath.Join(repository, path)})
	return err
}

// isThere looks for a file at the root of the repository, where commands are run. A file without a folder may
// be a copy of any file in the documentation.
func isThere(name string) error {
	if _, err := os.Stat(filepath.Join(repository, name)); err == nil {
		return nil
	}
	found := false
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, _ fs.DirEntry, err error) error {
		found = found || filepath.Base(path) == name
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("there is no such file: %s", name)
	}
	return err
}

// TestCommands: every command line in the documentation can be run.
func TestCommands(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, page := range documents(t) {
		text, err := os.ReadFile(filepath.Join(repository, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range commandsIn(string(text)) {
			line := seed.ReplaceAllString(strings.Join(args, " "), "")
			if seen[line] {
				continue
			}
			seen[line] = true
			if why := mistaken(args); why != "" {
				t.Errorf("%s: lockcheck %s: %s", page, strings.Join(args, " "), why)
			}
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d command lines were found", len(seen))
	}
}

var seed = regexp.MustCompile(` --seed [0-9]+`)

// TestCommandsControl: command lines that cannot be run are found, and similar ones that can are not.
func TestCommandsControl(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, args, why string
	}{
		{"no command: lockcheck is a program", "[]", ""},
		{"```\n./lockcheck test --lock redis   # a comment\n```", "[[test --lock redis]]", ""},
		{"```\n$ ./lockcheck test; echo $?\n```", "[[test]]", ""},
		{"say `lockcheck list faults` to it", "[[list faults]]", ""},
		{"```\n./lockcheck tset\n```", "[[tset]]", "no such command"},
		{"`lockcheck test --lok redis`", "[[test --lok redis]]", "unknown flag"},
		{"`lockcheck test --lock redos`", "[[test --lock redos]]", "no such lock"},
		{"`lockcheck test --lock NAME`", "[[test --lock NAME]]", ""},
		{"`lockcheck test --guard wall`", "[[test --guard wall]]", "no such guard"},
		{"`lockcheck test --guard fence`", "[[test --guard fence]]", ""},
		{"`lockcheck test --nemesis pause,rain`", "[[test --nemesis pause,rain]]", `unknown fault "rain"`},
		{"`lockcheck test --nemesis none`", "[[test --nemesis none]]", ""},
		{"`lockcheck test --schedule mine.yaml`", "[[test --schedule mine.yaml]]", "no such file"},
		{"`lockcheck test --schedule FILE`", "[[test --schedule FILE]]", ""},
		{"`lockcheck test --schedule internal/suites/repros/etcd-11456.yaml`", "[[test --schedule internal/suites/repros/etcd-11456.yaml]]", ""},
		{"`lockcheck test redis`", "[[test redis]]", `unknown command "redis"`},
		{"`lockcheck compare --locks redis,etcd@3.5.15`", "[[compare --locks redis,etcd@3.5.15]]", ""},
		{"`lockcheck compare --locks redis,etdc@3.5.15`", "[[compare --locks redis,etdc@3.5.15]]", "no such lock"},
		{"`lockcheck compare --faults none,pause:holder`", "[[compare --faults none,pause:holder]]", ""},
		{"`lockcheck compare --faults none,paws:holder`", "[[compare --faults none,paws:holder]]", `unknown fault "paws"`},
		{"`lockcheck compare --guards none,fence`", "[[compare --guards none,fence]]", ""},
		{"`lockcheck compare --guards none,wall`", "[[compare --guards none,wall]]", "no such guard"},
		{"`lockcheck compare -f docs/ci/suite.yaml`", "[[compare -f docs/ci/suite.yaml]]", ""},
		{"`lockcheck compare -f suite.yaml`", "[[compare -f suite.yaml]]", ""},
		{"`lockcheck compare -f ci/suite.yaml`", "[[compare -f ci/suite.yaml]]", "no such file"},
		{"`lockcheck compare redis`", "[[compare redis]]", `unknown command "redis"`},
		{"`lockcheck images NAME`", "[[images NAME]]", ""},
		{"`lockcheck images redos`", "[[images redos]]", `unknown recipe "redos"`},
		{"`lockcheck analyze A B C`", "[[analyze A B C]]", "name one set of runs or two"},
		{"`lockcheck analyze A B`", "[[analyze A B]]", ""},
		{"`lockcheck analyze --format jepsen`", "[[analyze --format jepsen]]", "name one set of runs or two"},
		{"`lockcheck analyze`", "[[analyze]]", ""},
		{"`lockcheck test --ttl 5`", "[[test --ttl 5]]", "missing unit"},
		{"`lockcheck repro moon-landing`", "[[repro moon-landing]]", "unknown reproduction"},
		{"`lockcheck repro holder-pause-LOCK --control`", "[[repro holder-pause-LOCK --control]]", ""},
		{"`lockcheck repro holder-pause --lock redis`", "[[repro holder-pause --lock redis]]", ""},
		{"`lockcheck repro holder-pause --lock redos`", "[[repro holder-pause --lock redos]]", "no such lock"},
		{"`lockcheck repro examples/kazoo/leaked-contender.yaml`", "[[repro examples/kazoo/leaked-contender.yaml]]", ""},
		{"`lockcheck repro examples/kazoo/lock.yaml`", "[[repro examples/kazoo/lock.yaml]]", "there is no key"},
		{"`lockcheck repro --list examples`", "[[repro --list examples]]", ""},
		{"`lockcheck repro --list docs`", "[[repro --list docs]]", "there is no reproduction"},
		{"`lockcheck findings run examples`", "[[findings run examples]]", ""},
		{"`lockcheck findings table exemples`", "[[findings table exemples]]", "no such file"},
		{"`lockcheck test --nemesis \"pause:one server\"`", "[[test --nemesis pause:one server]]", ""},
	} {
		all := commandsIn(c.text)
		if got := fmt.Sprint(all); got != c.args {
			t.Errorf("%q: %s, want %s", c.text, got, c.args)
			continue
		}
		for _, args := range all {
			if why := mistaken(args); !strings.Contains(why, c.why) || c.why == "" && why != "" {
				t.Errorf("%q: %q, want %q", c.text, why, c.why)
			}
		}
	}
}

var suiteBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// shownSuite is the suite in the first YAML block of a page.
func shownSuite(page string) (matrix.Suite, error) {
	block := suiteBlock.FindStringSubmatch(page)
	if block == nil {
		return matrix.Suite{}, errors.New("there is no block of YAML")
	}
	return matrix.ReadSuite(strings.NewReader(block[1]))
}

// TestSuiteShown: the page about CI shows the suite file that users can copy.
func TestSuiteShown(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(repository, "docs/ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := readSuite(filepath.Join(repository, "docs/ci/suite.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, page string
		same       bool
	}{
		{"as it is", string(page), true},
		{"with another threshold", strings.Replace(string(page), "min_ops: 300", "min_ops: 301", 1), false},
		{"without one", strings.Replace(string(page), "  overlaps: 0\n", "", 1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown, err := shownSuite(c.page)
			if err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(shown, there) != c.same {
				t.Errorf("shown is %+v, there is %+v", shown, there)
			}
		})
	}
}

// workflow is the part of a GitHub Actions workflow that matters here.
type workflow struct {
	Jobs map[string]struct {
		Steps []struct {
			Run  string `yaml:"run"`
			Uses string `yaml:"uses"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// wrongWorkflow says what is wrong with a workflow in which one job runs parts and another job merges them.
func wrongWorkflow(text string) error {
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return err
	}
	for job, want := range map[string]string{"part": "lockcheck compare -f suite.yaml --budget 40m --shard ", "whole": "lockcheck compare merge --out whole $against part-*"} {
		found := false
		for _, step := range w.Jobs[job].Steps {
			found = found || strings.Contains(step.Run, want)
			if (step.Run == "") == (step.Uses == "") {
				return fmt.Errorf("job %s: a step that does nothing, or two things: %+v", job, step)
			}
		}
		if !found {
			return fmt.Errorf("job %s: no step runs %q", job, want)
		}
	}
	return nil
}

// TestWorkflow: the workflow that is ready to copy can be read and does what it is for.
func TestWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs/ci/lockcheck-shards.yml"))
	if err != nil {
		t.Fatal(err)
	}
	const step = "      - run: lockcheck/lockcheck compare"
	for _, c := range []struct {
		name, text string
		fine       bool
	}{
		{"as it is", string(text), true},
		{"a step that belongs to none", strings.Replace(string(text), step, "      "+step, 1), false},
		{"without its runs", strings.Replace(string(text), step, "      - run: echo", 1), false},
	} {
		if err := wrongWorkflow(c.text); (err == nil) != c.fine {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
