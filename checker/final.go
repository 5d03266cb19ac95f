package checker

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"lockcheck/history"
)

// finals are the reads of the final state of a key. If there is a read after the last accepted write, reads
// before it do not count.
type finals struct {
	reads []history.Event
	after int64 // sequence number of the last write that was accepted before the reads
}

func (k *keyed) recordFinal(e *history.Event) {
	written := int64(0)
	for i := len(k.accesses) - 1; i >= 0 && written == 0; i-- {
		if w := &k.accesses[i]; w.write && !w.refused {
			written = w.seq
		}
	}
	if k.finals.after != written {
		k.finals = finals{after: written}
	}
	k.finals.reads = append(k.finals.reads, *e)
}

// wasRead says whether the final state of the key was read.
func (f *finals) wasRead() bool { return len(f.reads) > 0 }

// time is when the last read happened.
func (f *finals) time() int64 { return f.reads[len(f.reads)-1].Time }

// states returns the distinct results of the reads, compared with the first one, as sorted elements.
func (f *finals) states(of func(json.RawMessage) ([]int64, error)) ([][]int64, error) {
	var states [][]int64
	for i := range f.reads {
		state, err := of(f.reads[i].Value)
		if err != nil {
			return nil, err
		}
		if len(states) == 0 || !slices.Equal(states[0], state) {
			states = append(states, state)
		}
	}
	return states, nil
}

// elements parses a set as its elements, sorted.
func elements(value json.RawMessage) ([]int64, error) {
	var all []int64
	if !null(value) {
		if err := json.Unmarshal(value, &all); err != nil {
			return nil, err
		}
	}
	slices.Sort(all)
	return all, nil
}

// counted parses the value of a counter as a list of one element.
func counted(value json.RawMessage) ([]int64, error) {
	if null(value) {
		return []int64{0}, nil
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
	return []int64{n}, err
}

func null(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// common returns the intersection and the union of states as multisets. The states are sorted, and there is
// at least one.
func common(states [][]int64) (inAll, inAny []int64) {
	inAll, inAny = states[0], states[0]
	for _, s := range states[1:] {
		inAll, _ = compared(inAll, s)
		_, inAny = compared(inAny, s)
	}
	return inAll, inAny
}

func compared(a, b []int64) (inBoth, inEither []int64) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			inEither, a = append(inEither, a[0]), a[1:]
		case b[0] < a[0]:
			inEither, b = append(inEither, b[0]), b[1:]
		default:
			inBoth, inEither, a, b = append(inBoth, a[0]), append(inEither, a[0]), a[1:], b[1:]
		}
	}
	return inBoth, append(append(inEither, a...), b...)
}
