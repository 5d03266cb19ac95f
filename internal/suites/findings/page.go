package findings

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"lockcheck/checker"
	"lockcheck/internal/stats"
	"lockcheck/internal/suites"
	"lockcheck/reports"
)

// Observed is an experiment with its stored runs.
type Observed struct {
	suites.Experiment
	Runs []suites.StoredRun
}

// Observations finds the stored runs of experiments. An experiment without any run is listed too.
func Observations(store string, experiments []suites.Experiment) ([]Observed, error) {
	stored, err := suites.StoredRuns(store)
	if err != nil {
		return nil, err
	}
	var all []Observed
	for _, e := range experiments {
		all = append(all, Observed{e, stored[e.Name]})
	}
	return all, nil
}

// preface says how the tables were made and what their columns mean.
const preface = `Made by "%s" from stored runs%s; no figure is written by hand. Runs that are not in that folder do not count. ` +
	`"3 of 3" means that three runs were exactly as expected, out of three. Updates and overlaps are medians, with their range over the runs. ` +
	`Lost updates are those of all runs, with the 95 %% interval of their share where any were lost, and how many independent parts of the runs it is over.`

// Page has a table of locks, if there are any, and a table of reproductions with their controls. command is
// the command that makes the page.
func Page(command string, all []Observed) reports.Page {
	locks := reports.Table{Columns: reports.Columns("lock", "versions", "without faults", "updates", "holders stopped", "overlaps of a stopped holder", "lost")}
	reproductions := reports.Table{Columns: reports.Columns(
		"finding", "lock", "expected", "observed", "control: expected", "observed", "lost", "lost in the control", "time")}
	other := func(o Observed, setting suites.Setting) Observed {
		i := slices.IndexFunc(all, func(other Observed) bool { return other.Subject == o.Subject && other.Setting == setting })
		if i < 0 {
			return Observed{}
		}
		return all[i]
	}
	for _, o := range all {
		switch o.Setting {
		case suites.SettingFaultless:
			locks.Rows = append(locks.Rows, lockRow(o, other(o, suites.SettingPaused)))
		case suites.SettingFinding:
			reproductions.Rows = append(reproductions.Rows, reproductionRow(o, other(o, suites.SettingControl)))
		}
	}
	page := reports.Page{Title: "Expected and observed", Blocks: []reports.Block{reports.Text(fmt.Sprintf(preface, command, days(all)))}}
	if len(locks.Rows) > 0 {
		page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: "Locks"}, locks)
	}
	page.Blocks = append(page.Blocks, reports.Heading{Level: 2, Text: "Reproductions"}, reproductions)
	return page
}

// days says on which days the runs began; "" if there are none.
func days(all []Observed) string {
	var days []string
	for _, o := range all {
		for _, run := range o.Runs {
			if day, _, _ := strings.Cut(run.Header.Started, "T"); day != "" {
				days = append(days, day)
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

func lockRow(calm, paused Observed) reports.Row {
	cells := reports.Cells(calm.Subject, calm.versions(), calm.expectedAndCount(), calm.updates(), paused.expectedAndCount(), paused.overlaps(), paused.lost())
	cells[0].Code = true
	return reports.Row{Cells: cells}
}

func reproductionRow(finding, control Observed) reports.Row {
	cells := reports.Cells(finding.Subject, finding.Tested(), finding.Expect.String(), finding.count(),
		control.Expect.String(), control.count(), finding.lost(), control.lost(), finding.length())
	cells[0].Code, cells[1].Code, cells[1].More = true, true, finding.versions()
	return reports.Row{Cells: cells}
}

// expectedAndCount says what was expected and how often it was observed.
func (o Observed) expectedAndCount() string {
	verdict, _, _ := strings.Cut(o.Expect.String(), ":")
	return verdict + ", " + o.count()
}

// count says how many runs were as expected, and why the first other run was not.
func (o Observed) count() string {
	if len(o.Runs) == 0 {
		return "not run"
	}
	as, first := 0, ""
	for _, run := range o.Runs {
		if missed := o.Missed(run.Results); missed == "" {
			as++
		} else if first == "" {
			first = " (" + missed + ")"
		}
	}
	return fmt.Sprintf("%d of %d", as, len(o.Runs)) + first
}

// versions lists the versions of servers and client modules in the last run.
func (o Observed) versions() string {
	if len(o.Runs) == 0 {
		return ""
	}
	return reports.Versions(o.Runs[len(o.Runs)-1].Header.Versions)
}

// updates is the number of updates; "" if the workload makes none.
func (o Observed) updates() string {
	each := o.each(func(r checker.Results) int64 { return r.Updates.Acknowledged })
	if slices.Max(append(each, 0)) == 0 {
		return ""
	}
	return spread(each)
}

func (o Observed) overlaps() string {
	return spread(o.each(func(r checker.Results) int64 { return r.Overlaps.EarlierPaused }))
}

// lost is the number of updates lost in all runs; "" if none could be lost.
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
	text := fmt.Sprintf("%d of %d: %s", p.Lost, p.Acknowledged, reports.LossInterval(p.LossInterval))
	published := o.Expect.PublishedLoss
	if published == 0 {
		return text
	}
	where := "not within"
	if p.LostLow <= published && published <= p.LostHigh {
		where = "within"
	}
	return text + fmt.Sprintf("; published: %s, %s", reports.Percent(published), where)
}

func (o Observed) length() string {
	lengths := o.each(func(r checker.Results) int64 { return r.End - r.Begin })
	if len(lengths) == 0 {
		return ""
	}
	return time.Duration(stats.Median(lengths)).Round(time.Second).String()
}

func (o Observed) each(value func(checker.Results) int64) []int64 {
	var values []int64
	for _, run := range o.Runs {
		values = append(values, value(run.Results))
	}
	return values
}

// spread shows the median of some values, and their range if they differ.
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
