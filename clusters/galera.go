package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// galeraView is the file in which a server of Galera keeps whom it was last in a cluster with.
const galeraView = "gvwstate.dat"

// galeraSpec is a cluster of MariaDB that replicates by Galera, with its default time-outs.
//
// Nobody bootstraps it: the servers start as those of a cluster that lost all its power at once
// (pc.recovery), and are one when all of them have found each other. So a server that is started
// again can only join.
func galeraSpec() Spec {
	return Spec{
		Name: "galera", Nodes: 3, Image: "galera",
		Server: func(int) Server {
			server := mariaServer()
			server.Probes, server.Command = galeraProbes{mariaProbes()}, galeraCommand
			server.Files = func(p Place) map[string]string { return map[string]string{galeraView: lastView(p)} }
			return server
		},
	}
}

// galeraStart starts a server. One that was killed has left no position in its state file; its
// tables have it.
const galeraStart = `
view=$1 state=$2; shift 2
if grep -q 'seqno: *-1' $state/grastate.dat; then
	position=$(mariadbd "$@" --wsrep-recover 2>&1 | sed -n 's/.*WSREP: Recovered position: *//p')
	set -- "$@" --wsrep-start-position="$position"
else
	cp $view $state/
fi
exec mariadbd "$@"`

func galeraCommand(p Place) []string {
	start := []string{"sh", "-c", galeraStart, "sh", p.Folder + "/" + galeraView, mariaData}
	return append(append(start, mariaCommand(p)[1:]...),
		// As its documentation has it.
		"--wsrep-on=ON", "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		"--wsrep-cluster-address=gcomm://"+strings.Join(p.IPs, ","), "--wsrep-node-address="+p.IPs[p.N],
		"--wsrep-node-name="+fmt.Sprintf("n%d", p.N+1), "--wsrep-sst-method=rsync",
		// Enough for a run. By default each server has six and eight times as much to write when it starts.
		"--innodb-log-file-size=16M", "--wsrep-provider-options=gcache.size=16M",
	)
}

// lastView is the file of a server that was in a cluster with all the others.
func lastView(p Place) string {
	id := func(n int) string { return fmt.Sprintf("%08d-0000-1000-8000-%012d", n+1, n+1) }
	var members strings.Builder
	for n := range p.IPs {
		fmt.Fprintf(&members, "member: %s 0\n", id(n))
	}
	return fmt.Sprintf("my_uuid: %s\n#vwbeg\nview_id: 3 %s 1\nbootstrap: 0\n%s#vwend\n", id(p.N), id(0), members.String())
}

// galeraProbes asks a MariaDB of a cluster.
type galeraProbes struct{ sqlProbes }

// Ready asks for a server that has all that the majority has.
func (p galeraProbes) Ready(ctx context.Context, address string) error {
	var synced bool
	err := p.ask(ctx, address, `SELECT COUNT(*) = 3 FROM information_schema.global_status WHERE
(variable_name, variable_value) IN (('WSREP_READY', 'ON'), ('WSREP_CLUSTER_STATUS', 'Primary'), ('WSREP_LOCAL_STATE_COMMENT', 'Synced'))`, &synced)
	if err == nil && !synced {
		err = errors.New("it is not in step with a majority")
	}
	return err
}
