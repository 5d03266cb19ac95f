package clusters

import (
	"strings"
	"testing"

	"lockcheck/clusters/agent"
)

// TestValkeyVersion: the version is Valkey's own, not the Redis version that Valkey reports for compatibility.
func TestValkeyVersion(t *testing.T) {
	t.Parallel()
	node := started(t, "valkey").Servers()[0]
	versions := make(map[agent.Probes]string)
	for _, probes := range []agent.Probes{redisProbes{version: "valkey_version"}, redisProbes{version: "redis_version"}} {
		version, err := probes.Version(t.Context(), node.Address)
		if err != nil || !strings.Contains(version, ".") {
			t.Fatalf("%+v: version %q, %v", probes, version, err)
		}
		versions[probes] = version
	}
	own, pretended := versions[redisProbes{version: "valkey_version"}], versions[redisProbes{version: "redis_version"}]
	if recorded, err := node.Host.Version(t.Context()); err != nil || recorded != own || recorded == pretended {
		t.Errorf("records %q (%v): Valkey is %s and says that it is Redis %s", recorded, err, own, pretended)
	}
	if node.Clock != nil {
		t.Errorf("its clock cannot be moved: %v", node.Clock)
	}
}
