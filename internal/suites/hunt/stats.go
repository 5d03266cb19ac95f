package hunt

import "math"

// doubt is how likely it may be that a find does not show once in so many runs, if it shows with the
// probability that it is said to.
const doubt = 0.01

// mostReruns bounds the reruns of one change.
const mostReruns = 40

// reruns is how many it takes to see a find again that shows with a probability, but for doubt.
func reruns(p float64) int {
	if p <= 0 {
		return mostReruns
	}
	return min(mostReruns, max(1, int(math.Ceil(math.Log(doubt)/math.Log(1-p)))))
}
