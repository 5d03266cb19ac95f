package application

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockcheck/checker"
	"lockcheck/history"
)

// second is where the times of scripts begin, which are in ms.
const second = int64(time.Second)

// everything is a header of three replicas that say all there is, and an invariant of each kind.
func everything() history.Header {
	return saying(history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Workload: history.WorkloadApplication,
		Application: &history.Application{Replicas: []string{"b1", "b2", "b3"}},
	}, said()...)
}

// said are the functions of lines that an app file can describe.
func said() []history.Function {
	return []history.Function{history.Holding, history.Releasing, history.Released, history.Did, history.Accepted}
}

// saying limits what is said.
func saying(h history.Header, says ...history.Function) history.Header {
	app := *h.Application
	app.Says, h.Application = make(map[history.Function][]string), &app
	for _, f := range says {
		app.Says[f] = []string{"."}
	}
	return h
}

// asking adds an invariant.
func asking(h history.Header, name, kind string) history.Header {
	app := *h.Application
	i := history.Invariant{Name: name, Kind: kind, Question: "?"}
	if kind == history.InvariantEventually {
		i.Within = 100 * time.Millisecond
	}
	app.Invariants, h.Application = append(slices.Clone(app.Invariants), i), &app
	return h
}

// script makes a history of lines such as
//
//	10-12 b1 holding k token=5 who=t1      20 b1 did j1      30 load j1
//	10-12 resource b1 read c         20 resource b1 put c base=1        30 resource b1 append c line      40 resource b1 refused c
//	40-41 ask ok billed rows=a,b           50 phase final    60-80 pause b1 (with dropped=0, by=b1 for the moment of holding)
//
// in order of their times, in ms. A run without a phase of its own gets those of a complete one.
func script(t *testing.T, header history.Header, lines ...string) *history.History {
	t.Helper()
	h := &history.History{Header: header}
	for n, line := range lines {
		h.Events = append(h.Events, events(t, strings.Fields(line), n)...)
	}
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return cmp.Compare(a.Time, b.Time) })
	number(h.Events)
	if err := history.Validate(h); err != nil {
		t.Fatal(err)
	}
	return h
}

// number gives events their numbers, and those of the resource their versions.
func number(events []history.Event) {
	seq, versions := int64(0), make(map[string]int64)
	for i := range events {
		e := &events[i]
		if e.Index = int64(i); e.Process != history.Resource {
			continue
		}
		if e.F == history.Write && e.Type == history.OK {
			versions[e.Key]++
		}
		seq++
		e.Seq, e.Version = seq, versions[e.Key]
	}
}

func events(t *testing.T, words []string, n int) []history.Event {
	t.Helper()
	from, to, _ := strings.Cut(words[0], "-")
	e := history.Event{From: moment(t, from), Time: moment(t, cmp.Or(to, from)), Type: history.Info, Process: words[1]}
	options := make(map[string]string)
	var plain []string
	for _, w := range words[2:] {
		if name, value, is := strings.Cut(w, "="); is {
			options[name] = value
		} else {
			plain = append(plain, w)
		}
	}
	switch {
	case words[1] == "phase":
		return []history.Event{{Process: history.Harness, Type: history.Info, F: history.Phase, Note: plain[0], Error: options["error"], Time: e.Time}}
	case words[1] == "ask":
		e.Process, e.F, e.Key, e.Type = history.Asker, history.Asked, plain[1], history.Type(plain[0])
		if e.Error = options["error"]; e.Type != history.Info {
			e.Answer = &history.Answer{}
			if rows := options["rows"]; rows != "" {
				e.Answer.Rows = strings.Split(rows, ",")
			}
			e.Answer.Count = int64(len(e.Answer.Rows))
		}
	case words[1] == history.Load && options["error"] != "":
		e.F, e.Error = history.Missed, options["error"]
	case words[1] == history.Resource:
		e.Client, e.F, e.Type, e.Key = plain[0], history.Write, history.OK, plain[2]
		e.Base, _ = strconv.ParseInt(options["base"], 10, 64)
		e.Note = strings.ReplaceAll(options["note"], "_", " ")
		switch plain[1] {
		case "read":
			e.F = history.Read
		case "append":
			e.ID = plain[3]
		case "refused":
			e.Type, e.Error = history.Fail, "refused"
		}
	case words[1] == history.Load:
		e.F, e.Type, e.ID = history.Accepted, history.OK, plain[0]
	case history.EffectsOf(words[1]) != nil:
		return faultEvents(e, words[1], plain, options, n)
	default:
		e.F = history.Function(plain[0])
		if e.F == history.Did {
			e.ID = plain[1]
		} else if len(plain) > 1 {
			e.Key = plain[1]
		}
		token, _ := strconv.ParseUint(options["token"], 10, 64)
		e.Token, e.Client, e.Error = token, options["who"], options["error"]
	}
	return []history.Event{e}
}

// faultEvents are those of a fault that is real, from its beginning to its end. One with healed=no has no end, one with
// proven=no no proof.
func faultEvents(e history.Event, kind string, targets []string, options map[string]string, n int) []history.Event {
	var all []history.Event
	add := func(stage history.Stage, at int64) {
		f := &history.Fault{ID: fmt.Sprintf("f%d", n), Kind: kind, Stage: stage, Targets: targets, From: at, To: at, Role: options["role"]}
		if f.Actor = options["by"]; f.Actor != "" {
			f.Moment = history.MomentHolding
		}
		if dropped, is := options["dropped"]; is && stage == history.Healed {
			count, _ := strconv.ParseInt(dropped, 10, 64)
			f.Dropped = &count
		}
		all = append(all, history.Event{Process: history.Nemesis, Type: history.Info, F: history.FaultPhase, Time: at, Fault: f})
	}
	add(history.Requested, e.From)
	add(history.Applied, e.From)
	if options["proven"] != "no" {
		add(history.Proven, e.From)
	}
	if options["healed"] != "no" {
		add(history.Healed, e.Time)
		add(history.ProvenHealed, e.Time)
	}
	return all
}

func moment(t *testing.T, ms string) int64 {
	t.Helper()
	at, err := strconv.ParseFloat(ms, 64)
	if err != nil {
		t.Fatal(err)
	}
	return second + int64(at*float64(time.Millisecond))
}

// finding is what was found of a property.
func finding(t *testing.T, p checker.Property, header history.Header, lines ...string) checker.Finding {
	t.Helper()
	return Check(script(t, header, lines...)).Finding(p)
}

// judgement is a case of a table: the verdict, and how many violations there are.
type judgement struct {
	name    string
	header  history.Header
	lines   []string
	verdict checker.Verdict
	total   int
	cause   string
	fact    checker.FactKind // the first one; "" for any
}

func (j judgement) test(t *testing.T, p checker.Property) {
	t.Helper()
	f := finding(t, p, j.header, j.lines...)
	if f.Verdict != j.verdict || f.Total != j.total || j.fact != "" && (len(f.Facts) == 0 || f.Facts[0].Kind != j.fact) {
		t.Errorf("%s: %s with %d, want %s with %d (%s): %+v", j.name, f.Verdict, f.Total, j.verdict, j.total, j.fact, f)
	}
	if j.total == 0 {
		return
	}
	if got := f.Violations[0].Cause; got != j.cause {
		t.Errorf("%s: cause %q, want %q", j.name, got, j.cause)
	}
}
