package reports

import (
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
)

// Observed is what was seen of one experiment, next to what was expected.
type Observed struct {
	Subject  string // a lock or a reproduction
	Setting  Setting
	Lock     string
	Expected string // in words
	// PublishedLoss is the share of updates that others saw lost; 0 for none that is known.
	PublishedLoss float64
	Runs          []ObservedRun
}

// ObservedRun is one run of an experiment.
type ObservedRun struct {
	Document
	AsExpected bool
	Missed     string // what was not as expected
}

// Setting says what is done to the subject of an experiment.
type Setting string

// Settings: those of a lock, and those of a reproduction.
const (
	SettingFaultless Setting = "faultless"
	SettingPaused    Setting = "paused"
	SettingFinding   Setting = "finding"
	SettingControl   Setting = "control"
)

// findingsPreface says how the tables were made and what their columns are.
const findingsPreface = `# Expected and observed

Made by "%s" from stored runs%s; no figure is written by hand. Runs that are not in that folder do not count. "3 of 3" means that three runs were
exactly as expected, out of three. Updates and overlaps are medians, with their range over the runs. Lost updates are those of
all runs, with the 95 %% interval of their share where any were lost, and how many independent parts of the runs it is over.

`

// FindingsTable writes what was expected and observed as Markdown: a table of
// locks, if there are any, and one of reproductions with their controls. command is what
// makes it.
func FindingsTable(w io.Writer, command string, all []Observed) error {
	var text strings.Builder
	pairs := make(map[string]map[Setting]Observed)
	var subjects []string
	for _, o := range all {
		if pairs[o.Subject] == nil {
			pairs[o.Subject] = make(map[Setting]Observed)
			subjects = append(subjects, o.Subject)
		}
		pairs[o.Subject][o.Setting] = o
	}
	fmt.Fprintf(&text, findingsPreface, clean(command), labelledDays(all))
	lockTable(&text, subjects, pairs)
	text.WriteString("## Reproductions\n\n")
	text.WriteString("| finding | lock | expected | observed | control: expected | observed | lost | lost in the control | time |\n")
	text.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, subject := range subjects {
		if finding, is := pairs[subject][SettingFinding]; is {
			markdownLine(&text, reproductionRow(finding, pairs[subject][SettingControl]))
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func lockTable(text *strings.Builder, subjects []string, pairs map[string]map[Setting]Observed) {
	head := "## Locks\n\n" +
		"| lock | versions | without faults | updates | holders stopped | overlaps of a stopped holder | lost |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n"
	for _, subject := range subjects {
		if calm, is := pairs[subject][SettingFaultless]; is {
			text.WriteString(head)
			head = ""
			markdownLine(text, lockRow(calm, pairs[subject][SettingPaused]))
		}
	}
	if head == "" {
		text.WriteString("\n")
	}
}

// labelledDays says on which days the runs began; "" if there are none.
func labelledDays(all []Observed) string {
	var days []string
	for _, o := range all {
		for _, run := range o.Runs {
			if day, _, _ := strings.Cut(run.Header.Started, "T"); day != "" {
				days = append(days, clean(day))
			}
		}
	}
	if len(days) == 0 {
		return ""
	}
	first, last := slices.Min(days), slices.Max(days)
	if first == last {
		return " of " + first
	}
	return " of " + first + " to " + last
}

func lockRow(calm, paused Observed) []string {
	return []string{
		markdownCode(calm.Subject), Markdown(calm.versions()), Markdown(calm.judged()), calm.updates(),
		Markdown(paused.judged()), paused.overlaps(), paused.lost(),
	}
}

func reproductionRow(finding, control Observed) []string {
	lock := markdownCode(finding.Lock)
	if v := finding.versions(); v != "" {
		lock += " (" + Markdown(v) + ")"
	}
	return []string{
		markdownCode(finding.Subject), lock, Markdown(finding.Expected), Markdown(finding.count()),
		Markdown(control.Expected), Markdown(control.count()), finding.lost(), control.lost(), finding.length(),
	}
}

// judged says what was expected and how often it was observed.
func (o Observed) judged() string {
	verdict, _, _ := strings.Cut(o.Expected, ":")
	return verdict + ", " + o.count()
}

// count says how many runs were as expected, and of the first that was not, why.
func (o Observed) count() string {
	if len(o.Runs) == 0 {
		return "not run"
	}
	as, missed := 0, ""
	for _, run := range o.Runs {
		if run.AsExpected {
			as++
		} else if missed == "" {
			missed = run.Missed
		}
	}
	text := fmt.Sprintf("%d of %d", as, len(o.Runs))
	if missed != "" {
		text += " (" + missed + ")"
	}
	return text
}

// versions lists the versions of servers and client modules in the last run.
func (o Observed) versions() string {
	if len(o.Runs) == 0 {
		return ""
	}
	return Versions(o.Runs[len(o.Runs)-1].Header.Versions)
}

// Versions lists versions of servers and modules by the names that people know.
func Versions(versions map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, clean(shortModule(name)+" "+strings.TrimPrefix(versions[name], "v")))
	}
	return strings.Join(parts, ", ")
}

// majorVersion is the last element of the path of a module from version 2 on.
var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// shortModule is the name that people know a module by.
func shortModule(module string) string {
	module = majorVersion.ReplaceAllString(module, "")
	name := path.Base(module)
	switch name {
	case "client", "server", "api": // of what?
		return path.Base(path.Dir(module)) + "/" + name
	}
	return name
}

// updates is how many there were; "" if the workload makes none.
func (o Observed) updates() string {
	each := o.each(func(d Document) int64 { return d.Results.Updates.Acknowledged })
	if slices.Max(append(each, 0)) == 0 {
		return ""
	}
	return spread(each)
}

func (o Observed) overlaps() string {
	return spread(o.each(func(d Document) int64 { return d.Results.Overlaps.EarlierPaused }))
}

// lost is what was lost in all runs; "" if nothing could be.
func (o Observed) lost() string {
	var all []checker.Results
	for _, run := range o.Runs {
		all = append(all, run.Results)
	}
	p := checker.PoolOf(all)
	switch {
	case p.Acknowledged == 0:
		return ""
	case p.Lost == 0:
		return fmt.Sprintf("0 of %d", p.Acknowledged)
	}
	text := fmt.Sprintf("%d of %d: %s", p.Lost, p.Acknowledged, LossInterval(p.LossInterval))
	if o.PublishedLoss == 0 {
		return text
	}
	where := "not within"
	if p.LostLow <= o.PublishedLoss && o.PublishedLoss <= p.LostHigh {
		where = "within"
	}
	return text + fmt.Sprintf("; published: %s %%, %s", inPercent(o.PublishedLoss), where)
}

func (o Observed) length() string {
	lengths := o.each(func(d Document) int64 { return d.Results.End - d.Results.Begin })
	if len(lengths) == 0 {
		return ""
	}
	return time.Duration(stats.Median(lengths)).Round(time.Second).String()
}

func (o Observed) each(value func(Document) int64) []int64 {
	var values []int64
	for _, run := range o.Runs {
		values = append(values, value(run.Document))
	}
	return values
}

// spread shows the median of some values, and their range if there is one.
func spread(values []int64) string {
	if len(values) == 0 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d (%d–%d)", stats.Median(values), low, high)
}
