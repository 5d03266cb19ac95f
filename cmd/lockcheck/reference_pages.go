package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockcheck/checker"
	"lockcheck/clients"
	"lockcheck/clusters"
	"lockcheck/history"
	"lockcheck/internal/lockfile"
	"lockcheck/internal/suites/matrix"
	"lockcheck/internal/suites/repros"
	"lockcheck/nemesis"
	"lockcheck/present"
	"lockcheck/workloads"
)

// commandSections describes a command and all below it, but for hidden ones.
func commandSections(c *cobra.Command) string {
	var text strings.Builder
	if c.Hidden {
		return ""
	}
	if flags := flagTable(c.LocalFlags()); c.Runnable() && (!c.HasSubCommands() || flags != "") { // a group shows its help, and no more
		text.WriteString(commandSection(c))
	}
	for _, sub := range c.Commands() {
		text.WriteString(commandSections(sub))
	}
	return text.String()
}

func commandSection(c *cobra.Command) string {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s\n\n", c.CommandPath())
	about := strings.TrimSpace(strings.TrimSuffix(c.Long, exitCodes))
	if about == "" {
		about = strings.ToUpper(c.Short[:1]) + c.Short[1:] + "."
	}
	fmt.Fprintf(&text, "%s\n\n```\n%s\n", about, c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(&text, "\n%s\n", c.Example)
	}
	text.WriteString("```\n\n")
	if len(c.ValidArgs) > 0 {
		fmt.Fprintf(&text, "There are %s.\n\n", allCode(c.ValidArgs))
	}
	return text.String() + flagTable(c.LocalFlags())
}

func flagTable(flags *pflag.FlagSet) string {
	var rows [][]string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := code(strings.TrimSpace("--" + f.Name + " " + value))
		if f.Shorthand != "" {
			name += ", " + code("-"+f.Shorthand)
		}
		rows = append(rows, []string{name, flagDefault(f), prose(usage)})
	})
	if len(rows) == 0 {
		return ""
	}
	return markdownTable([]string{"flag", "default", "meaning"}, rows)
}

// flagDefault is the default of a flag; "" where there is none, or it says nothing.
func flagDefault(f *pflag.Flag) string {
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		return ""
	}
	return code(f.DefValue)
}

// lockSections says of each lock what "list locks" does, once, and links to its page.
func lockSections() string {
	var rows [][]string
	var sections strings.Builder
	for _, lock := range clients.Table() {
		lease := "none"
		if lock.TTL > 0 {
			lease = lock.TTL.String()
		}
		rows = append(rows, []string{
			fmt.Sprintf("[%s](#%s)", code(lock.Name), strings.ReplaceAll(lock.Name, ".", "")), lease, prose(cmp.Or(lock.Token, "none")), prose(lock.LossNotification), prose(lock.Clock),
		})
		fmt.Fprintf(&sections, "## %s\n\n%s. [Its page](../locks/%s.md).\n\n", code(lock.Name), prose(lockSummary(lock)), lock.Name)
		ofItsOwn := slices.DeleteFunc(slices.Clone(lock.Options), func(o clients.Option) bool { return o.Name == clients.Watchdog })
		servers, _ := clusters.ByName(lock.Servers)
		for _, line := range lockDetails(lockfile.Lock{Info: lock, Servers: servers}, ofItsOwn) {
			fmt.Fprintf(&sections, "- %s\n", prose(line))
		}
		sections.WriteString("\n")
	}
	return markdownTable([]string{"lock", "lease", "fencing token", "loss notification", "depends on"}, rows) +
		"Every lock also has the [option](../locks/README.md) " + code(clients.Watchdog) + ".\n\n" + sections.String()
}

