package present

import (
	"fmt"
	"slices"
	"strings"

	"lockcheck/checker"
	"lockcheck/checker/application"
	"lockcheck/history"
)

// aboutInvariants says how the invariants of an application were answered.
func (p presenter) aboutInvariants(f checker.Fact) string {
	invariant := "invariant " + name(f.Keys, 0)
	switch f.Kind {
	case application.FactNoInvariants:
		return "the app file has no invariants"
	case application.FactViolated:
		text := fmt.Sprintf("%s did not hold, first seen at %s", invariant, p.at(f.At))
		if f.N > 1 {
			text += fmt.Sprintf(" (%d incidents)", f.N)
		}
		return text
	case application.FactNeverAnswered:
		return explained(invariant+" was never answered", f.Said)
	case application.FactFinalUnanswered:
		return explained(invariant+" was not answered after the faults", f.Said)
	case application.FactNothingAccepted:
		return invariant + " cannot be judged: the load reported no accepted work"
	case application.FactTooEarly:
		return fmt.Sprintf("%s was last asked before %s had passed since the last fault", invariant, length(f.Limit))
	case application.FactHealUnknown:
		return fmt.Sprintf("%s cannot be judged: nobody knows when %s ended", invariant, listed(f.Faults))
	case application.FactHeld:
		return fmt.Sprintf("%s to %s held", count(f.N, "answer", "answers"), count(f.Of, "invariant", "invariants"))
	case application.FactUnknownAnswers:
		return fmt.Sprintf("%d of %s had no answer", f.N, count(f.Of, "question", "questions"))
	case application.FactLongestGap:
		text := fmt.Sprintf("the longest gap between two answers was %s (%s, from %s", length(f.Length), name(f.Keys, 0), p.at(f.At))
		if len(f.Faults) > 0 {
			text += ", during " + listed(f.Faults)
		}
		return text + ")"
	}
	return ""
}

// aboutResource says what was written to the resource of an application.
func (p presenter) aboutResource(f checker.Fact) string {
	switch f.Kind {
	case application.FactNoResource:
		return "the app file has no resource (app.resource)"
	case application.FactOverwritten:
		return fmt.Sprintf("%s by a client that had not seen %s (%s judged)",
			count(f.N, "value in the resource was replaced", "values in the resource were replaced"), oneOrMany(f.N, "it", "them"), count(f.Of, "replacement", "replacements"))
	case application.FactReplacedSeen:
		return count(f.N, "value", "values") + " in the resource " + oneOrMany(f.N, "was", "were") + " replaced, each by a client that had seen it"
	case application.FactReplacedBlind:
		return "not judged: " + count(f.N, "replacement", "replacements") + " by a client that had not read the value since its start, or said that it overwrites any version"
	case application.FactNothingReplaced:
		return "no client replaced a value that it had read from the resource"
	case application.FactRefused:
		return fmt.Sprintf("the resource refused %s for an old token or another version", count(f.N, "request", "requests"))
	}
	return ""
}

// overwritten says who had read what, who wrote in between, and who overwrote that.
func (p presenter) overwritten(i checker.Incident) string {
	o, by, other, last := i.Overwrite, name(i.Workers, 0), name(i.Workers, 1), i.Figures.Next-1
	knew := fmt.Sprintf("read version %d of %s at %s", o.Seen, i.Key, p.at(o.SeenAt))
	switch {
	case o.Wrote:
		knew = fmt.Sprintf("wrote version %d of %s at %s", o.Seen, i.Key, p.at(o.SeenAt))
	case o.Seen == 0:
		knew = fmt.Sprintf("read at %s that there was no %s", p.at(o.SeenAt), i.Key)
	}
	wrote := fmt.Sprintf("wrote version %d", o.Unseen)
	if o.Appended != "" {
		wrote = fmt.Sprintf("appended %s, which made version %d,", o.Appended, o.Unseen)
	}
	replaced, unseen := "it", fmt.Sprintf("version %d", o.Unseen)
	if last > o.Unseen {
		replaced, unseen = fmt.Sprintf("version %d", last), fmt.Sprintf("versions %d to %d", o.Unseen, last)
	}
	text := fmt.Sprintf("%s %s, %s %s at %s, and %s then replaced %s by version %d without having seen %s", by, knew, other, wrote, p.at(o.UnseenAt), by, replaced, i.Figures.Next, unseen)
	if s := i.Figures.Holder; s != "" && s != checker.HolderHealthy {
		text += fmt.Sprintf(" (%s was %s in between)", by, s)
	}
	return text
}

