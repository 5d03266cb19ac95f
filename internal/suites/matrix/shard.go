package matrix

import (
	"fmt"
	"strconv"
	"strings"

	"lockcheck/internal/runs"
)

// Shard is the part of a comparison that one machine makes: every Of-th run. The zero
// value is the whole.
type Shard struct{ N, Of int }

// ParseShard reads "2/8", the second of eight parts; "" is the whole.
func ParseShard(text string) (Shard, error) {
	if text == "" {
		return Shard{}, nil
	}
	number, of, _ := strings.Cut(text, "/")
	n, err1 := strconv.Atoi(number)
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

func (s Shard) has(i int) bool { return s.Of == 0 || i%s.Of == s.N-1 }
