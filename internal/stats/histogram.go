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

// Histogram counts durations in buckets whose width grows with the durations: exactly below 128 ns, to within
// 0.8 % above. Histograms can be merged, so the quantiles of many runs are those of all measurements. The
// zero Histogram is empty.
type Histogram struct {
	N int64 `json:"n"`
	// Min and Max are exact; 0 if N is 0.
	Min     time.Duration `json:"min_ns,omitempty"`
	Max     time.Duration `json:"max_ns,omitempty"`
	Buckets Buckets       `json:"buckets,omitempty"`
}

// Buckets are the non-empty buckets of a Histogram, by Index. Their text form is "INDEX:N INDEX:N …": one
// line, where indented JSON would need five lines per bucket.
type Buckets []Bucket

// Bucket counts durations of about the same length.
type Bucket struct {
	Index int
	N     int64 // positive
}

// precision is how many bits of a duration a bucket keeps after the leading one. The width of a bucket is at
// most 1/64 of its durations, and its middle is at most 1/128 away from them.
const precision = 6

// Add counts a duration. A negative duration, which only a contradictory history can have, counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(d, 0)
	if h.N == 0 {
		h.Min = d
	}
	h.N++
	h.Min, h.Max = min(h.Min, d), max(h.Max, d)
	h.Buckets.add(Bucket{Index: bucketOf(d), N: 1})
}

// Merge adds the counts of another histogram.
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

// Quantile returns the smallest duration that at least a share q, 0 to 1, of all durations do not exceed, to
// within 0.8 %. It is exact for 0 and 1, and false if there are no durations.
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
	return h.Max, true // a stored histogram whose figures contradict each other
}

func (all *Buckets) add(b Bucket) {
	at, there := slices.BinarySearchFunc(*all, b.Index, func(b Bucket, index int) int { return cmp.Compare(b.Index, index) })
	if there {
		(*all)[at].N += b.N
		return
	}
	*all = slices.Insert(*all, at, b)
}

// bucketOf is the duration itself if it has at most precision+1 bits. For a longer one it combines the length
// in bits and the precision bits after the leading one.
func bucketOf(d time.Duration) int {
	dropped := max(0, bits.Len64(uint64(d))-precision-1)
	return dropped<<precision + int(d>>dropped)
}

// middle is the middle of the durations of a bucket.
func (b Bucket) middle() time.Duration {
	dropped := max(0, b.Index>>precision-1)
	lowest := time.Duration(b.Index-dropped<<precision) << dropped
	return lowest + (1<<dropped-1)/2
}

// MarshalText returns the text form of the buckets.
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

// UnmarshalText reads the output of MarshalText. Anything else is an error.
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
