package reports

import (
	"fmt"
	"strings"
)

// versions lists those of the servers of a lock and of the modules of its client, and says
// where the servers come from.
func (m Matrix) versions(lock string) string {
	for _, cell := range m.Cells {
		if cell.Lock != lock || len(cell.Versions) == 0 {
			continue
		}
		text := versionsText(cell.Versions)
		if cell.Source != "" {
			text += "; servers " + clean(cell.Source)
		}
		return text
	}
	return ""
}

// order says in how many runs the tokens of a lock were seen to keep their order.
func (m Matrix) order(lock string) string {
	kept, violated := 0, 0
	for _, cell := range m.Cells {
		if cell.Lock == lock {
			kept, violated = kept+cell.TokensKept, violated+cell.TokensViolated
		}
	}
	switch {
	case violated > 0:
		return fmt.Sprintf("; out of order in %d of %s", violated, many(int64(kept+violated), "run"))
	case kept > 0:
		return fmt.Sprintf("; in order in %s", many(int64(kept), "run"))
	}
	return ""
}

// failover is the longest failover against the lease.
func (c Cell) failover() string {
	if c.Unavailable != "" {
		return "–"
	}
	text := quantile(c.Pool.Measures.Failover, 1)
	if stuck := c.Pool.Stuck; stuck > 0 {
		text = strings.TrimPrefix(text+", never for "+many(stuck, "holder"), ", ")
	}
	if text != "" && c.Lease > 0 {
		text += " / " + length(c.Lease)
	}
	return text
}
