package clusters

import (
	"strconv"

	"lockcheck/clients"
)

const (
	mariaPort = 3306
	mariaData = "/var/lib/mysql"
)

// mariaSpec is one MariaDB with its default durability.
func mariaSpec() Spec {
	return Spec{
		Name: "mariadb", Nodes: 1, Image: "mariadb", Official: true,
		Server: func(int) Server { return mariaServer() },
	}
}

func mariaServer() Server {
	return Server{
		Program: "mariadb", Port: mariaPort, Probes: mariaProbes(), NoWipe: errOtherDatabase,
		Data:     func(p Place) string { return p.database(mariaData) },
		Command:  mariaCommand,
		Sysctls:  mariaSysctls(),
		ClockEnv: []string{"LD_PRELOAD=" + faketimeLibrary},
	}
}

func mariaCommand(p Place) []string {
	return []string{
		"mariadbd", "--datadir=" + p.database(mariaData), "--bind-address=0.0.0.0", "--skip-name-resolve",
		// As for PostgreSQL: a client that sends nothing is gone.
		"--tcp-keepalive-time=" + seconds(sqlIdle), "--tcp-keepalive-interval=" + seconds(sqlProbe),
		"--tcp-keepalive-probes=" + strconv.Itoa(int((clients.SQLServerSilence-sqlIdle)/sqlProbe)),
	}
}

// mariaSysctls bound how long data may stay unacknowledged, for which MariaDB has no setting. Keep-alives are
// only sent when no data is outstanding. Without the bound, a waiter that is granted the lock while cut off
// would keep it for as long again as the cut. The kernel retransmits three times, first after 0.2 s and each
// time after twice as long, and gives the connection up at the next time: after 3 s, or after 6 s.
func mariaSysctls() map[string]string { return map[string]string{"net.ipv4.tcp_retries2": "3"} }
