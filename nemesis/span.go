package nemesis

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"lockcheck/internal/yamlfile"
)

// Span is a length of time that may depend on the lease of the lock under test, so that one schedule fits
// several locks: "3s", "lease", "lease+1s", "2*lease-500ms". The zero value is zero time.
type Span struct {
	Leases float64
	Plus   time.Duration
}

// Of returns the length for a lock with the lease. A lock without a lease counts as having one of a second.
func (s Span) Of(lease time.Duration) time.Duration {
	if lease == 0 {
		lease = time.Second
	}
	return time.Duration(s.Leases*float64(lease)) + s.Plus
}

// IsZero reports whether the span is zero. Zero spans are left out of files.
func (s Span) IsZero() bool { return s == Span{} }

// neverPositive reports whether the span is positive for no lease.
func (s Span) neverPositive() bool { return s.Leases <= 0 && s.Plus <= 0 }

var spanPattern = regexp.MustCompile(`^(?:(-)?(?:([0-9.]+)\*)?lease)?([+-]?[0-9].*)?$`)

// ParseSpan reads a span.
func ParseSpan(text string) (Span, error) {
	malformed := fmt.Errorf("%q is not a duration: write 3s, lease, lease+1s or 2*lease-500ms", text)
	parts := spanPattern.FindStringSubmatch(text)
	if parts == nil || text == "" {
		return Span{}, malformed
	}
	var span Span
	rest := parts[3]
	if rest != text {
		span.Leases = 1
		if parts[2] != "" {
			factor, err := strconv.ParseFloat(parts[2], 64)
			if err != nil {
				return Span{}, malformed
			}
			span.Leases = factor
		}
		if parts[1] != "" {
			span.Leases = -span.Leases
		}
		if rest != "" && rest[0] != '+' && rest[0] != '-' {
			return Span{}, malformed
		}
	}
	if rest != "" {
		plus, err := time.ParseDuration(rest)
		if err != nil {
			return Span{}, malformed
		}
		span.Plus = plus
	}
	return span, nil
}

// String is the inverse of ParseSpan.
func (s Span) String() string {
	var text string
	switch s.Leases {
	case 0:
		return s.Plus.String()
	case 1:
		text = "lease"
	case -1:
		text = "-lease"
	default:
		text = strconv.FormatFloat(s.Leases, 'f', -1, 64) + "*lease"
	}
	if s.Plus > 0 {
		text += "+"
	}
	if s.Plus != 0 {
		text += s.Plus.String()
	}
	return text
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Span) UnmarshalYAML(node *yaml.Node) error {
	text, err := yamlfile.Text(node, "3s or lease+1s")
	if err != nil {
		return err
	}
	span, err := ParseSpan(text)
	if err != nil {
		return yamlfile.Wrong(node, err)
	}
	*s = span
	return nil
}

// MarshalYAML implements yaml.Marshaler.
func (s Span) MarshalYAML() (any, error) { return s.String(), nil }
