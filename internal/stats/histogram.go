package stats

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Histogram counts durations in buckets whose width grows with what they hold: those
// below 128 ns exactly, longer ones to within 0.8 %. Two of them can be merged, so that
// quantiles of many runs are those of all that was measured. The zero Histogram is empty.
type Histogram struct {
	N int64 `json:"n"`
	// Min and Max are exact; 0 if N is.
	Min     time.Duration `json:"min_ns,omitempty"`
	Max     time.Duration `json:"max_ns,omitempty"`
	Buckets Buckets       `json:"buckets,omitempty"`
}

// Buckets are those of a Histogram that hold anything, by Index. Their text is
// "INDEX:N INDEX:N …", one line where indented JSON would need five a bucket.
type Buckets []Bucket

// Bucket counts durations that are about the same.
type Bucket struct {
	Index int
	N     int64 // positive
}

// precision is how many bits of a duration a bucket keeps after the first: it is at most
// 1/64 of what it holds wide, and its middle at most 1/128 away from that.
const precision = 6

// Add counts a duration. A negative one, which only a history can have that contradicts
// itself, counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	if h.N == 0 {
		h.Min = d
	}
	h.N++
	h.Min, h.Max = min(h.Min, d), max(h.Max, d)
	h.Buckets.add(Bucket{Index: bucketOf(d), N: 1})
}

// Merge counts all that another histogram has counted.
func (h *Histogram) Merge(other Histogram) {
	if other.N == 0 {
		return
	}
	if h.N == 0 {
		h.Min = other.Min
	}
	h.N += other.N
	h.Min, h.Max = min(h.Min, other.Min), max(h.Max, other.Max)
	for _, b := range other.Buckets {
		h.Buckets.add(b)
	}
}

// Quantile returns the duration that a share q, 0 to 1, of all is not longer than, to
// within 0.8 %; those of 0 and 1 are exact. It is false if there are none.
func (h *Histogram) Quantile(q float64) (time.Duration, bool) {
	if h.N == 0 {
		return 0, false
	}
	rank := int64(math.Ceil(q * float64(h.N)))
	switch {
	case rank <= 1:
		return h.Min, true
	case rank >= h.N:
		return h.Max, true
	}
	for _, b := range h.Buckets {
		if rank -= b.N; rank <= 0 {
			return min(max(b.middle(), h.Min), h.Max), true
		}
	}
	return h.Max, true // of a file whose figures contradict each other
}

func (all *Buckets) add(b Bucket) {
	at, there := slices.BinarySearchFunc(*all, b.Index, func(b Bucket, index int) int { return cmp.Compare(b.Index, index) })
	if there {
		(*all)[at].N += b.N
		return
	}
	*all = slices.Insert(*all, at, b)
}

// bucketOf is the duration itself as long as it has no more than precision bits; of a
// longer one its length in bits and those that follow the first.
func bucketOf(d time.Duration) int {
	dropped := max(0, bits.Len64(uint64(d))-precision-1)
	return dropped<<precision + int(d>>dropped)
}

// middle is that of the durations in a bucket.
func (b Bucket) middle() time.Duration {
	dropped := max(0, b.Index>>precision-1)
	lowest := time.Duration(b.Index-dropped<<precision) << dropped
	return lowest + (1<<dropped-1)/2
}

// MarshalText returns the text of the buckets.
func (all Buckets) MarshalText() ([]byte, error) {
	var text []byte
	for i, b := range all {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendInt(text, int64(b.Index), 10)
		text = append(text, ':')
		text = strconv.AppendInt(text, b.N, 10)
	}
	return text, nil
}

// UnmarshalText reads what MarshalText wrote. Anything else is an error.
func (all *Buckets) UnmarshalText(text []byte) error {
	*all = nil
	last := -1
	for field := range strings.FieldsSeq(string(text)) {
		index, n, _ := strings.Cut(field, ":")
		i, indexErr := strconv.Atoi(index)
		count, countErr := strconv.ParseInt(n, 10, 64)
		if indexErr != nil || countErr != nil || i <= last || i > bucketOf(math.MaxInt64) || count <= 0 {
			return fmt.Errorf("histogram: %q is no bucket that can follow %d", field, last)
		}
		*all, last = append(*all, Bucket{i, count}), i
	}
	return nil
}
