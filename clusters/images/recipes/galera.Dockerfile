# MariaDB 11.8 with Galera, with the user lockcheck from anywhere. The database was the only
# server of a cluster for a moment: servers that begin with it are at one position of one
# history, and need nothing of each other. It has the tables of the locks, for one that is made
# later ends the transactions of others.
FROM {{.Servers}}
USER mysql
RUN mariadb-install-db --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db >/dev/null \
 && printf "FLUSH PRIVILEGES;\nCREATE USER 'lockcheck'@'%%';\nGRANT ALL ON *.* TO 'lockcheck'@'%%';\nCREATE DATABASE lockcheck;\n" \
  | mariadbd --datadir=/var/lib/mysql --bootstrap
RUN { mariadbd --datadir=/var/lib/mysql --skip-name-resolve --innodb-log-file-size=16M --binlog-format=ROW --wsrep-on=ON \
  --wsrep-provider=/usr/lib/galera/libgalera_smm.so --wsrep-provider-options=gcache.size=16M \
  --wsrep-cluster-address=gcomm:// --wsrep-new-cluster & } && server=$! \
 && until mariadb --protocol=tcp --user=lockcheck --execute="SELECT 1" >/dev/null 2>&1; do kill -0 $server && sleep 0.2 || exit 1; done \
 && mariadb --protocol=tcp --user=lockcheck lockcheck --execute="CREATE TABLE lockcheck_rows (name VARCHAR(200) PRIMARY KEY, grants BIGINT NOT NULL); CREATE TABLE lockcheck_inserts (name VARCHAR(200) PRIMARY KEY, owner VARCHAR(200) NOT NULL)" \
 && mariadb-admin --protocol=tcp --user=lockcheck shutdown \
 && wait $server && rm /var/lib/mysql/galera.cache
LABEL lockcheck.recipe=galera lockcheck.clock=libfaketime
