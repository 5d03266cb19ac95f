package simulation

// End says what ended a grant at the service.
type End string

// Ends of grants. The last ones are wrong: the service was not to end them then.
const (
	Kept         End = ""             // never ended, or never granted
	Released     End = "released"     // by its worker
	Expired      End = "expired"      // its lease or session ran out
	Disconnected End = "disconnected" // its connection ended
	Undone       End = "undone"       // granted for a moment, and refused to its worker
	Stepped      End = "stepped"      // a clock that was moved ended its lease early
	Wiped        End = "wiped"        // the server lost its data
	Taken        End = "taken"        // removed by the release of another grant
	Early        End = "early"        // its lease was cut short
	Forgotten    End = "forgotten"    // the service dropped it
	Denied       End = "denied"       // released, though its worker was told that it was not
)

// Grant is what the service did with one attempt. Times are in ns, orders count what the
// service does, from 1.
type Grant struct {
	ID, Worker, Key string
	Shared          bool
	Order           int // of its grant, 0 if it was never granted
	Granted         int64
	Token           uint64
	Ended           End
	EndedAt         int64
	EndOrder        int
	Revived         bool     // a renewal took it back after its end
	Taker           string   // the grant whose release removed it
	Excluded        []string // grants that excluded it and were on record when it was granted
	// ReleasedOK is when the service first said that it was released, and its order; 0 for never.
	ReleasedOK   int64
	ReleaseOrder int
}

// Interval is from the first to the last moment of something, in ns.
type Interval struct{ From, To int64 }

// Truth is what really happened.
type Truth struct {
	Grants map[string]*Grant
	Order  []*Grant // of what was granted
	// Stopped, Cut and Killed say when workers were; Away when no server ran.
	Stopped, Cut map[string][]Interval
	Killed       map[string]int64
	Away         []Interval
	// Content is what each key has in the end, in order.
	Content map[string][]int64
	// Wrong says what the service did wrong, how often.
	Wrong map[string]int
	order int
}

func newTruth() *Truth {
	return &Truth{
		Grants: make(map[string]*Grant), Stopped: make(map[string][]Interval), Cut: make(map[string][]Interval),
		Killed:  make(map[string]int64),
		Content: make(map[string][]int64), Wrong: make(map[string]int),
	}
}

func (t *Truth) next() int {
	t.order++
	return t.order
}

// replaced says that somebody was granted the key of a grant after it.
func (t *Truth) replaced(g *Grant) bool {
	for _, other := range t.Order {
		if other.Key == g.Key && other.Order > g.Order {
			return true
		}
	}
	return false
}

// Right says that the service did nothing wrong, whatever it might have done.
func (t *Truth) Right() bool { return len(t.Wrong) == 0 }
