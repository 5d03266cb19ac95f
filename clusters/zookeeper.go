package clusters

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"lockcheck/clients"
)

const (
	zookeeperPort         = 2181 // for clients
	zookeeperQuorumPort   = 2888 // followers connect to the leader here
	zookeeperElectionPort = 3888
)

// zookeeperSpec is an ensemble. A single server runs without a quorum.
func zookeeperSpec() Spec {
	return Spec{
		Name: "zookeeper", Nodes: 3, Sizes: []int{1, 5}, Image: "zookeeper", Official: true,
		Server: func(int) Server {
			return Server{
				Program: "zookeeper", Port: zookeeperPort, Probes: zookeeperProbes{},
				Files: func(p Place) map[string]string {
					return map[string]string{"zoo.cfg": zookeeperConfig(p), "myid": strconv.Itoa(p.N + 1)}
				},
				// A small heap, and only the fast first compiler, because a run is over before the optimizing
				// compiler would pay. The image sets the class path.
				Command: func(p Place) []string {
					return []string{
						"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
						"org.apache.zookeeper.server.quorum.QuorumPeerMain", p.Folder + "/zoo.cfg",
					}
				},
			}
		},
	}
}

// zookeeperConfig is the configuration of a server. With its short ticks a session timeout may be as short as
// 400 ms, and a stopped leader is replaced after 2 s.
func zookeeperConfig(p Place) string {
	lines := []string{
		"tickTime=200", "initLimit=25", "syncLimit=10",
		"minSessionTimeout=" + milliseconds(clients.ZooKeeperMinTTL),
		"maxSessionTimeout=" + milliseconds(clients.ZooKeeperMaxTTL),
		"dataDir=" + p.Folder, "clientPort=" + strconv.Itoa(zookeeperPort),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=srvr,cons,wchp",
		// A server in an election asks the others one by one. A stopped server must not delay that by the
		// default of 5 s.
		"cnxTimeout=500",
	}
	for i, ip := range p.IPs {
		lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d", i+1, ip, zookeeperQuorumPort, zookeeperElectionPort))
	}
	return strings.Join(lines, "\n") + "\n"
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
