package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

func histogramOf(all ...time.Duration) Histogram {
	var h Histogram
	for _, d := range all {
		h.Add(d)
	}
	return h
}

func TestHistogram(t *testing.T) {
	if d, some := new(Histogram).Quantile(0.5); some {
		t.Errorf("the median of nothing is %s", d)
	}
	for _, c := range []struct {
		name string
		h    Histogram
		q    float64
		want time.Duration
	}{
		{"of one", histogramOf(7), 0.5, 7},
		{"the lower one of two", histogramOf(9, 7), 0.5, 7},
		{"above one half", histogramOf(9, 7), 0.51, 9},
		{"the least", histogramOf(9, 7, 8), 0, 7},
		{"the most", histogramOf(9, 7, 8), 1, 9},
		{"below 0", histogramOf(9, 7, 8), -1, 7},
		{"above 1", histogramOf(9, 7, 8), 2, 9},
		{"a negative one", histogramOf(-5), 0.5, 0},
		{"the longest", histogramOf(math.MaxInt64, math.MaxInt64, math.MaxInt64), 0.5, math.MaxInt64},
	} {
		if got, some := c.h.Quantile(c.q); got != c.want || !some {
			t.Errorf("%s: %d, %v, want %d", c.name, got, some, c.want)
		}
	}
}

// TestBucketsOf: buckets follow each other without a gap, and none is wider than the guaranteed precision.
func TestBucketsOf(t *testing.T) {
	for i := range bucketOf(math.MaxInt64) {
		first, next := lowestOf(i), lowestOf(i+1)
		if bucketOf(first) != i || bucketOf(next-1) != i || bucketOf(next) != i+1 {
			t.Fatalf("bucket %d from %d to %d", i, first, next)
		}
		middle := Bucket{Index: i}.middle()
		if off := max(middle-first, next-1-middle); float64(off) > 0.008*float64(first) {
			t.Fatalf("bucket %d: %d for %d to %d", i, middle, first, next)
		}
	}
}

// lowestOf searches for the shortest duration of a bucket.
func lowestOf(bucket int) time.Duration {
	low, high := time.Duration(0), time.Duration(math.MaxInt64)
	for low < high {
		if middle := low + (high-low)/2; bucketOf(middle) < bucket {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// TestHistogramAgainstSorted: quantiles equal those of the durations themselves, up to the precision. That
// holds for merged parts and for the whole, and after a round trip through JSON.
func TestHistogramAgainstSorted(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 10))
		var whole, left, right Histogram
		var all []time.Duration
		for range 1 + rng.IntN(300) {
			d := time.Duration(rng.Int64N(1 << (1 + rng.IntN(40))))
			all = append(all, d)
			whole.Add(d)
			if rng.IntN(3) == 0 {
				left.Add(d)
			} else {
				right.Add(d)
			}
		}
		left.Merge(right)
		text, err := json.Marshal(left)
		var read Histogram
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		if err != nil || !reflect.DeepEqual(left, whole) || !reflect.DeepEqual(read, whole) {
			t.Fatalf("seed %d: %+v, in parts %+v, read %+v (%v)", seed, whole, left, read, err)
		}
		slices.Sort(all)
		for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			want := all[max(0, int(math.Ceil(q*float64(len(all))))-1)]
			got, _ := read.Quantile(q)
			if math.Abs(float64(got-want)) > 0.008*float64(want) {
				t.Fatalf("seed %d: quantile %g of %d is %d, not %d", seed, q, len(all), got, want)
			}
		}
	}
}

// TestBucketsText: text that no histogram wrote is refused.
func TestBucketsText(t *testing.T) {
	for text, fine := range map[string]bool{
		"": true, "0:1": true, "5:1 6:2": true,
		"5": false, "5:": false, ":1": false, "x:1": false, "5:x": false, "5:0": false, "5:-1": false, "-1:1": false,
		"6:1 5:1": false, "5:1 5:1": false, "4000:1": false, "5:1:1": false,
	} {
		var all Buckets
		if err := all.UnmarshalText([]byte(text)); (err == nil) != fine {
			t.Errorf("%q: %v, %v", text, all, err)
		}
	}
}
