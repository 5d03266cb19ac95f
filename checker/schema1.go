package checker

import (
	"encoding/json"

	"lockcheck/internal/stats"
)

// Names in Results of schema 1 that were changed since. They are used only here.
var (
	schema1Properties = map[Property]Property{"no-dead-grant": NoExpiredGrant}
	schema1Classes    = map[string]string{
		"broken promise": DoubleGrant, "outlived lease": UseAfterExpiry, "dead grant": expiredGrant,
	}
	schema1Causes = map[string]string{"grant that was dead when it arrived": CauseExpiredGrant}
)

// schema1 has the fields of Results that had other names.
type schema1 struct {
	Overlaps struct {
		BrokenPromises int64 `json:"broken_promises"`
		OutlivedLeases int64 `json:"outlived_leases"`
		BrokenHealthy  int64 `json:"broken_healthy"`
		BrokenPaused   int64 `json:"broken_paused"`
		BrokenCutOff   int64 `json:"broken_cut_off"`
	} `json:"overlaps"`
	Handovers FailoverSummary `json:"handovers"`
	Notices   struct {
		LossNotificationSummary
		Told int64 `json:"told"`
	} `json:"notices"`
	Measures struct {
		Handover  stats.Histogram `json:"handover"`
		Told      stats.Histogram `json:"told"`
		Overtaken int64           `json:"overtaken"`
	} `json:"measures"`
}

// ResultsOfSchema1 reads Results of schema 1 and converts them to Schema. Their sentences remain as they were
// written.
func ResultsOfSchema1(text []byte) (Results, error) {
	var r Results
	var old schema1
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &old); err != nil {
		return r, err
	}
	r.Schema = Schema
	o := &r.Overlaps
	o.DoubleGrants, o.UsesAfterExpiry = old.Overlaps.BrokenPromises, old.Overlaps.OutlivedLeases
	o.DoubleGrantsHealthy, o.DoubleGrantsPaused, o.DoubleGrantsCutOff = old.Overlaps.BrokenHealthy, old.Overlaps.BrokenPaused, old.Overlaps.BrokenCutOff
	r.Failovers, r.LossNotifications = old.Handovers, old.Notices.LossNotificationSummary
	r.LossNotifications.Notified = old.Notices.Told
	r.Measures.Failover, r.Measures.Notified, r.Measures.Bypassed = old.Measures.Handover, old.Measures.Told, old.Measures.Overtaken
	for i := range r.Required {
		rename(&r.Required[i], schema1Properties)
	}
	for i := range r.Findings {
		r.Findings[i].fromSchema1()
	}
	return r, nil
}

func (f *Finding) fromSchema1() {
	rename(&f.Property, schema1Properties)
	for was, is := range schema1Causes {
		if n, there := f.Causes[was]; there {
			delete(f.Causes, was)
			f.Causes[is] = n
		}
	}
	for i := range f.Violations {
		rename(&f.Violations[i].Class, schema1Classes)
		rename(&f.Violations[i].Cause, schema1Causes)
	}
}

func rename[T comparable](name *T, names map[T]T) {
	if now, old := names[*name]; old {
		*name = now
	}
}
