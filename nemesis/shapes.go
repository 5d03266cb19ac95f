package nemesis

import (
	"slices"

	"lockcheck/clusters"
)

// With fewer servers a shape is no shape: in a ring of three everybody sees
// everybody, and a bridge needs something on either side.
const (
	minRing   = 4
	minBridge = 3
)

// ring keeps each node apart from those that are not next to it, so that each sees
// a majority and no two see the same one (the majorities ring of Jepsen).
func ring(nodes []*clusters.Node) map[*clusters.Node][]*clusters.Node {
	n := len(nodes)
	reach := (n/2 + 1) / 2 // neighbours on either side that make a majority with itself
	cuts := make(map[*clusters.Node][]*clusters.Node)
	for i, node := range nodes {
		for away := reach + 1; away < n-reach; away++ {
			cuts[node] = append(cuts[node], nodes[(i+away)%n])
		}
	}
	return cuts
}

// bridge keeps two halves apart that both see the node in the middle.
func bridge(nodes []*clusters.Node, middle int) map[*clusters.Node][]*clusters.Node {
	others := slices.Delete(slices.Clone(nodes), middle, middle+1)
	left, right := others[:len(others)/2], others[len(others)/2:]
	cuts := make(map[*clusters.Node][]*clusters.Node)
	for _, node := range left {
		cuts[node] = right
	}
	for _, node := range right {
		cuts[node] = left
	}
	return cuts
}
