package remedies

import (
	"cmp"
	"slices"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/workloads"
)

// Effect says how far a remedy helps against a cause.
type Effect string

// Effects, the best first.
const (
	Prevents Effect = "prevents it"
	Contains Effect = "makes it harmless" // two workers may hold the lock, and no data are lost
	Rarer    Effect = "makes it rarer"
	Softens  Effect = "prevents most losses only" // the violation stays
	Useless  Effect = "does not help"
)

// Advice is what a remedy does against a cause.
type Advice struct {
	Remedy string // a name in All
	Effect Effect
	Why    string // a clause: why the remedy has this effect, and its limits
	// Shown names the experiments that show the effect, as in "repro/etcd-11456/control": a reproduction, a
	// run of a claim, or the control of either. LOCK stands for a lock that has this experiment (perLock).
	Shown []string
}

// perLock lists the beginnings of experiment names that end in the name of a lock, and says which locks have
// such an experiment.
var perLock = []struct {
	name  string
	means func(clients.Info) bool
}{
	{"repro/holder-pause-fenced-", func(i clients.Info) bool { return i.PassesOn() && i.Token != "" }},
	{"repro/holder-pause-", clients.Info.PassesOn},
	{"claim/ask-paused-", func(i clients.Info) bool { return i.Name == "redis" || i.Name == "etcd" }},
}

// usual lists the locks that stand in for a lock without the experiment.
var usual = []string{"memory", "redis"}

// Experiments returns the names in Shown for a lock, each once. A usual lock stands in where the lock has no
// such experiment. The experiments that are nearest to the lock come first.
func (a Advice) Experiments(lock string) []string {
	var names []string
	for _, name := range a.Shown {
		if name = forLock(name, lock); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	nearest(names, lock)
	return names
}

func forLock(name, lock string) string {
	for _, p := range perLock {
		if !strings.HasPrefix(name, p.name+"LOCK") {
			continue
		}
		for _, candidate := range append([]string{lock}, usual...) {
			if info, known := clients.ByName(candidate); known && info.Name == candidate && p.means(info) && !strings.Contains(candidate, "+") {
				return strings.Replace(name, "LOCK", candidate, 1)
			}
		}
	}
	return name
}

// Command is the command line that runs an experiment.
func Command(experiment string) string {
	name, isRepro := strings.CutPrefix(experiment, "repro/")
	if !isRepro {
		return "lockcheck repro claims run --only " + experiment
	}
	for _, form := range []string{"control", "fast"} {
		if rest, is := strings.CutSuffix(name, "/"+form); is {
			name = rest + " --" + form
		}
	}
	return "lockcheck repro " + name
}

// For lists the advice against a cause, one of the checker.Cause constants. The most effective comes first.
// It is nil for an unknown cause.
func For(cause string) []Advice { return table()[cause] }

// Offer is advice for a run.
type Offer struct {
	Advice
	// Lacks says what the lock or the workload of the run lacks for the remedy, in words that follow the name
	// of the lock. It is "" if nothing is lacking or nothing is known.
	Lacks string
	// InForce: the run had the remedy already.
	InForce bool
}

// Offers returns the advice against a cause for the run with a header. Advice that the lock and the workload
// support comes first.
func Offers(cause string, h history.Header) []Offer {
	lock, known := LockOf(h)
	w, _ := workloads.ByName(h.Workload)
	var offers, lacking []Offer
	for _, a := range For(cause) {
		o := Offer{Advice: a}
		r := ByName(a.Remedy)
		if !r.Concerns(lock) {
			continue
		}
		o.InForce = r.InForce(lock, workloads.Guard(h.Guard), workloads.Use{Renew: h.Renewed, CheckBeforeWrite: h.Checked})
		if o.Lacks = r.Bars(w); known {
			o.Lacks = cmp.Or(o.Lacks, r.Lacks(lock, h.Lease))
		}
		if w.Readers && o.Effect == Contains { // a guard that keeps out stale writers does not protect readers
			o.Effect = Rarer
		}
		if o.Lacks != "" {
			lacking = append(lacking, o)
			continue
		}
		offers = append(offers, o)
	}
	return append(offers, lacking...)
}

// Helps says whether the advice would help against the cause in that run.
func (o Offer) Helps() bool { return o.Effect != Useless && o.Lacks == "" && !o.InForce }
