package clusters

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// galeraView is the file in which a Galera server records the members of its last cluster.
const galeraView = "gvwstate.dat"

// galeraSpec is a MariaDB cluster that replicates with Galera and its default time-outs.
//
// No server bootstraps it. The servers start like those of a cluster that lost all power at once (pc.recovery),
// and form a cluster when all of them have found each other. A server that is restarted can therefore only
// join.
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

// galeraStart starts a server. The state file of a killed server has no position, so it is recovered from the
// tables.
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
		// As Galera's documentation has it.
		"--wsrep-on=ON", "--wsrep-provider=/usr/lib/galera/libgalera_smm.so",
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
		"--wsrep-cluster-address=gcomm://"+strings.Join(p.IPs, ","), "--wsrep-node-address="+p.IPs[p.N],
		"--wsrep-node-name="+fmt.Sprintf("n%d", p.N+1), "--wsrep-sst-method=rsync",
		// Enough for a run. By default each server writes six and eight times as much when it starts.
		"--innodb-log-file-size=16M", "--wsrep-provider-options=gcache.size=16M",
	)
}

// lastView is the view file of a server that was in a cluster with all the others.
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

// Ready asks whether the server is in step with a majority.
func (p galeraProbes) Ready(ctx context.Context, address string) error {
	var synced bool
	err := p.ask(ctx, address, `SELECT COUNT(*) = 3 FROM information_schema.global_status WHERE
(variable_name, variable_value) IN (('WSREP_READY', 'ON'), ('WSREP_CLUSTER_STATUS', 'Primary'), ('WSREP_LOCAL_STATE_COMMENT', 'Synced'))`, &synced)
	if err == nil && !synced {
		err = errors.New("it is not in step with a majority")
	}
	return err
}
