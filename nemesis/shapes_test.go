package nemesis

import (
	"fmt"
	"slices"
	"testing"

	"lockcheck/clusters"
)

func numbered(n int) []*clusters.Node {
	var nodes []*clusters.Node
	for i := range n {
		nodes = append(nodes, &clusters.Node{Name: fmt.Sprintf("n%d", i+1)})
	}
	return nodes
}

// sees lists the nodes that a node can talk to, itself included.
func sees(nodes []*clusters.Node, cuts map[*clusters.Node][]*clusters.Node, node *clusters.Node) []string {
	var seen []string
	for _, other := range nodes {
		if !slices.Contains(cuts[node], other) && !slices.Contains(cuts[other], node) {
			seen = append(seen, other.Name)
		}
	}
	return seen
}

// TestRing: each node sees a majority that contains itself, and no two nodes see the same one.
func TestRing(t *testing.T) {
	for n := minRing; n <= 9; n++ {
		nodes := numbered(n)
		cuts := ring(nodes)
		views := make(map[string]string)
		for _, node := range nodes {
			view := sees(nodes, cuts, node)
			if len(view) <= n/2 || len(view) == n || !slices.Contains(view, node.Name) {
				t.Errorf("of %d nodes %s sees %v", n, node.Name, view)
			}
			if twin, seen := views[fmt.Sprint(view)]; seen {
				t.Errorf("of %d nodes %s and %s both see %v", n, twin, node.Name, view)
			}
			views[fmt.Sprint(view)] = node.Name
		}
	}
}

// TestRingOfThree is the control: with three nodes no node is cut off, and the shape is refused.
func TestRingOfThree(t *testing.T) {
	if cuts := ring(numbered(3)); len(cuts) != 0 {
		t.Errorf("three nodes are cut: %v", cuts)
	}
	if _, err := (resolver{env: Environment{Servers: numbered(3)}}).targets(roleRing); err == nil {
		t.Error("a ring of three is accepted")
	}
}

// TestBridge: one node sees all nodes. The others see their own half and that node.
func TestBridge(t *testing.T) {
	for n := minBridge; n <= 7; n++ {
		nodes := numbered(n)
		for middle := range nodes {
			cuts := bridge(nodes, middle)
			for i, node := range nodes {
				view := sees(nodes, cuts, node)
				switch {
				case i == middle && len(view) != n:
					t.Errorf("the bridge of %d sees %v", n, view)
				case i != middle && (len(view) == n || !slices.Contains(view, nodes[middle].Name)):
					t.Errorf("of %d nodes with bridge %s, %s sees %v", n, nodes[middle].Name, node.Name, view)
				}
			}
		}
	}
}
