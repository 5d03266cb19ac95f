package workloads

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/internal/yamlfile"
)

// Range is a range of durations, from which one is drawn uniformly.
type Range struct {
	Min time.Duration `json:"min_ns"`
	Max time.Duration `json:"max_ns"`
}

// ParseRange reads "50ms", or "20ms-80ms" for a range.
func ParseRange(text string) (Range, error) {
	low, high, ranged := strings.Cut(strings.Replace(text, "..", "-", 1), "-")
	if !ranged {
		high = low
	}
	var r Range
	var lowErr, highErr error
	r.Min, lowErr = time.ParseDuration(low)
	r.Max, highErr = time.ParseDuration(high)
	if lowErr != nil || highErr != nil {
		return Range{}, fmt.Errorf("%q: write 50ms, or 20ms-80ms for a range", text)
	}
	if r.Max < r.Min {
		return Range{}, fmt.Errorf("%q: the range is reversed; write %s-%s", text, high, low)
	}
	return r, nil
}

// String is the inverse of ParseRange.
func (r Range) String() string {
	if r.Min == r.Max {
		return r.Min.String()
	}
	return r.Min.String() + "-" + r.Max.String()
}

// Set, Type and String make a Range the value of a flag.
func (r *Range) Set(text string) (err error) {
	*r, err = ParseRange(text)
	return err
}

// Type is the name of the type in the help of a flag.
func (r *Range) Type() string { return "range" }

// UnmarshalYAML accepts what ParseRange accepts.
func (r *Range) UnmarshalYAML(node *yaml.Node) error {
	text, err := yamlfile.Text(node, "50ms or 20ms-80ms")
	if err != nil {
		return err
	}
	if err := r.Set(text); err != nil {
		return yamlfile.Wrong(node, err)
	}
	return nil
}

// MarshalYAML is the inverse of UnmarshalYAML.
func (r Range) MarshalYAML() (any, error) { return r.String(), nil }

func (r Range) draw(rng *rand.Rand) time.Duration {
	if r.Max <= r.Min {
		return r.Min
	}
	return r.Min + time.Duration(rng.Int64N(int64(r.Max-r.Min)))
}
