package simulation

// End says what ended a grant at the service.
type End string

// Ends of grants. From Stepped on they are wrong: the service should not have ended the grant then.
const (
	Kept         End = ""             // never ended, or never granted
	Released     End = "released"     // by its worker
	Expired      End = "expired"      // its lease or session ran out
	Disconnected End = "disconnected" // its connection ended
	Undone       End = "undone"       // granted for a moment, and refused to its worker
	Stepped      End = "stepped"      // a clock that was moved ended its lease early
	Wiped        End = "wiped"        // the server lost its data
	Resumed      End = "resumed"      // its worker was given it again, after a release that did not arrive
	Taken        End = "taken"        // removed by the release or the renewal of another grant
	Early        End = "early"        // its lease was cut short
	Forgotten    End = "forgotten"    // the service dropped it
	Denied       End = "denied"       // released, although its worker was told that it was not
)

// Ending is one end of a grant.
type Ending struct {
	Why   End
	Order int
}

// EndBefore is the last end of the grant before an action of the service, or its only end if there was none before.
func (g *Grant) EndBefore(order int) End {
	why := g.Ended
	for _, e := range g.Ends {
		if e.Order < order {
			why = e.Why
		}
	}
	return why
}

// Grant is what the service did with one attempt. Times are in ns. Orders number the actions of the service
// from 1.
type Grant struct {
	ID, Worker, Key string
	Shared          bool
	Order           int // of the grant, 0 if it was never granted
	Granted         int64
	Token           uint64
	Ended           End
	EndedAt         int64
	EndOrder        int
	Revived         bool     // a renewal took it back after its end
	Ends            []Ending // all of its ends, more than one if it was taken back
	Taker           string   // the grant whose release or renewal removed it
	Excluded        []string // grants on record when it was granted that excluded it
	// ReleasedOK is when the service first reported the release, and ReleaseOrder its order; 0 for never.
	ReleasedOK   int64
	ReleaseOrder int
	NotHeld      bool // a release was refused because the grant was over
	RenewOrder   int  // of the last renewal that the service acknowledged, 0 for none
}

// Interval lasts from the first to the last moment of something, in ns.
type Interval struct{ From, To int64 }

// Truth is what really happened.
type Truth struct {
	Grants map[string]*Grant
	Order  []*Grant // all grants, in the order in which they were given
	// Stopped, Cut and Killed say when workers were stopped, cut off or killed; Away says when no server ran.
	Stopped, Cut map[string][]Interval
	Killed       map[string]int64
	Away         []Interval
	// Content is the final content of each key, in order.
	Content map[string][]int64
	// Wrong counts the errors of the service, of clients and of the resource by kind.
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

// replaced says that the key of a grant was granted again after it.
func (t *Truth) replaced(g *Grant) bool {
	for _, other := range t.Order {
		if other.Key == g.Key && other.Order > g.Order {
			return true
		}
	}
	return false
}

// Right says that nothing was done wrong, even if bugs were configured.
func (t *Truth) Right() bool { return len(t.Wrong) == 0 }