// aboutReplicas says what the lines of the replicas of an application show.
func (p presenter) aboutReplicas(f checker.Fact) string {
	switch f.Kind {
	case application.FactUnsaid:
		return "the app file describes no line for " + f.Said
	case application.FactEndsUnsaid:
		return "the app file describes no line that ends a hold (releasing or released)"
	case application.FactNoHold:
		return "no replica said that it held a key; compare the pattern says.holding with what the replicas print"
	case application.FactFewHolders:
		return fmt.Sprintf("only %s ever held a key, so nothing shows that others are kept out", count(f.N, "holder", "holders"))
	case application.FactHoldersOverlap:
		return count(f.N, "hold began", "holds began") + " while another holder had the same key"
	case application.FactHoldersApart:
		return count(f.N, "hold", "holds") + ", never two at once"
	case application.FactStaleEffects:
		return count(f.N, "effect came", "effects came") + " after another holder had taken over"
	case application.FactEffectsCurrent:
		return count(f.N, "effect", "effects") + " in holds, none after another holder had taken over"
	case application.FactNoEffectHeld:
		return "no work was done in a hold"
	case application.FactTokensUnordered:
		return count(f.N, "token", "tokens") + ", no two of which are certain to be in order"
	case application.FactTokensLate:
		return count(f.N, "hold was", "holds were") + " reported after one with a greater token, perhaps by a late line"
	case application.FactDoneTwice:
		return count(f.N, "piece", "pieces") + " of work " + oneOrMany(f.N, "was", "were") + " done again"
	case application.FactDoneOnce:
		return count(f.N, "piece", "pieces") + " of work, none done twice"
	case application.FactNothingDone:
		return "no replica said that it did any work; compare the pattern says.did with what the replicas print"
	}
	return ""
}

// aboutApplication says whether the run of an application did its work.
func (p presenter) aboutApplication(f checker.Fact) string {
	switch f.Kind {
	case application.FactNoWork:
		if f.N > 0 {
			return fmt.Sprintf("only %s seen, %d are needed", count(f.N, "effect was", "effects were"), f.Of) + p.enoughWork(f.N, f.Of)
		}
		return "nothing shows that the application did any work; say in the app file what does: load, says.did or work"
	case application.FactFewReplicas:
		return fmt.Sprintf("only %s started, 2 are needed; write app.replicas: 2 or more in the app file", count(f.N, "replica", "replicas"))
	case application.FactNothingJudged:
		return "the app file has no invariants and describes no lines, so there is nothing to judge; add an invariant"
	case application.FactLinesLost:
		return explained("lines of "+name(f.Workers, 0)+" are missing", f.Said)
	case application.FactWorkUnanswered:
		return explained(fmt.Sprintf("work was never answered (unknown %d of %d)", f.N, f.N), f.Said)
	case application.FactWorked:
		return p.applicationWork()
	}
	return ""
}

// applicationWork counts what the run shows of the application's work, such as replicas, restarts, holds and
// effects.
func (p presenter) applicationWork() string {
	s := p.results.Application
	if s == nil {
		return ""
	}
	parts := []string{count(int64(len(s.Replicas)), "replica", "replicas")}
	for _, of := range []struct {
		n         int64
		one, many string
	}{{s.Restarts, "restart", "restarts"}, {s.Holds, "hold", "holds"}, {s.Effects, "effect", "effects"}, {s.Writes, "write to the resource", "writes to the resource"}, {s.Accepted, "accepted piece of work", "accepted pieces of work"}} {
		if of.n > 0 {
			parts = append(parts, count(of.n, of.one, of.many))
		}
	}
	return strings.Join(parts, ", ")
}

// applicationIncident says what happened to an application.
func (p presenter) applicationIncident(i checker.Incident) string {
	first, second, f := name(i.Workers, 0), name(i.Workers, 1), i.Figures
	switch i.Kind {
	case application.KindHoldersOverlap:
		return fmt.Sprintf("%s and %s both held %s for %s (%s was %s)", first, second, i.Key, length(between(i)), first, f.Holder)
	case application.KindStaleEffect:
		return fmt.Sprintf("%s did %s in its hold of %s, %s after %s had said that it held %s (%s was %s)", first, f.ID, i.Key, length(f.Length), second, i.Key, first, f.Holder)
	case application.KindDoneTwice:
		later := ""
		if f.Length > 0 { // 0 is a lower bound: the second line may have been read late
			later = length(f.Length) + " later "
		}
		return fmt.Sprintf("%s was done by %s, and again %sby %s", f.ID, first, later, second)
	}
	if i.Overwrite != nil {
		return p.overwritten(i)
	}
	if i.Seen == nil {
		return ""
	}
	invariant := "invariant " + i.Key
	switch i.Kind {
	case application.KindRepeatedWork, application.KindNever:
		return explained(invariant+" did not hold", rows(*i.Seen)) + p.lasting(i)
	case application.KindAlways:
		return invariant + " did not hold: its answer was empty" + p.lasting(i)
	case application.KindNotKept:
		return fmt.Sprintf("%s lacks %d of %s at the end: %s", invariant, i.Seen.Count, count(i.Seen.Of, "accepted piece of work", "accepted pieces of work"), rows(*i.Seen))
	case application.KindEventually:
		return fmt.Sprintf("%s did not hold %s after the last fault", invariant, length(f.Length))
	}
	return ""
}

