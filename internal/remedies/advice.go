package remedies

import (
	"cmp"
	"slices"
	"strings"

	"lockcheck/clients"
	"lockcheck/history"
	"lockcheck/workloads"
)

// Effect is how far a remedy goes against a cause.
type Effect string

// Effects, the best first.
const (
	Prevents Effect = "prevents it"
	Contains Effect = "makes it harmless" // two may hold the lock, and no data are lost
	Rarer    Effect = "makes it rarer"
	Softens  Effect = "prevents most losses only" // the violation stays
	Useless  Effect = "does not help"
)

// Advice is what a remedy does against a cause.
type Advice struct {
	Remedy string // a name in All
	Effect Effect
	Why    string // a clause: on what that rests, and where it ends
	// Shown names the experiments that show it, as in "repro/etcd-11456/control": a
	// reproduction, a run of a claim, or the control of either. LOCK in it is a lock for
	// which there is one (perLock).
	Shown []string
}

// perLock are the parts of names after which that of a lock follows, and the locks that
// there are experiments for.
var perLock = []struct {
	name  string
	means func(clients.Info) bool
}{
	{"repro/holder-pause-fenced-", func(i clients.Info) bool { return i.PassesOn() && i.Token != "" }},
	{"repro/holder-pause-", clients.Info.PassesOn},
	{"claim/ask-paused-", func(i clients.Info) bool { return i.Name == "redis" || i.Name == "etcd" }},
}

// usual are the locks that stand in for one that an experiment is not made for.
var usual = []string{"memory", "redis"}

// Experiments are the names of Shown for a lock, or for a usual one where there is none for
// it, each once; those that are nearest to the lock come first.
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

// Command is the line that runs an experiment.
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

// For lists the advice against a cause, one of the checker.Cause constants, the most
// effective first; nil for one that it does not know.
func For(cause string) []Advice { return table()[cause] }

// Offer is advice for a run.
type Offer struct {
	Advice
	// Lacks says what the lock of the run or its workload lacks for it, in words that go on after
	// the name of the lock; "" for nothing, and where that is not known.
	Lacks string
	// InForce: the run had it.
	InForce bool
}

// Offers are the advice against a cause for the run with a header. What helps and is
// supported comes first.
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
		if w.Readers && o.Effect == Contains { // what keeps writers apart does not keep them from readers
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

// Helps says whether it does anything against the cause, in that run.
func (o Offer) Helps() bool { return o.Effect != Useless && o.Lacks == "" && !o.InForce }
