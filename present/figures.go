package present

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"lockcheck/checker"
)

// Figure explains a figure by its name; "" for an unknown name.
func Figure(name string) string {
	switch name {
	case "lost":
		return "acknowledged updates that are lost"
	case "overlaps":
		return "overlapping holders of both kinds"
	case "double_grants":
		return "overlaps in which the service granted the lock twice"
	case "stale_writes":
		return "writes accepted from a holder that was replaced, or without the lock"
	case "repeated":
		return "jobs that were done twice"
	case "refused":
		return "accesses that the guard refused"
	case "notified":
		return "replaced holders that learned of it before they released"
	case "ops", "min_ops": // as a threshold
		return "updates, or holds if nothing is updated"
	case "lost_share":
		return "share of the acknowledged updates that are lost"
	case "throughput":
		return "updates, or holds, per second"
	case "refused_per_op":
		return "accesses that the guard refused, per update"
	case "availability":
		return "share of the time of faults without an outage"
	case "wakes_per_release":
		return "waiters that a release woke up"
	}
	if of, is := strings.CutSuffix(name, "_p50"); is && timeOf(of) != "" {
		return "median " + timeOf(of)
	}
	if of, is := strings.CutSuffix(name, "_p99"); is && timeOf(of) != "" {
		return "99th percentile of the " + timeOf(of)
	}
	return ""
}

func timeOf(figure string) string {
	switch figure {
	case "acquire":
		return "time of the attempt that was granted"
	case "uncontended":
		return "time to acquire a lock that no other worker wants"
	case "wait":
		return "time from the first attempt to the grant"
	case "failover":
		return "time from the fault that stopped, cut off or ended a holder to the next grant"
	case "handover":
		return "time from a release that another worker waited for to the next grant"
	case "notified":
		return "time from the next grant until the replaced holder learned of it"
	}
	return ""
}

// Value formats a value of a figure so that ParseValue can read it.
func Value(f checker.Figure, value float64) string {
	if math.IsInf(value, 1) {
		return "never"
	}
	switch f.Unit {
	case checker.Duration:
		unit := 10 * time.Microsecond
		if value >= float64(time.Second) {
			unit = 10 * time.Millisecond
		}
		return time.Duration(value).Round(unit).String()
	case checker.Share:
		return strconv.FormatFloat(value, 'f', 3, 64)
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}

// ParseValue reads a value to compare a figure with.
func ParseValue(f checker.Figure, text string) (float64, error) {
	if f.Unit == checker.Duration {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%s makes no sense: write a length of time, as in 3s or 500ms", text)
		}
		return float64(d), nil
	}
	bound, err := strconv.ParseFloat(text, 64)
	switch {
	case f.Unit == checker.Share && !(err == nil && bound >= 0 && bound <= 1):
		return 0, fmt.Errorf("%s makes no sense: write a share from 0 to 1, as in 0.95", text)
	case err != nil || !(bound >= 0) || math.IsInf(bound, 0):
		return 0, fmt.Errorf("%s makes no sense: write a number that is not negative", text)
	}
	return bound, nil
}
