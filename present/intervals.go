package present

import (
	"fmt"
	"strings"

	"lockcheck/checker"
)

// Units says how many units an interval is based on, such as "14 faults"; "" if that is unknown.
func Units(i checker.LossInterval) string {
	if i.LostOver == "" {
		return ""
	}
	return count(i.LostUnits, strings.TrimSuffix(i.LostOver, "s"), i.LostOver)
}

// Interval describes an interval, as in "0.15 to 0.23, 95 % interval over 5 faults".
func Interval(i checker.LossInterval) string {
	name := "95 % interval"
	if !i.IntervalKnown() {
		return strings.TrimSuffix("no "+name+", which takes more than "+Units(i), ", which takes more than ")
	}
	if units := Units(i); units != "" {
		name += " over " + units
	}
	switch {
	case i.LostLow == 0:
		return fmt.Sprintf("at most %.2g, %s", i.LostHigh, name)
	}
	return fmt.Sprintf("%.2g to %.2g, %s", i.LostLow, i.LostHigh, name)
}
