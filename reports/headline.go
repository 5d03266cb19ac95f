package reports

import (
	"slices"

	"lockcheck/checker"
)

// headline says what a situation shows, and why it is shown.
func (s situation) headline(rec *record) (title string, intro []fact) {
	if s.nothingViolated {
		return s.withoutIncident()
	}
	title = "The counterexample"
	if rank(s.Finding) == tolerated {
		title = "What the guard made harmless"
	} else if rank(s.Finding) == violatedNotRequired {
		title = "Seen, but not judged"
	}
	if s.runFailed {
		intro = append(intro, fact{"", "The run failed. This was found in what went before."})
	}
	intro = append(intro, fact{"", rec.tellIncident(s.Incident)})
	if o, ok := rec.overlapBehind(s.Incident); ok && s.Finding.Property != checker.MutualExclusion {
		intro = append(intro, fact{"What made it possible:", rec.tellIncident(o)})
	}
	if s.Incident.Why != "" {
		intro = append(intro, fact{"Why:", withCause(shorten(clean(s.Incident.Why), maxIncidentText), s.Incident) + "."})
	}
	return title, intro
}

// withoutIncident is the headline of a situation without an incident.
func (s situation) withoutIncident() (title string, intro []fact) {
	switch {
	case s.runFailed:
		return "Before the run failed", []fact{{"", "The run failed. These are the last holds that it recorded."}}
	case s.ofFault:
		return "A closer look at a fault", []fact{{"", s.lead() + " This is the first fault that mattered, and what the workers did meanwhile."}}
	}
	return "How the lock was used", []fact{{"", s.lead() + " No fault mattered. These are the first holds of the run."}}
}

// lead says what was violated, if anything was. A violation need not list incidents.
func (s situation) lead() string {
	if Plain(s.Finding.Verdict) != checker.Violation {
		return "Nothing was violated."
	}
	return "Violated: " + clean(string(s.Finding.Property)) + ", " + shorten(clean(s.Finding.Summary), maxIncidentText) + "."
}

func (rec *record) tellIncident(i checker.Incident) string {
	return "At " + at(i.From, rec.begin) + ": " + shorten(clean(i.What), maxIncidentText) + "."
}

// overlapBehind is the listed overlap between the two grants of an incident; false if there is none.
func (rec *record) overlapBehind(i checker.Incident) (checker.Incident, bool) {
	n := slices.IndexFunc(rec.overlaps, func(o checker.Incident) bool {
		return len(i.Grants) == 2 && len(o.Grants) == 2 && slices.Contains(o.Grants, i.Grants[0]) && slices.Contains(o.Grants, i.Grants[1])
	})
	if n < 0 {
		return checker.Incident{}, false
	}
	return rec.overlaps[n], true
}
