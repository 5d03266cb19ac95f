package runs

import (
	"reflect"
	"testing"

	"lockcheck/clusters"
)

// threeServers is a cluster with one server that is hidden from clients.
type threeServers struct{ clusters.Cluster }

func (threeServers) Servers() []*clusters.Node {
	return []*clusters.Node{{Name: "n1", Server: clusters.Server{Hidden: true}}, {Name: "n2"}, {Name: "n3"}}
}

// TestReaches: the header says to which server each worker is tied, and nothing if all workers know all
// servers.
func TestReaches(t *testing.T) {
	for _, c := range []struct {
		pin  bool
		want map[string][]string
	}{
		{true, map[string][]string{"w1": {"n2"}, "w2": {"n3"}, "w3": {"n2"}}},
		{false, nil},
	} {
		r := &run{test: &test{Options: Options{Pin: c.pin, Concurrency: 3}}, session: session{cluster: threeServers{}}}
		if got := r.reaches(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("pin %v: %v, want %v", c.pin, got, c.want)
		}
	}
}