// faultTables says what each kind of fault does, and on which cluster it is supported.
func faultTables() string {
	var kinds [][]string
	head := []string{"cluster"}
	for _, kind := range nemesis.Kinds() {
		var uses []string
		for _, u := range kind.Uses {
			uses = append(uses, string(u))
		}
		var effects []string
		for _, effect := range history.EffectsOf(kind.Name) {
			effects = append(effects, string(effect))
		}
		kinds = append(kinds, []string{code(kind.Name), prose(kind.Summary), code(kind.Target), allCode(uses), strings.Join(effects, ", ")})
		head = append(head, code(kind.Name))
	}
	why := new(footnotes)
	var clusterRows, servers, workers [][]string
	for _, spec := range clusters.Table() {
		clusterRows = append(clusterRows, []string{code(spec.Name), serversOf(spec, false), allCode(locksOn(spec.Name))})
		onServers, onWorkers := []string{code(spec.Name)}, []string{code(spec.Name)}
		for _, kind := range nemesis.Kinds() {
			can := kind.Support(spec)
			onServers, onWorkers = append(onServers, why.cell(can.Servers)), append(onWorkers, why.cell(can.Workers))
		}
		if spec.Nodes > 0 {
			servers = append(servers, onServers)
		}
		workers = append(workers, onWorkers)
	}
	return markdownTable([]string{"fault", "what it does", "target by default", "a step may say", "effect"}, kinds) +
		"[Schedules](../schedules.md) says how to aim them. Whether the kernel and the processor allow a fault, only a run can tell.\n\n" +
		"## Clusters\n\n" + markdownTable([]string{"cluster", "servers", "locks"}, clusterRows) +
		"## On servers\n\n" + markdownTable(head, servers) +
		"## On workers\n\n" + markdownTable(head, workers) +
		"## Why not\n\n" + why.list()
}

func locksOn(cluster string) (names []string) {
	for _, lock := range clients.Table() {
		if lock.Servers == cluster {
			names = append(names, lock.Name)
		}
	}
	return names
}

// footnotes numbers the reasons why faults are not supported.
type footnotes struct{ reasons []string }

func (f *footnotes) cell(why error) string {
	if why == nil {
		return "yes"
	}
	at := slices.Index(f.reasons, why.Error())
	if at < 0 {
		at, f.reasons = len(f.reasons), append(f.reasons, why.Error())
	}
	return fmt.Sprintf("no (%d)", at+1)
}

func (f *footnotes) list() string {
	var text strings.Builder
	for i, reason := range f.reasons {
		fmt.Fprintf(&text, "%d. %s\n", i+1, prose(reason))
	}
	return text.String()
}

func workloadTable() string {
	var rows [][]string
	for _, w := range workloads.Table() {
		rows = append(rows, []string{code(w.Name), prose(w.Summary)})
	}
	return markdownTable([]string{"workload", "what a worker does in its section"}, rows)
}

// guardTable fails for a guard that nobody has explained.
func guardTable() (string, error) {
	var rows [][]string
	for _, name := range workloads.Guards() {
		refuses := refused(workloads.Guard(name))
		if refuses == "" {
			return "", fmt.Errorf("guard %s: the reference does not say what it refuses", name)
		}
		rows = append(rows, []string{code(name), refuses})
	}
	return markdownTable([]string{"guard", "what the resource refuses"}, rows), nil
}

// suiteTables has what a suite says when it says nothing, and what it can bound.
func suiteTables() (string, error) {
	var suite strings.Builder
	if err := matrix.DefaultSuite().Write(&suite); err != nil {
		return "", err
	}
	var rows [][]string
	for _, f := range matrix.Figures() {
		bound := "at most"
		if f.Least {
			bound = "at least"
		}
		rows = append(rows, []string{code(f.Name), bound, prose(present.Figure(f.Figure.Name)), code(string(f.Counts))})
	}
	return "[Comparing locks](../comparing.md#suite-files) says what a suite is. Whatever it leaves out is as here:\n\n```yaml\n" + suite.String() + "```\n\n" +
		"## Thresholds\n\nEach holds for a cell, over all of its seeds; the [figures](../verdicts.md#figures) are explained elsewhere. " +
		"One that counts the violations of a property takes its place.\n\n" +
		markdownTable([]string{"threshold", "bound", "of what", "in place of"}, rows), nil
}