// lasting says until when each answer was like the first one.
func (p presenter) lasting(i checker.Incident) string {
	if i.To <= i.From {
		return ""
	}
	return " (until " + p.at(i.To) + ")"
}

// rows joins the rows of an answer, with commas between the columns and the names of the columns.
func rows(s checker.Seen) string {
	var named []string
	for _, row := range s.Rows {
		named = append(named, namedRow(s.Columns, row))
	}
	text := strings.Join(named, "; ")
	if more := s.Count - int64(len(s.Rows)); more > 0 && len(s.Rows) > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// namedRow is a row with the names of its columns, or without them where they do not fit it: a value may have a tab.
func namedRow(names []string, row string) string {
	values := strings.Split(row, "\t")
	if len(names) == len(values) {
		for i, name := range names {
			values[i] = name + " " + values[i]
		}
	}
	return strings.Join(values, ", ")
}

// maxNamedFaults is how many faults a sentence names.
const maxNamedFaults = 3

// seen says when an invariant was last known to hold, which faults were in force when it became false, and
// what the replicas had reported.
func (p presenter) seen(s checker.Seen) string {
	if s.Invariant == history.InvariantKept {
		return ""
	}
	parts := []string{"no answer showed before that it held"}
	if s.Held != 0 {
		parts[0] = "it held when it was asked at " + p.at(s.Held)
	}
	for n, f := range s.Faults {
		if n == maxNamedFaults {
			parts = append(parts, fmt.Sprintf("and %d more faults", len(s.Faults)-n))
			break
		}
		text := fmt.Sprintf("%s was in force from %s", faultName(f), p.at(f.From))
		if f.To != 0 {
			text += " to " + p.at(f.To)
		}
		parts = append(parts, text)
	}
	for _, h := range s.Hit {
		parts = append(parts, fmt.Sprintf("%s was %s", h.Replica, h.State))
	}
	for _, l := range s.Said {
		what := "did " + l.ID
		switch l.F {
		case history.Holding:
			what = "held " + l.Key
		case history.Write:
			what = "wrote " + l.Key
			if l.ID != "" {
				what = "appended " + l.ID + " to " + l.Key
			}
			parts = append(parts, fmt.Sprintf("%s last %s, at %s", l.Replica, what, p.at(l.At)))
			continue
		case history.Ended:
			parts = append(parts, fmt.Sprintf("%s ended at %s (%s)", l.Replica, p.at(l.At), l.Exit))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s last said that it %s, at %s", l.Replica, what, p.at(l.At)))
	}
	return joined(parts...)
}

// applicationCause explains a cause of violations by what the lines of the application show; "" for another
// name.
func applicationCause(name string) string {
	switch name {
	case application.CauseOverlappingHolders:
		return "the two who did the work held the lock at the same time"
	case application.CauseDecidedBeforeLock:
		return "the two holds do not overlap, so the lock did its part: the second holder decided on what it had read before it held the lock, did not look again, or could not see yet what the first had done"
	case application.CauseWithoutLock:
		return "one of the two did the work outside of any hold of its replica"
	case application.CauseHolderPaused:
		return "the earlier holder was paused between the beginning of its hold and that of the next one"
	case application.CauseHolderCutOff:
		return "the earlier holder was cut off between the beginning of its hold and that of the next one"
	case application.CauseHolderOutlasted:
		return "no fault hit the holders, but the earlier hold had lasted for longer than the lease that the app file names"
	case application.CauseHolderHealthy:
		return "no fault stopped the earlier holder or cut it off before the next hold began"
	}
	return ""
}

// watched says how well the invariants of an application were watched, and what the application did.
func (p presenter) watched() string {
	var parts []string
	for _, f := range p.results.Finding(checker.Invariants).Facts {
		if slices.Contains([]checker.FactKind{application.FactHeld, application.FactUnknownAnswers, application.FactLongestGap}, f.Kind) {
			parts = append(parts, p.fact(f))
		}
	}
	return joined(append(parts, p.applicationWork())...)
}

// violatedApplication says how a property of an application was violated. Of the facts about invariants it
// keeps only the violated invariants.
func (p presenter) violatedApplication(f checker.Finding) string {
	facts := f.Facts
	if f.Property == checker.Invariants {
		facts = slices.DeleteFunc(slices.Clone(facts), func(f checker.Fact) bool { return f.Kind != application.FactViolated })
	}
	return p.facts(facts)
}
