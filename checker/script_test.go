package checker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/history"
)

// script writes histories by hand. All times are in ms, and the lease is 100 ms.
type script struct {
	header history.Header
	events []history.Event
	op     int64
	seq    int64
	grants map[string]history.Event // worker and key of a grant
}

const lease = 100 * time.Millisecond

func ms(t float64) int64 { return int64(t * 1e6) }

func newScript() *script {
	return &script{
		header: history.Header{
			Format: history.Format, Schema: history.SchemaVersion, Lock: "test", Workload: "set", Guard: "none",
			Workers: []string{"w1", "w2", "w3", "w4"}, Servers: []string{"n1"}, Lease: lease,
		},
		grants: make(map[string]history.Event),
	}
}

func (s *script) servers(names ...string) *script {
	s.header.Servers = names
	return s
}

func (s *script) add(t float64, e history.Event) { s.addNS(ms(t), e) }

func (s *script) addNS(t int64, e history.Event) {
	e.Time = t
	s.events = append(s.events, e)
}

// do writes an operation under a known grant; with to < 0 it has no completion.
func (s *script) do(f history.Function, grant string, from, to float64, done history.Event) *script {
	s.op++
	e := s.grants[grant]
	e.Op, e.F, e.Type = s.op, f, history.Invoke
	s.add(from, e)
	if to < 0 {
		return s
	}
	done.Process, done.Key, done.Grant, done.Op, done.F = e.Process, e.Key, e.Grant, e.Op, f
	s.add(to, done)
	return s
}

// try begins an attempt of a worker on k0, or on the given key.
func (s *script) try(worker, grant string, from, to float64, done history.Event, key ...string) *script {
	name := "k0"
	if len(key) > 0 {
		name = key[0]
	}
	s.grants[grant] = history.Event{Process: worker, Key: name, Grant: grant}
	return s.do(history.Acquire, grant, from, to, done)
}

func (s *script) acquire(worker, grant string, from, to float64, key ...string) *script {
	return s.try(worker, grant, from, to, history.Event{Type: history.OK, Until: ms(from + 100)}, key...)
}

func (s *script) acquireToken(worker, grant string, from, to float64, token uint64) *script {
	return s.try(worker, grant, from, to, history.Event{Type: history.OK, Until: ms(from + 100), Token: token})
}

func (s *script) busy(worker, grant string, from, to float64, holder string) *script {
	return s.try(worker, grant, from, to, history.Event{Type: history.Fail, Error: "busy", Holder: holder})
}

func (s *script) release(grant string, from, to float64) *script {
	return s.do(history.Release, grant, from, to, history.Event{Type: history.OK})
}

func (s *script) notHeld(grant string, from, to float64) *script {
	return s.do(history.Release, grant, from, to, history.Event{Type: history.Fail, Error: "not held"})
}

func (s *script) renew(grant string, from, to float64) *script {
	return s.do(history.Renew, grant, from, to, history.Event{Type: history.OK, Until: ms(from + 100)})
}

// session puts the renewals of sessions on record.
func (s *script) session() *script {
	s.header.Session, s.header.Renewals, s.header.Tokens = true, true, true
	return s
}

// beat is a renewal that a client sends in the background, for the session of a grant or, without one, of the worker.
// With to < 0 it gets no answer.
func (s *script) beat(worker, grant string, from, to float64, note string) *script {
	s.op++
	e := history.Event{Process: worker, F: history.Renew, Type: history.Invoke, Op: s.op, Key: s.grants[grant].Key, Grant: grant, Note: note}
	s.add(from, e)
	if e.Type = history.OK; to >= 0 {
		s.add(to, e)
	}
	return s
}

func (s *script) lost(grant string, at float64, by string) *script {
	e := s.grants[grant]
	e.F, e.Type, e.Error = history.Lost, history.Info, by
	s.add(at, e)
	return s
}

func (s *script) access(f history.Function, typ history.Type, grant string, at float64, element, base, version int64) *script {
	s.seq++
	g := s.grants[grant]
	s.add(at, history.Event{
		Process: history.Resource, Client: g.Process, F: f, Type: typ, Key: g.Key, Grant: grant,
		Seq: s.seq, Element: element, Base: base, Version: version,
	})
	return s
}

func (s *script) write(grant string, at float64, element, base, version int64) *script {
	return s.access(history.Write, history.OK, grant, at, element, base, version)
}

