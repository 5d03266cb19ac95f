package history

import "slices"

// Kinds of faults, as found in Fault.Kind.
const (
	Pause       = "pause"
	Freeze      = "freeze"
	Kill        = "kill"
	Restart     = "restart" // graceful, as by an operator
	Wipe        = "wipe"
	Crash       = "crash"
	PowerLoss   = "power-loss"
	DiskFull    = "disk-full"
	FsyncError  = "fsync-error"
	SlowDisk    = "slow-disk"
	Clock       = "clock"
	ClockStrobe = "clock-strobe"
	ClockRate   = "clock-rate"
	Partition   = "partition"
	OneWay      = "one-way"
	PacketLoss  = "packet-loss"
	PacketDelay = "packet-delay"
	SlowLink    = "slow-link"
	StaleDNS    = "stale-dns"
	DNSFailure  = "dns-failure"
	DelayWrite  = "delay-write"
	// TransferLeader is a planned change of leader.
	TransferLeader = "transfer-leader"
	// RemoveMember takes a server out of its cluster.
	RemoveMember = "remove-member"
)

// Effect is what a fault does to its targets, as far as it matters for judging a history.
type Effect string

const (
	Stops    Effect = "stops"    // the target's processes do nothing until it is healed
	Ends     Effect = "ends"     // the target's processes end; a worker's processes end for good
	Cuts     Effect = "cuts"     // nothing gets through between targets and peers
	Disturbs Effect = "disturbs" // packets between targets and peers are lost or late
	Impairs  Effect = "impairs"  // the target's disk fails or delays operations; the target may end, and is then restarted at the healing
	Steps    Effect = "steps"    // the target's wall clock is wrong
	Defers   Effect = "defers"   // a write of the target reaches the resource late
	Deposes  Effect = "deposes"  // another server leads in place of the target
	Misleads Effect = "misleads" // the target resolves names of its peers to an address where nobody is, or to none
	Removes  Effect = "removes"  // the target is no member of its cluster, and returns to it as a new one
)

// EffectsOf returns the effects of faults of a kind; none for an unknown kind.
func EffectsOf(kind string) []Effect {
	switch kind {
	case Pause, Freeze:
		return []Effect{Stops}
	case Kill, Restart, Wipe:
		return []Effect{Ends}
	case Crash, PowerLoss:
		return []Effect{Ends, Cuts}
	case DiskFull, FsyncError, SlowDisk:
		return []Effect{Impairs}
	case Clock, ClockStrobe, ClockRate:
		return []Effect{Steps}
	case Partition, OneWay:
		return []Effect{Cuts}
	case PacketLoss, PacketDelay, SlowLink:
		return []Effect{Disturbs}
	case StaleDNS, DNSFailure:
		return []Effect{Misleads}
	case DelayWrite:
		return []Effect{Defers}
	case TransferLeader:
		return []Effect{Deposes}
	case RemoveMember:
		return []Effect{Ends, Removes}
	}
	return nil
}

// Does says whether faults of a kind have an effect.
func Does(kind string, effect Effect) bool { return slices.Contains(EffectsOf(kind), effect) }
