package main

import (
	"math"
	"math/rand/v2"

	"lockcheck/internal/stats"
)

// service is a way to lose updates: how many of the updates in a fault window are lost.
type service struct {
	name   string
	window func(*rand.Rand) stats.Count
}

// updates is the number of updates between two faults: 24 to 133. It depends on the speed of a lock and the
// distance between faults.
func updates(r *rand.Rand) int64 { return 24 + r.Int64N(110) }

// bursts lose size updates at a share of the faults, and none at the other faults.
func bursts(name string, share float64, size func(*rand.Rand) int64) service {
	return service{name, func(r *rand.Rand) stats.Count {
		c := stats.Count{N: updates(r)}
		if r.Float64() < share {
			c.K = min(c.N, size(r))
		}
		return c
	}}
}

// single loses each update with the same probability, independently of the others.
func single(name string, probability float64) service {
	return service{name, func(r *rand.Rand) stats.Count {
		c := stats.Count{N: updates(r)}
		for range c.N {
			if r.Float64() < probability {
				c.K++
			}
		}
		return c
	}}
}

func constant(n int64) func(*rand.Rand) int64 { return func(*rand.Rand) int64 { return n } }

func uniform(from, to int64) func(*rand.Rand) int64 {
	return func(r *rand.Rand) int64 { return from + r.Int64N(to-from+1) }
}

func geometric(mean float64) func(*rand.Rand) int64 {
	return func(r *rand.Rand) int64 { return 1 + int64(math.Log(1-r.Float64())/math.Log(1-1/mean)) }
}

// asMemory is close to what real pauses of the lock memory cost: one update in nearly half of the pauses,
// otherwise up to 30.
func asMemory(r *rand.Rand) int64 {
	if r.Float64() < 0.48 {
		return 1
	}
	return 2 + r.Int64N(29)
}

func services() []service {
	return []service{
		bursts("1, or else 2 to 30 (as `memory`)", 0.92, asMemory),
		bursts("1 to 40 at 90 % of faults", 0.9, uniform(1, 40)),
		bursts("1 to 40 at 50 %", 0.5, uniform(1, 40)),
		bursts("1 to 40 at 20 %", 0.2, uniform(1, 40)),
		bursts("always 10 at 50 %", 0.5, constant(10)),
		bursts("always 20 at 10 %", 0.1, constant(20)),
		bursts("geometric, mean 3, at 90 %", 0.9, geometric(3)),
		bursts("geometric, mean 10, at 50 %", 0.5, geometric(10)),
		bursts("geometric, mean 20, at 30 %", 0.3, geometric(20)),
		bursts("geometric, mean 20, at 5 %", 0.05, geometric(20)),
		bursts("all of a window at 30 %", 0.3, constant(1000)),
		single("0.2 % of updates, each by itself", 0.002),
		single("2 %, each by itself", 0.02),
		single("20 %, each by itself", 0.2),
		single("80 %, each by itself", 0.8),
	}
}

// draw draws some windows of a service.
func (s service) draw(r *rand.Rand, n int) []stats.Count {
	all := make([]stats.Count, n)
	for i := range all {
		all[i] = s.window(r)
	}
	return all
}

func (s service) truth() float64 {
	return stats.Sum(s.draw(rand.New(rand.NewPCG(1, 1)), 400_000)).Share()
}
