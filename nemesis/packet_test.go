package nemesis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"lockcheck/clusters"
	"lockcheck/clusters/agent"
	"lockcheck/history"
)

// badWire is a wire whose cuts affect packets as specified, with simulated times. The real cuts are tested in
// package agent.
type badWire struct {
	*wire
	others map[string]*badWire // by name
	bad    map[string]agent.Cut
	met    int64 // how many of our own packets the rules have counted
	asked  int   // how many connection attempts started here
	// answer changes the result of the n-th attempt, counted from 1.
	answer func(n int, took time.Duration, err error) (time.Duration, error)
	lacks  error // what the kernel lacks
}

func (w *badWire) Cut(ctx context.Context, cut agent.Cut) (agent.Moment, error) {
	moment, err := w.wire.Cut(ctx, cut)
	if err == nil && !w.ineffective {
		w.bad[cut.ID] = cut
	}
	return moment, err
}

func (w *badWire) Heal(ctx context.Context, id string) (agent.Moment, int64, error) {
	moment, dropped, err := w.wire.Heal(ctx, id)
	if err == nil {
		delete(w.bad, id)
	}
	return moment, dropped + w.met, err
}

func (w *badWire) Offers(context.Context, agent.Cut) error { return w.lacks }

func (w *badWire) Dropped(context.Context, string) (int64, error) { return w.met, nil }

// Answer loses every second attempt under packet loss.
func (w *badWire) Answer(_ context.Context, address string, _ time.Duration) (time.Duration, error) {
	w.asked++
	took, err := time.Millisecond, error(nil)
	if host, _, _ := net.SplitHostPort(address); w.others[host] == nil {
		return 0, fmt.Errorf("nobody has the address %q", address)
	}
	for _, cut := range w.bad {
		switch {
		case cut.Loss == 0:
			w.met += 2
			took += 2 * cut.Delay
			if cut.Rate > 0 {
				took += 100 * time.Second / time.Duration(cut.Rate)
			}
		case w.asked%2 == 0:
			w.met++
			err = agent.ErrNoAnswer
		}
	}
	if w.answer != nil {
		return w.answer(w.asked, took, err)
	}
	return took, err
}

func badlyWired(servers, workers int) (Environment, map[string]*badWire) {
	env, wires := wired(servers, workers)
	bad := make(map[string]*badWire)
	for _, n := range env.Nodes() {
		w := &badWire{wire: wires[n.Name], others: bad, bad: make(map[string]agent.Cut)}
		n.Host, bad[n.Name] = w, w
	}
	return env, bad
}

// whileCut changes the result of connection attempts while rules are in force.
func (w *badWire) whileCut(took time.Duration, err error) {
	w.answer = func(_ int, usual time.Duration, usualErr error) (time.Duration, error) {
		if len(w.cuts) > 0 {
			return took, err
		}
		return usual, usualErr
	}
}

