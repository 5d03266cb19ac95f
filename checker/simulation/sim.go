package simulation

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"lockcheck/history"
)

// Run simulates one run. The same seed and world give the same history.
func Run(seed uint64, w World) (*history.History, *Truth) {
	s := &sim{World: w, rng: rand.New(rand.NewPCG(seed, 1)), now: start, truth: newTruth()}
	s.server = newServer(s)
	s.resource = &resource{s: s, data: make(map[string]*data)}
	s.header = s.describe()
	s.phase(history.PhaseReady)
	for _, name := range s.header.Workers {
		worker := &worker{s: s, name: name, line: 1}
		s.workers = append(s.workers, worker)
		worker.act(s.upTo(30), func() { worker.attempt(w.Attempts) })
	}
	for n := range w.Most {
		s.after(s.upTo(150)*int64(n+1), func() { s.strike(nil, "") })
	}
	s.play()
	s.now += 5
	s.phase(history.PhaseFinal)
	s.resource.report()
	s.phase(history.PhaseEnd)
	for i := range s.events {
		s.events[i].Index = int64(i)
	}
	return &history.History{Header: s.header, Events: s.events}, s.truth
}

// start of the simulated time, in ms.
const start = 1000

// sim is one simulation.
type sim struct {
	World
	rng      *rand.Rand
	agenda   agenda
	now      int64 // ms
	header   history.Header
	events   []history.Event
	truth    *Truth
	server   *server
	resource *resource
	workers  []*worker
	faults   int
	update   int64 // number of elements and increments so far
}

func (s *sim) describe() history.Header {
	h := history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Run: "simulation", Lock: "simulated",
		Workload: s.Workload, Guard: s.Guard, Servers: []string{serverName}, Tokens: s.Tokens, Session: s.Session, Renewals: s.Session && s.RenewalsRecorded,
		Lease: time.Duration(s.Lease) * time.Millisecond, Grace: keepAlive * time.Millisecond, MinOps: 1,
		Renewed: s.Renews && s.Lease > 0,
	}
	for i := range s.World.Workers {
		h.Workers = append(h.Workers, fmt.Sprintf("w%d", i+1))
	}
	if s.Permits > 1 {
		h.Permits = s.Permits
	}
	if s.Reentrant > 1 {
		h.Reentrant = s.Reentrant
	}
	return h
}

func (s *sim) play() {
	for len(s.agenda.all) > 0 {
		next := heap.Pop(&s.agenda).(todo)
		s.now = next.at
		next.do()
	}
}

// after schedules do after delay ms. Actions that are due at the same time run in the order of scheduling.
func (s *sim) after(delay int64, do func()) {
	s.agenda.count++
	heap.Push(&s.agenda, todo{s.now + delay, s.agenda.count, do})
}

// upTo returns a random number from 0 to most.
func (s *sim) upTo(most int64) int64 { return s.rng.Int64N(most + 1) }

func (s *sim) chance(p float64) bool { return p > 0 && s.rng.Float64() < p }

func (s *sim) emit(e history.Event) {
	e.Time = ns(s.now)
	s.events = append(s.events, e)
}

func (s *sim) phase(name string) {
	s.emit(history.Event{Process: history.Harness, Type: history.Info, F: history.Phase, Note: name})
}

func ns(ms int64) int64 { return ms * int64(time.Millisecond) }

// todo is an action that is due at a time, in ms.
type todo struct {
	at    int64
	count int
	do    func()
}

// agenda is a heap of actions, by due time.
type agenda struct {
	all   []todo
	count int
}

func (a *agenda) Len() int { return len(a.all) }
func (a *agenda) Less(i, j int) bool {
	x, y := a.all[i], a.all[j]
	return x.at < y.at || x.at == y.at && x.count < y.count
}
func (a *agenda) Swap(i, j int) { a.all[i], a.all[j] = a.all[j], a.all[i] }
func (a *agenda) Push(x any)    { a.all = append(a.all, x.(todo)) }
func (a *agenda) Pop() any {
	last := a.all[len(a.all)-1]
	a.all = a.all[:len(a.all)-1]
	return last
}
