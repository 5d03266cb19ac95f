package history

import "slices"

// Kinds of faults, as found in Fault.Kind.
const (
	Pause       = "pause"
	Freeze      = "freeze"
	Kill        = "kill"
	Wipe        = "wipe"
	Crash       = "crash"
	Clock       = "clock"
	ClockStrobe = "clock-strobe"
	Partition   = "partition"
	OneWay      = "one-way"
	PacketLoss  = "packet-loss"
	PacketDelay = "packet-delay"
	SlowLink    = "slow-link"
	DelayWrite  = "delay-write"
)

// Harm is what a fault does to its targets, as far as somebody who judges the
// history has to know.
type Harm string

const (
	Stops    Harm = "stops"    // its processes do nothing until it is healed
	Ends     Harm = "ends"     // its processes end; those of a worker for good
	Cuts     Harm = "cuts"     // nothing gets through between targets and peers
	Disturbs Harm = "disturbs" // packets between targets and peers are lost or late
	Steps    Harm = "steps"    // its wall clock moves
	Defers   Harm = "defers"   // a write of it reaches the resource late
)

// HarmsOf returns what faults of a kind do; none of a kind that is not known.
func HarmsOf(kind string) []Harm {
	switch kind {
	case Pause, Freeze:
		return []Harm{Stops}
	case Kill, Wipe:
		return []Harm{Ends}
	case Crash:
		return []Harm{Ends, Cuts}
	case Clock, ClockStrobe:
		return []Harm{Steps}
	case Partition, OneWay:
		return []Harm{Cuts}
	case PacketLoss, PacketDelay, SlowLink:
		return []Harm{Disturbs}
	case DelayWrite:
		return []Harm{Defers}
	}
	return nil
}

// Does says whether faults of a kind do a harm.
func Does(kind string, harm Harm) bool { return slices.Contains(HarmsOf(kind), harm) }
