package checker

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"lockcheck/internal/stats"
)

// TestSchema2: the corpus has only histories of schema 1. Converted to schema 2 they are judged the same.
func TestSchema2(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "schema2", "*.gz"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	words := map[string]bool{`"expired":true`: false, `"grace_ns":`: false, `"note":"recovery"`: false}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		text, err := gunzipped(file)
		if err != nil {
			t.Fatal(err)
		}
		for word := range words {
			words[word] = words[word] || strings.Contains(string(text), word)
		}
		e := judgedEntry{name: name}
		if err := e.judgeRecord(file); err != nil {
			t.Fatal(name, err)
		}
		was, is := factsOf(t, entryOf(t, name).results), factsOf(t, e.results)
		for _, difference := range jsonDifferences(name, fromJSON(t, was), fromJSON(t, is)) {
			t.Error(difference)
		}
	}
	for word, seen := range words {
		if !seen {
			t.Errorf("none of them says %s", word)
		}
	}
}

// TestResultsOfSchema1: results of the corpus in schema 1 equal those of today, except for their sentences.
func TestResultsOfSchema1(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "schema1", "*.gz"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	var notified, bypassed, failovers, double, after, expired bool
	for _, file := range files {
		text, err := gunzipped(file)
		if err != nil {
			t.Fatal(err)
		}
		old, err := ResultsOfSchema1(text)
		if err != nil {
			t.Fatal(file, err)
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		var now Results
		if err := json.Unmarshal(asJSON(t, entryOf(t, name).results), &now); err != nil {
			t.Fatal(err)
		}
		now.Incidents, now.Measures.Handover = 0, stats.Histogram{} // schema 1 did not have them
		if !reflect.DeepEqual(wordless(old), wordless(now)) {
			t.Errorf("%s: %s", name, jsonDifferences("", fromJSON(t, asJSON(t, now)), fromJSON(t, asJSON(t, old))))
		}
		notified = notified || old.LossNotifications.Notified > 0 && old.Measures.Notified.N > 0
		bypassed = bypassed || old.Measures.Bypassed > 0
		failovers = failovers || old.Failovers.Holders > 0 && old.Measures.Failover.N > 0
		double = double || old.Overlaps.Count(DoubleGrant, "healthy") > 0
		after = after || old.Overlaps.Count(UseAfterExpiry, "") > 0
		expired = expired || old.Finding(MutualExclusion).Causes[CauseExpiredGrant] > 0 && old.Finding(NoExpiredGrant).Total > 0
	}
	if !notified || !bypassed || !failovers || !double || !after || !expired {
		t.Error("the files have nothing of", notified, bypassed, failovers, double, after, expired)
	}
	r, err := ResultsOfSchema1([]byte(`{"overlaps":{"broken_promises":5,"broken_paused":3,"broken_cut_off":2},"required":["no-dead-grant"]}`))
	if err != nil || r.Schema != Schema || r.Overlaps.Count(DoubleGrant, "") != 5 || r.Required[0] != NoExpiredGrant ||
		r.Overlaps.DoubleGrantsPaused != 3 || r.Overlaps.DoubleGrantsCutOff != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func entryOf(t *testing.T, name string) judgedEntry {
	t.Helper()
	for _, e := range judgedCorpus(t) {
		if e.name == name {
			return e
		}
	}
	t.Fatal("the corpus has no", name)
	return judgedEntry{}
}

// wordless is results without their sentences, and without the facts that replaced them in schema 3.
func wordless(r Results) Results {
	r.Sentence = ""
	for i := range r.Faults {
		f := &r.Faults[i]
		f.Missed, f.Said, f.Reason = "", "", ""
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Summary, f.Facts = "", nil
		for j := range f.Violations {
			v := &f.Violations[j]
			v.What, v.Why, v.Kind, v.Figures, v.Explanation, v.LastHold = "", "", "", IncidentFigures{}, nil, nil
		}
	}
	return r
}