func TestPackets(t *testing.T) {
	loss := Step{Fault: "packet-loss", Loss: 0.3}
	delay := Step{Fault: "packet-delay", Delay: Span{Plus: 200 * time.Millisecond}}
	link := Step{Fault: "slow-link", Rate: 10_000}
	proven := []string{"applied p", "proven p", "healed p", "end p", "proven-healed p"}
	unproven := []string{"applied p", "unproven p", "healed p", "end p", "proven-healed p"}
	for _, c := range []struct {
		name         string
		step         Step
		target, from string
		spoil        func(map[string]*badWire)
		want         []string // after it was requested
		at           history.Stage
		evidence     string
		dropped      int64
	}{
		{
			name: "loss", step: loss, target: "w1", from: "n1,n2", want: proven,
			at: history.Proven, evidence: "w1 lost a packet in attempt 1 to connect to n1", dropped: 2,
		},
		{
			name: "delay", step: delay, target: "w1", from: "n1", want: proven,
			at: history.Proven, evidence: "n1 answers w1 after 401ms, 1ms before", dropped: 2,
		},
		{
			name: "slow link", step: link, target: "w1", from: "n1", want: proven,
			at: history.Proven, evidence: "n1 answers w1 after 11ms, 1ms before", dropped: 2,
		},
		{
			name: "loss, healed", step: loss, target: "w1", from: "n1", want: proven,
			at: history.ProvenHealed, evidence: "rules gone, n1 answers w1 after 1ms", dropped: 2,
		},
		{
			name: "delay, healed", step: delay, target: "n1,n2", want: proven,
			at: history.ProvenHealed, evidence: "rules gone, w1 answers n1 after 1ms", dropped: 4,
		},
		{
			name: "what others met is told in its own words", step: delay, target: "w1", want: proven,
			at: history.Healed, evidence: "2 packets held back", dropped: 2,
		},
		{
			name: "lost packets are told in theirs", step: loss, target: "w1", want: proven,
			at: history.Healed, evidence: "2 packets dropped", dropped: 2,
		},
		{
			name: "between workers", step: delay, target: "w1", from: "w2", want: proven,
			at: history.Proven, evidence: "w2 answers w1 after 401ms, 1ms before", dropped: 2,
		},
		{
			name: "nobody but us met it", step: loss, target: "w1", want: proven,
			spoil: func(w map[string]*badWire) { w["w1"].dropped = 0 },
			at:    history.Healed, evidence: "0 packets dropped", dropped: 0,
		},
		{
			name: "a delay that does not work", step: delay, target: "w1", want: unproven,
			spoil: func(w map[string]*badWire) { w["w1"].ineffective = true },
			at:    history.Unproven, evidence: "n1 answers w1 after 1ms, sooner than 300ms", dropped: 2,
		},
		{
			name: "rules that count nothing", step: delay, target: "w1", want: unproven,
			spoil: func(w map[string]*badWire) {
				w["w1"].ineffective = true
				w["w1"].whileCut(400*time.Millisecond, nil)
			},
			at: history.Unproven, evidence: "no packet of ours has met the rules", dropped: 2,
		},
		{
			name: "a delay with which nobody answers", step: delay, target: "w1", want: unproven,
			spoil: func(w map[string]*badWire) { w["w1"].whileCut(0, agent.ErrNoAnswer) },
			at:    history.Unproven, evidence: "the probe from w1 to n1 failed: no answer", dropped: 4,
		},
		{
			name: "a link that is full", step: link, target: "w1", want: proven,
			spoil: func(w map[string]*badWire) { w["w1"].whileCut(0, agent.ErrNoAnswer) },
			at:    history.Proven, evidence: "n1 does not answer w1 within 2.016s, 1ms before", dropped: 2,
		},
		{
			name: "late before", step: delay, target: "w1", want: unproven,
			spoil: func(w map[string]*badWire) {
				w["w1"].answer = func(n int, took time.Duration, err error) (time.Duration, error) {
					if n <= answers {
						took += 299 * time.Millisecond
					}
					return took, err
				}
			},
			at: history.Unproven, evidence: "n1 answered w1 only after 300ms before, too late to tell", dropped: 2,
		},
		{
			name: "no answer before", step: delay, target: "w1", want: proven,
			spoil: func(w map[string]*badWire) {
				w["w1"].answer = func(int, time.Duration, error) (time.Duration, error) { return 0, agent.ErrNoAnswer }
			},
			at: history.Proven, evidence: "rules in place, and no answer before that could tell more", dropped: 2,
		},
		{
			name: "no answer before, and rules that meet nothing", step: delay, target: "w1", want: unproven,
			spoil: func(w map[string]*badWire) {
				w["w1"].ineffective = true
				w["w1"].answer = func(int, time.Duration, error) (time.Duration, error) { return 0, agent.ErrNoAnswer }
			},
			at: history.Unproven, evidence: "no packet of ours has met the rules", dropped: 2,
		},
		{
			name: "one answer before", step: delay, target: "w1", want: proven,
			spoil: func(w map[string]*badWire) {
				w["w1"].answer = func(n int, took time.Duration, err error) (time.Duration, error) {
					if n < answers {
						return 0, agent.ErrNoAnswer
					}
					return took, err
				}
			},
			at: history.Proven, evidence: "n1 answers w1 after 401ms, 1ms before", dropped: 2,
		},
		{
			name: "another cut stays", step: delay, target: "w1", want: proven,
			spoil: func(w map[string]*badWire) { w["w1"].cuts["other"] = []string{"n9"} },
			at:    history.ProvenHealed, evidence: "rules gone", dropped: 2,
		},
		{
			name: "half of it fails", step: loss, target: "w1,w2", from: "n1", want: unproven,
			spoil: func(w map[string]*badWire) { w["w2"].refuses = true },
			at:    history.Unproven, evidence: "not today", dropped: 2,
		},
		{
			name: "late once more after it was healed", step: delay, target: "w1", want: proven,
			spoil: func(w map[string]*badWire) {
				late := 1
				w["w1"].answer = func(n int, took time.Duration, err error) (time.Duration, error) {
					if n > answers && len(w["w1"].bad) == 0 && late > 0 {
						late--
						took += 300 * time.Millisecond
					}
					return took, err
				}
			},
			at: history.ProvenHealed, evidence: "rules gone, n1 answers w1 after 1ms", dropped: 2,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, wires := badlyWired(2, 2)
			if c.spoil != nil {
				c.spoil(wires)
			}
			d := &diary{t: t}
			c.step.ID, c.step.Target, c.step.From, c.step.For = "p", c.target, c.from, short
			d.nemesis(env, c.step).Run(bounded(t), plenty)
			d.expect(append([]string{"requested p", "begin p"}, c.want...)...)
			if f := d.stage("p", c.at); f.Evidence != c.evidence {
				t.Errorf("%s: %q, want %q", c.at, f.Evidence, c.evidence)
			}
			if f := d.stage("p", history.Requested); f.Loss != c.step.Loss || f.Delay != int64(c.step.Delay.Plus) || f.Rate != c.step.Rate {
				t.Errorf("it says %v lost, %d ns late, %d bytes/s", f.Loss, f.Delay, f.Rate)
			}
			if f := d.stage("p", history.Healed); f.Dropped == nil || *f.Dropped != c.dropped {
				t.Errorf("dropped %v, want %d", f.Dropped, c.dropped)
			}
		})
	}
}

