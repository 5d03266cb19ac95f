package suites

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"lockcheck/checker"
	"lockcheck/present"
)

// Bounds are the spans that figures of a run must lie within, in the order of their file.
type Bounds []Bound

// Bound is the span that one checker.Figure must lie within, both ends included.
type Bound struct {
	Figure    string  // its name
	Low, High float64 // in its unit; 0 and +Inf where there is no bound
}

// UnmarshalYAML reads a mapping of figures to spans: "10ms-50ms", ">= 1" or "<= 3".
func (b *Bounds) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: write figures and what they lie within, as in lost: \"<= 0\"", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		name, span := node.Content[i], node.Content[i+1]
		if slices.ContainsFunc(*b, func(other Bound) bool { return other.Figure == name.Value }) {
			return fmt.Errorf("line %d: %s is bounded twice", name.Line, name.Value)
		}
		bound, err := parseBound(name.Value, span.Value)
		if err != nil {
			return fmt.Errorf("line %d: %w", name.Line, err)
		}
		*b = append(*b, bound)
	}
	return nil
}

func parseBound(name, span string) (Bound, error) {
	f, known := checker.FigureByName(name)
	if !known {
		return Bound{}, fmt.Errorf("there is no figure %q", name)
	}
	b := Bound{Figure: name, High: math.Inf(1)}
	var err error
	if least, is := strings.CutPrefix(span, ">="); is {
		b.Low, err = present.ParseValue(f, strings.TrimSpace(least))
		return b, err
	}
	if most, is := strings.CutPrefix(span, "<="); is {
		b.High, err = present.ParseValue(f, strings.TrimSpace(most))
		return b, err
	}
	low, high, both := strings.Cut(span, "-")
	if !both {
		return b, fmt.Errorf("%s: write 1-3, >= 1 or <= 3, not %q", name, span)
	}
	if b.Low, err = present.ParseValue(f, low); err == nil {
		b.High, err = present.ParseValue(f, high)
	}
	if err == nil && b.Low > b.High {
		err = fmt.Errorf("%s: %s is more than %s", name, low, high)
	}
	return b, err
}

// Missed says which figure of some runs is out of its bound; "" for none. A figure without data is out of
// every bound.
func (b Bounds) Missed(p checker.Pool) string {
	for _, bound := range b {
		if !bound.holds(p) {
			return fmt.Sprintf("%s, not %s", bound.Observed(p), bound)
		}
	}
	return ""
}

// Unknown says which figure some runs have no data for; "" if there is data for all.
func (b Bounds) Unknown(p checker.Pool) string {
	for _, bound := range b {
		if _, known := bound.value(p); !known {
			return bound.Observed(p)
		}
	}
	return ""
}

func (b Bound) holds(p checker.Pool) bool {
	value, known := b.value(p)
	return known && b.Low <= value && value <= b.High
}

func (b Bound) value(p checker.Pool) (float64, bool) {
	f, known := checker.FigureByName(b.Figure)
	if !known {
		return 0, false
	}
	return f.Of(p)
}

// Observed is the figure of some runs, in words.
func (b Bound) Observed(p checker.Pool) string {
	value, known := b.value(p)
	if !known {
		return "no data for " + b.Figure
	}
	return b.Figure + " " + b.text(value)
}

// String is the span, in words.
func (b Bound) String() string {
	switch {
	case math.IsInf(b.High, 1):
		return b.text(b.Low) + " at least"
	case b.Low == 0:
		return b.text(b.High) + " at most"
	}
	return b.text(b.Low) + " to " + b.text(b.High)
}

func (b Bound) text(value float64) string {
	f, _ := checker.FigureByName(b.Figure)
	return present.Value(f, value)
}

// String lists figures and spans.
func (b Bounds) String() string {
	var parts []string
	for _, bound := range b {
		parts = append(parts, bound.Figure+" "+bound.String())
	}
	return strings.Join(parts, ", ")
}
