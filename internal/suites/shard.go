package suites

import (
	"fmt"
	"strconv"
	"strings"

	"lockcheck/internal/runs"
)

// Shard is the part of a comparison or of a hunt that one machine makes: every Of-th run. The
// zero value is the whole.
type Shard struct{ N, Of int }

// ParseShard reads "2/8", the second of eight parts, or "1:8", the same part numbered from 0 as Kubernetes
// numbers the jobs; "" is the whole.
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{}, nil
	}
	number, of, fromOne := strings.Cut(text, "/")
	if !fromOne {
		number, of, _ = strings.Cut(text, ":")
	}
	n, err1 := strconv.Atoi(number)
	if !fromOne {
		n++
	}
	m, err2 := strconv.Atoi(of)
	if err1 != nil || err2 != nil || n < 1 || n > m {
		return Shard{}, runs.Usagef("--shard %s: write 2/8 for the second of eight parts", text)
	}
	return Shard{n, m}, nil
}

// String is the inverse of ParseShard.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.N, s.Of)
}

// Has says whether the part includes the run with an index.
func (s Shard) Has(i int) bool { return s.Of == 0 || i%s.Of == s.N-1 }

// MarshalText implements encoding.TextMarshaler.
func (s Shard) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Shard) UnmarshalText(text []byte) (err error) {
	*s, err = ParseShard(string(text))
	return err
}