// TestPacketsCut: the kernel gets exactly the cut that a step specifies.
func TestPacketsCut(t *testing.T) {
	env, _ := badlyWired(2, 1)
	env.Lease = 2 * time.Second
	for _, c := range []struct {
		step Step
		want agent.Cut
	}{
		{Step{Fault: "packet-loss", Loss: 0.3}, agent.Cut{Loss: 0.3}},
		{Step{Fault: "packet-delay", Delay: Span{1, -time.Second}}, agent.Cut{Delay: time.Second, Jitter: 250 * time.Millisecond}},
		{Step{Fault: "slow-link", Rate: 8000}, agent.Cut{Rate: 8000}},
	} {
		kind, _ := KindByName(c.step.Fault)
		fault, err := kind.New(env, Order{ID: "p", Step: c.step, Targets: env.Servers[:1], Peers: env.Workers})
		if err != nil {
			t.Fatal(err)
		}
		if got := fault.(*packet).cut; fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", c.step.Fault, got, c.want)
		}
		if _, err := kind.New(env, Order{ID: "p", Step: c.step, Targets: env.Servers[:1]}); err == nil {
			t.Errorf("%s: nobody on the other side is accepted", c.step.Fault)
		}
	}
}

// TestPacketsBounds: the minimum and maximum time of an answer.
func TestPacketsBounds(t *testing.T) {
	for _, c := range []struct {
		cut         agent.Cut
		least, most time.Duration
	}{
		{agent.Cut{Delay: 200 * time.Millisecond, Jitter: 50 * time.Millisecond}, 300 * time.Millisecond, 500 * time.Millisecond},
		{agent.Cut{Rate: 1000}, 80 * time.Millisecond, 160 * time.Millisecond},
		{agent.Cut{Loss: 0.5}, 0, 0},
	} {
		p := packet{cut: c.cut}
		if p.least() != c.least || p.most() != c.most {
			t.Errorf("%+v: %s to %s, want %s to %s", c.cut, p.least(), p.most(), c.least, c.most)
		}
	}
}

// TestPacketsCan: a kernel that lacks a feature is reported before the run.
func TestPacketsCan(t *testing.T) {
	lacks := errors.New("no such expression")
	for _, step := range []Step{
		{Fault: "packet-loss", Loss: 0.3},
		{Fault: "packet-delay", Delay: Span{Plus: time.Second}},
		{Fault: "slow-link", Rate: 8000},
	} {
		step.Target, step.For = "w1", short
		env, wires := badlyWired(1, 1)
		n := (&diary{t: t}).nemesis(env, step)
		if err := n.Plan(); err != nil {
			t.Errorf("%s: %v", step.Fault, err)
		}
		wires["w1"].lacks = lacks
		var unsupported *UnsupportedError
		if err := n.Plan(); !errors.As(err, &unsupported) || unsupported.Where != "w1" || !errors.Is(err, lacks) {
			t.Errorf("%s: %v, want that it is not supported on w1", step.Fault, err)
		}
		wires["w1"].lacks = nil
		env.Workers[0] = &clusters.Node{Name: "w1", Host: agent.Local{}}
		if err := n.Plan(); err == nil || !strings.Contains(err.Error(), "no network of its own") {
			t.Errorf("%s on an embedded worker: %v", step.Fault, err)
		}
	}
}