func (s *script) read(grant string, at float64, version int64) *script {
	return s.access(history.Read, history.OK, grant, at, 0, 0, version)
}

// deferred records that a fault held back a write under a grant.
func (s *script) deferred(grant string, at float64, fault string) *script {
	g := s.grants[grant]
	s.add(at, history.Event{Process: history.Resource, Type: history.Info, F: history.Deferred, Key: g.Key, Grant: grant, Client: g.Process, Note: fault})
	return s
}

// caught records that the last call of a grant was stopped for a fault.
func (s *script) caught(grant string, at float64, fault string) *script {
	e := s.grants[grant]
	e.F, e.Type, e.Op, e.Note = history.Caught, history.Info, s.op, fault
	s.add(at, e)
	return s
}

func (s *script) then(change func(*script) *script) *script { return change(s) }

// tryWrite is a write of a worker that may not have reached the resource.
func (s *script) tryWrite(grant string, at float64, element int64) *script {
	s.op++
	e := s.grants[grant]
	e.Op, e.F, e.Type, e.Element = s.op, history.Write, history.Invoke, element
	s.add(at, e)
	return s
}

func (s *script) final(key string, value string) *script { return s.finalAt(9000, key, value) }

func (s *script) finalAt(at float64, key string, value string) *script {
	s.add(at, history.Event{Process: history.Resource, Type: history.OK, F: history.Final, Key: key, Value: json.RawMessage(value)})
	return s
}

func (s *script) phase(at float64, name string) *script {
	s.add(at, history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: name})
	return s
}

func (s *script) stalled(from, to float64) *script {
	s.add(to, history.Event{Process: history.Harness, Type: history.Info, F: history.Stalled, From: ms(from)})
	return s
}

func (s *script) stage(at float64, f history.Fault) *script {
	s.add(at, history.Event{Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Fault: &f})
	return s
}

// fault goes through all five stages. It is in force from 1 ms after from until to.
func (s *script) fault(f history.Fault, from, to float64) *script {
	for _, st := range []struct {
		stage    history.Stage
		from, to float64
	}{
		{history.Requested, from, from},
		{history.Applied, from, from + 1},
		{history.Proven, from + 1, from + 1},
		{history.Healed, to, to + 1},
		{history.ProvenHealed, to + 1, to + 1},
	} {
		f.Stage, f.From, f.To = st.stage, ms(st.from), ms(st.to)
		s.stage(st.to, f)
	}
	return s
}

func (s *script) pause(id string, from, to float64, targets ...string) *script {
	return s.fault(history.Fault{ID: id, Kind: "pause", Targets: targets}, from, to)
}

// end closes a complete run.
func (s *script) end() *script { return s.phase(9001, history.PhaseEnd) }

func (s *script) with(change func(*history.Header)) *script {
	change(&s.header)
	return s
}

func (s *script) history(t testing.TB) *history.History {
	t.Helper()
	h := &history.History{Header: s.header, Events: slices.Clone(s.events)}
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	for i := range h.Events {
		h.Events[i].Index = int64(i)
	}
	if err := history.Validate(h); err != nil {
		t.Fatalf("the script is no valid history: %v", err)
	}
	return h
}

func (s *script) check(t testing.TB) Results {
	t.Helper()
	return Check(s.history(t), Options{PorcupineLimit: 5 * time.Second})
}

func (r Results) of(p Property) Finding { return r.Finding(p) }

var milliseconds = regexp.MustCompile(`(\d+)000000\b`)

// factsText formats facts for comparisons and substring searches: as JSON without quotes, with whole milliseconds
// as such.
func factsText(facts any) string {
	text, err := json.Marshal(facts)
	if err != nil {
		return err.Error()
	}
	return milliseconds.ReplaceAllString(strings.ReplaceAll(string(text), `"`, ""), "${1}ms")
}

// bug says that lockcheck found a bug in itself.
func (r Results) bug() bool {
	return slices.ContainsFunc(r.of(Assumptions).Facts, func(f Fact) bool { return f.Kind.Bug() })
}

func (r Results) dump() string {
	text := string(r.Verdict) + "\n"
	for _, f := range r.Findings {
		text += fmt.Sprintf("  %-17s %-15s %d %s\n", f.Property, f.Verdict, f.Total, factsText(f.Facts))
		for _, v := range f.Violations {
			text += "      " + factsText(v) + "\n"
		}
	}
	return text
}
