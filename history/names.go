package history

import (
	"hash/maphash"
	"math"
)

// Name is the number of a string in Names. Zero is the empty string.
type Name uint32

// Names interns the strings of a history as small numbers. As numbers the millions of grants of a long run
// fit in memory, and one table serves all checkers. It is not safe for concurrent use.
type Names struct {
	seed  maphash.Seed
	text  []byte // all strings, concatenated
	ends  []uint32
	slots []Name // open addressing: 0 is free
}

// NewNames returns a table with only the empty string.
func NewNames() *Names {
	return &Names{seed: maphash.MakeSeed(), ends: []uint32{0}, slots: make([]Name, 1<<10)}
}

// Of returns the number of a string. It adds the string if it is new.
func (n *Names) Of(s string) Name {
	if s == "" {
		return 0
	}
	slot := n.find(s)
	if n.slots[slot] != 0 {
		return n.slots[slot]
	}
	name := Name(len(n.ends))
	if uint64(len(n.text)+len(s)) > math.MaxUint32 {
		// That is about three hundred million grants. Offsets would overflow and names would be wrong.
		panic("history: more than 4 GiB of names")
	}
	n.text = append(n.text, s...)
	n.ends = append(n.ends, uint32(len(n.text)))
	n.slots[slot] = name
	if 4*len(n.ends) > 3*len(n.slots) {
		n.grow()
	}
	return name
}

// Len is the highest number in use plus one.
func (n *Names) Len() int { return len(n.ends) }

// String returns the string of a name of this table.
func (n *Names) String(name Name) string { return string(n.bytes(name)) }

func (n *Names) bytes(name Name) []byte {
	if name == 0 {
		return nil
	}
	return n.text[n.ends[name-1]:n.ends[name]]
}

// find returns the slot of a string, or the free slot for it.
func (n *Names) find(s string) uint64 {
	mask := uint64(len(n.slots) - 1)
	slot := maphash.String(n.seed, s) & mask
	for n.slots[slot] != 0 && string(n.bytes(n.slots[slot])) != s {
		slot = (slot + 1) & mask
	}
	return slot
}

func (n *Names) grow() {
	n.slots = make([]Name, 2*len(n.slots))
	for name := Name(1); int(name) < len(n.ends); name++ {
		n.slots[n.find(string(n.bytes(name)))] = name
	}
}
