package nemesis

import (
	"slices"

	"lockcheck/clusters"
)

// With fewer servers the shapes do not exist. In a ring of three each node sees all, and a bridge needs a node
// on either side.
const (
	minRing   = 4
	minBridge = 3
)

// ring separates each node from those that are not its neighbours. Each node sees a majority, and no two see
// the same one (Jepsen's majorities ring).
func ring(nodes []*clusters.Node) map[*clusters.Node][]*clusters.Node {
	n := len(nodes)
	reach := (n/2 + 1) / 2 // neighbours on either side that form a majority together with the node
	cuts := make(map[*clusters.Node][]*clusters.Node)
	for i, node := range nodes {
		for away := reach + 1; away < n-reach; away++ {
			cuts[node] = append(cuts[node], nodes[(i+away)%n])
		}
	}
	return cuts
}

// bridge separates two halves that both see the node in the middle.
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
