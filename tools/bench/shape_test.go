package bench

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"lockcheck/history"
)

// shape describes a synthetic history, which is the same each time.
type shape struct {
	name       string
	workload   string
	operations int
	keys       int
	workers    int // at any time; killed workers are replaced
	// fate decides what happens to a hold, by its number.
	fate func(number int) fate
	// stuck are additional workers that get only errors. They ask for the first key, which countContention does not
	// take into account. So a shape with stuck workers must not pause any worker.
	stuck int
}

// fate is what happens to a hold.
type fate int

const (
	well        fate = iota
	refused          // the first acquire is refused, because another worker held the lock
	unanswered       // the answer to its acquire is lost, and the acquire is taken back
	unconfirmed      // the answer to its release is lost
	double           // it is granted although the lock is held
	stepped          // the same, after a clock step of the server
	paused           // its worker is paused past its lease, and continues
	cut              // its worker is cut off past its lease, and writes
	killed           // its worker is killed
)

// mix is a bit of everything. Of a thousand holds, about twenty go wrong, and a few more lose answers.
func mix(n int) fate {
	for _, of := range [...]struct {
		every, at int
		fate
	}{
		{1000, 100, paused}, {1000, 600, cut}, {5000, 700, killed}, {2500, 1300, stepped},
		{200, 50, double}, {100, 20, unanswered}, {100, 70, unconfirmed}, {10, 3, refused},
	} {
		if n%of.every == of.at {
			return of.fate
		}
	}
	return well
}

const (
	lease    = 100 * time.Millisecond
	onWay    = 20_000                        // ns, of a request or an answer
	applying = 1_000                         // ns, until a fault is in force
	beyond   = int64(5 * time.Millisecond)   // how much longer than the lease a fault lasts
	patient  = int64(300 * time.Microsecond) // how long a worker waits for a lost answer
)

// hold is one attempt. Times are in ns; 0 for what the attempt did not reach.
type hold struct {
	fate
	number, worker, key             int
	asked, granted, read, write     int64
	release, released               int64
	refusedAt                       int64  // when it was refused because another worker held the lock
	holder                          string // the grant of that worker
	faultFrom, faultTo, serviceEnds int64
	contended                       bool // for a paused hold: another worker wanted the lock before the release
}

func (h *hold) grant() string { return name(h.worker) + "-" + strconv.Itoa(h.number) }

// end is when the worker stops acting as the holder. For a killed worker it is the last event before death.
// For an unanswered attempt it is when the worker stops waiting for the answer.
func (h *hold) end() int64 {
	switch {
	case h.fate == unanswered:
		return h.release - 1_000
	case h.release != 0:
		return h.release
	case h.read != 0:
		return h.read + onWay
	}
	return h.granted
}

func name(worker int) string { return "w" + strconv.Itoa(worker+1) }

// idler is a worker and the time from which it is idle.
type idler struct {
	at     int64
	worker int
}

type idlers []idler

func (i idlers) Len() int           { return len(i) }
func (i idlers) Less(a, b int) bool { return i[a].at < i[b].at }
func (i idlers) Swap(a, b int)      { i[a], i[b] = i[b], i[a] }
func (i *idlers) Push(x any)        { *i = append(*i, x.(idler)) }
func (i *idlers) Pop() any {
	last := (*i)[len(*i)-1]
	*i = (*i)[:len(*i)-1]
	return last
}

// keyState is what the service has on record for a key.
type keyState struct {
	free   int64 // when the key is free again
	holder hold  // the last holder
}