func wordTables() string {
	var verdicts, properties, causes [][]string
	for _, v := range []checker.Verdict{checker.Valid, checker.Violation, checker.Undecided, checker.Broken, checker.NotApplicable} {
		verdicts = append(verdicts, []string{code(string(v)), prose(present.Verdict(v))})
	}
	for _, p := range checker.Properties() {
		properties = append(properties, []string{code(string(p)), prose(present.Property(p)), requiredWhen(p)})
	}
	for _, c := range checker.Causes() {
		inherent := "no"
		if c.Inherent {
			inherent = "yes"
		}
		causes = append(causes, []string{prose(c.Name), prose(present.Cause(c.Name)), inherent})
	}
	return "## Verdicts\n\n" + markdownTable([]string{"verdict", "meaning"}, verdicts) +
		"## Properties\n\nThe verdict of a run rests on those that are required; all are reported. [Verdict semantics](../verdicts.md) has the exact rules.\n\n" +
		markdownTable([]string{"property", "what it asks for", "required"}, properties) +
		"## Causes\n\nEach overlap, stale write and lost update is attributed to one. Where the holder is \"it\", it is the earlier one.\n\n" +
		markdownTable([]string{"cause", "what the history shows", "inherent in leases"}, causes)
}

// requiredWhen asks the checkers when a property is required.
func requiredWhen(p checker.Property) string {
	required := func(h history.Header) bool { return slices.Contains(checker.Required(h), p) }
	plain, guarded := required(history.Header{}), required(history.Header{Guard: string(workloads.CompareAndSet)})
	switch {
	case plain && guarded:
		return "always"
	case plain:
		return "without a guard"
	case required(history.Header{Tokens: true}):
		return "where there are tokens"
	case required(history.Header{Workload: history.WorkloadReadWrite}):
		return "in workload `read-write`"
	}
	return "with `--require`"
}

// reproductionSections describes each reproduction; those that are made for many locks
// are one.
func reproductionSections() (string, error) {
	all, err := repros.All()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("`lockcheck repro NAME` runs one, with `--control` its control. LOCK stands for one of the locks that are named; " +
		"`lockcheck repro holder-pause --lock FILE` runs that for [a lock of your own](../own-lock.md#keep-what-was-found). " +
		"`lockcheck repro FILE` runs one from a file; `lockcheck repro --list examples` has those of the examples.\n\n")
	for len(all) > 0 {
		r := all[0]
		same := slices.IndexFunc(all, func(other repros.Reproduction) bool { return other.Claim != r.Claim })
		if same < 0 {
			same = len(all)
		}
		text.WriteString(reproductionSection(r, all[:same]))
		all = all[same:]
	}
	return text.String(), nil
}

func reproductionSection(r repros.Reproduction, each []repros.Reproduction) string {
	name := r.Name
	if len(r.Each) > 0 {
		name = strings.TrimSuffix(name, r.Setup.Lock) + "LOCK"
	}
	var locks []string
	for _, one := range each {
		lock := one.Setup.Lock
		if one.Setup.Version != "" {
			lock += " " + one.Setup.Version
		}
		locks = append(locks, lock)
	}
	lines := []string{
		"lock: " + allCode(locks),
		"source: " + prose(r.Source),
		"expected: " + prose(r.Expect.String()),
		fmt.Sprintf("control: %s: %s", prose(r.Control.Summary), prose(r.Control.Expect.String())),
	}
	if r.Fast != nil {
		lines = append(lines, "a shorter form: `--fast`")
	}
	return fmt.Sprintf("## %s\n\n%s.\n\n%s\n\n- %s\n\n", name, prose(r.Summary), prose(r.Claim), strings.Join(lines, "\n- "))
}

const exitCodePage = "```\n" + exitCodes + "\n```\n" + `
Of several runs (` + "`test --test-count`, `compare`, `merge`" + `) the most telling one counts: an interruption,
else a violation, else an undecided run, else a broken one. Of a comparison it is that of its cells, in which
[thresholds](../comparing.md#suite-files) take part; a whole that lacks runs is undecided unless a violation was
found. With ` + "`--expect`" + ` and in reproductions 0 means that exactly the expected verdict was reached, never that a run
is valid.`
