package nemesis

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

func TestJudgeSpeed(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)
	reading := func(told, asked, took time.Duration) agent.Reading {
		return agent.Reading{Server: at.Add(told), Asked: agent.Moment{From: asked.Nanoseconds(), To: (asked + took).Nanoseconds()}}
	}
	first := reading(0, 0, time.Millisecond)
	const second, quick = time.Second, time.Millisecond
	for _, c := range []struct {
		name string
		want float64
		last agent.Reading
		hint string // of the evidence; of the error if it begins with a comma
	}{
		{"as fast as it should", 1.1, reading(1100*time.Millisecond, second, quick), "1.0989 to 1.1011 s a second"},
		{"true speed", 1.1, reading(second, second, quick), ", not 1.1"},
		{"too fast", 1.1, reading(1200*time.Millisecond, second, quick), ", not 1.1"},
		{"the other way", 0.9, reading(1100*time.Millisecond, second, quick), ", not 0.9"},
		{"slow", 0.5, reading(500*time.Millisecond, second, quick), "0.4995 to 0.5005 s a second"},
		{"asked too soon to tell", 1.1, reading(2200*time.Microsecond, 2*quick, quick), ", which may be true speed"},
		{"answered too late to tell", 1.1, reading(1100*time.Millisecond, second, second), ", which may be true speed"},
		{"as fast as NTP slews, too soon", 1.0005, reading(1000500*time.Microsecond, second, quick), ", which may be true speed"},
		{"as fast as NTP slews", 1.0005, reading(10005*time.Millisecond, 10*second, quick), "1.0004 to 1.0006 s a second"},
		{"whole seconds, too soon", 2, reading(2*second, second, quick), ", which may be true speed"},
		{"whole seconds", 2, reading(8*second, 4*second, quick), "1.7"},
		{"middles of seconds, too soon", 2, reading(second, second/2, quick), ", which may be true speed"},
		{"middles of seconds", 2, reading(8*second, 4*second, quick), "1.7"},
		{"the same question", 2, first, "asked only once"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := first
			if strings.Contains(c.name, "seconds") {
				first.Server, c.last.Server = first.Server.Truncate(second), c.last.Server.Truncate(second)
			}
			if strings.HasPrefix(c.name, "middles") { // probes of servers that report whole seconds add half a second
				first.Server, c.last.Server = first.Server.Add(second/2), c.last.Server.Add(second/2)
			}
			evidence, err := judgeSpeed("n1", first, c.last, c.want)
			if bad := strings.HasPrefix(c.hint, ",") || c.name == "the same question"; (err != nil) != bad {
				t.Fatalf("%q, %v", evidence, err)
			}
			if err != nil {
				evidence = err.Error()
			}
			if !strings.Contains(evidence, c.hint) {
				t.Errorf("%q, want %q in it", evidence, c.hint)
			}
		})
	}
}

func TestJudgeTrue(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)
	for _, c := range []struct {
		name         string
		ahead, took  time.Duration
		wholeSeconds bool
		good         bool
	}{
		{"true time", 0, 0, false, true},
		{"within the question", time.Millisecond, time.Millisecond, false, true},
		{"after the answer", 2 * time.Millisecond, time.Millisecond, false, false},
		{"before the question", -time.Millisecond, time.Millisecond, false, false},
		{"whole seconds", 0, time.Millisecond, true, true},
		{"a second behind", -time.Second, time.Millisecond, true, false},
		{"middle of a second", 376544 * time.Microsecond, time.Millisecond, false, true},
		{"middle of the second before", -623456 * time.Microsecond, time.Millisecond, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			told := at.Add(c.ahead)
			if c.wholeSeconds {
				told = told.Truncate(time.Second)
			}
			evidence, err := judgeTrue("n1", agent.Reading{Server: told, Before: at, After: at.Add(c.took)})
			if (err == nil) != c.good {
				t.Errorf("%q, %v", evidence, err)
			}
		})
	}
}

// patched is a server whose wall clock follows its clock file, as with the vDSO driver; without a path it has
// true time.
type patched struct{ path string }

func (patched) Ready(context.Context, string) error             { return nil }
func (patched) Version(context.Context, string) (string, error) { return "", nil }

func (p patched) Clock(context.Context, string) (time.Time, error) {
	now := time.Now()
	if p.path == "" {
		return now, nil
	}
	content, err := os.ReadFile(p.path)
	if err != nil {
		return now, err
	}
	number := func(at int) int64 { return int64(binary.NativeEndian.Uint64(content[at:])) }
	off := number(0) + int64(float64(number(8))/1e9*float64(now.UnixNano()-number(16)))
	return now.Add(time.Duration(off)), nil
}

// TestClockRate changes the speed of a clock that follows its file, and of one that does not. Only the first is
// proven, and both show true time at the end.
func TestClockRate(t *testing.T) {
	for _, c := range []struct {
		speed   float64
		follows bool
	}{{1.5, true}, {0.5, true}, {1.5, false}} {
		ctx, cancel := context.WithCancel(bounded(t))
		path := filepath.Join(t.TempDir(), "offset")
		server := patched{path}
		d := &diary{t: t}
		if !c.follows {
			server.path = ""
			d.on = func(f history.Fault) {
				if f.Stage == history.Applied {
					cancel() // the proof cannot come
				}
			}
		}
		n1 := &clusters.Node{Name: "n1", Host: agent.Local{ClockFile: path, ClockDriver: agent.VDSO, Probes: server}}
		d.nemesis(Environment{Servers: []*clusters.Node{n1}, Lease: 2 * time.Second},
			Step{Fault: "clock-rate", Target: "n1", Speed: c.speed, For: short},
		).Run(ctx, plenty)
		cancel()
		proof := history.Proven
		if !c.follows {
			proof = history.Unproven
		}
		if want := []string{
			"requested clock-rate-1", "begin clock-rate-1", "applied clock-rate-1", string(proof) + " clock-rate-1",
			"healed clock-rate-1", "end clock-rate-1", "proven-healed clock-rate-1",
		}; !slices.Equal(d.order(), want) {
			t.Errorf("%+v: %v, want %v", c, d.order(), want)
		}
		if f := d.stage("clock-rate-1", proof); f.Speed != c.speed {
			t.Errorf("%+v: speed %g, %q", c, f.Speed, f.Evidence)
		}
	}
}

// TestSpeeds: a speed that is out of range, or too near to true speed to be proven, is refused.
func TestSpeeds(t *testing.T) {
	for _, c := range []struct {
		fault string
		speed float64
		good  bool
	}{
		{"clock-rate", 1.0005, true}, {"clock-rate", 0.9995, true}, {"clock-rate", 10, true}, {"clock-rate", 0.1, true},
		{"clock-rate", 1, false}, {"clock-rate", 1.0001, false}, {"clock-rate", 11, false}, {"clock-rate", 0, false}, {"clock-rate", -1, false},
		{"pause", 2, false},
	} {
		schedule := Schedule{Steps: []Step{{Fault: c.fault, Speed: c.speed, For: short}}}
		if err := schedule.Check(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