// holds yields the holds of workers that queue for the keys, in the order of their requests.
func (s shape) holds(yield func(*hold) bool) {
	random := rand.New(rand.NewPCG(1, uint64(s.keys)))
	keys := make([]keyState, s.keys)
	var idle idlers
	for w := range s.workers {
		idle = append(idle, idler{int64(w + 1), w})
	}
	last := 0
	next := s.workers // the name of the next worker that replaces a killed one
	for n, left := 1, s.operations; left > 0; n++ {
		free := heap.Pop(&idle).(idler)
		h := &hold{fate: s.fate(n), number: n, worker: free.worker, key: random.IntN(s.keys), asked: free.at}
		if h.fate == refused || h.fate == double || h.fate == stepped { // the key that is held now
			h.key = last
		}
		last = h.key
		s.serve(h, &keys[h.key], random)
		left -= s.cost(h)
		if !yield(h) {
			return
		}
		free.at = max(h.released, h.faultTo) + 1_000 + random.Int64N(200_000)
		if h.fate == killed {
			free.worker = next
			next++
		}
		heap.Push(&idle, free)
	}
}

// serve grants the lock to an attempt when it is the attempt's turn.
func (s shape) serve(h *hold, k *keyState, random *rand.Rand) {
	came := h.asked + onWay
	if holder := &k.holder; h.fate == refused {
		at := max(h.asked+2*onWay, holder.granted+1)
		if holder.granted != 0 && at < min(holder.end(), holder.serviceEnds) {
			h.holder, h.refusedAt = holder.grant(), at
			came = at + 1_000 + onWay
		}
	}
	served := max(came, k.free) + 10_000 + random.Int64N(50_000)
	if h.fate == double || h.fate == stepped {
		served = came + 1_000
	}
	h.granted = served + onWay
	h.read = h.granted + 1_000
	if s.workload == history.WorkloadMutex {
		h.read = 0
	}
	h.write = h.granted + 25_000 + random.Int64N(100_000)
	h.serviceEnds = served + int64(lease)
	switch h.fate {
	case stepped:
		h.faultFrom, h.faultTo = h.asked+1, h.granted+1
	case unanswered:
		h.granted, h.read, h.write = 0, 0, 0
		h.release = served + patient
	case paused, cut:
		h.faultFrom, h.faultTo = h.granted+24_000, h.serviceEnds+beyond
		h.write = h.faultTo + 10_000
	case killed:
		h.faultFrom, h.faultTo = h.granted+24_000, h.granted+24_000
		h.write = 0
	}
	if s.workload == history.WorkloadMutex && h.write != 0 {
		h.release, h.write = h.write, 0
	} else if h.write != 0 {
		h.release = h.write + 21_000
	}
	switch h.fate {
	case killed:
		k.free = max(k.free, h.serviceEnds+onWay)
	case paused, cut:
		h.released = h.release + 2*onWay
		k.free = max(k.free, h.serviceEnds+onWay)
	case unconfirmed, unanswered:
		h.released = h.release + patient
		k.free = max(k.free, h.release+onWay)
	default:
		h.released = h.release + 2*onWay
		k.free = max(k.free, h.release+onWay)
	}
	k.holder = *h
}

func (s shape) cost(h *hold) int {
	n := 0
	for _, at := range []int64{h.asked, h.refusedAt, h.read, h.write, h.release} {
		if at != 0 {
			n++
		}
	}
	return n
}

func (s shape) countKilled() int {
	n := 0
	for h := range s.holds {
		if h.fate == killed {
			n++
		}
	}
	return n
}

func (s shape) header(kills int) history.Header {
	h := history.Header{
		Format: history.Format, Schema: history.SchemaVersion, Run: "bench", Lock: "synthetic",
		Workload: s.workload, Guard: history.GuardNone, Servers: []string{"n1"}, Lease: lease, Grace: time.Second, Tokens: true,
	}
	for w := range s.workers + kills + s.stuck {
		h.Workers = append(h.Workers, name(w))
	}
	for n := range 10_000 {
		f := s.fate(n)
		kind := f.kind()
		if kind != "" && !slices.Contains(h.Faults, kind) {
			h.Faults = append(h.Faults, kind)
		}
	}
	return h
}

// kind is the kind of fault that causes a fate; "" for none.
func (f fate) kind() string {
	switch f {
	case paused:
		return history.Pause
	case cut:
		return history.Partition
	case killed:
		return history.Kill
	case stepped:
		return history.Clock
	}
	return ""
}
