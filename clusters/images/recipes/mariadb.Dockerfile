# MariaDB 11.8, with the user lockcheck from anywhere. The database is made here,
# so that a server need not do it at each start.
FROM {{.Trixie}}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mariadb-server libfaketime \
 && rm -rf /var/lib/apt/lists/* /var/lib/mysql/* \
 && mkdir -p /run/mysqld && chown mysql /run/mysqld
USER mysql
RUN mariadb-install-db --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db >/dev/null \
 && printf "FLUSH PRIVILEGES;\nCREATE USER 'lockcheck'@'%%';\nGRANT ALL ON *.* TO 'lockcheck'@'%%';\nCREATE DATABASE lockcheck;\n" \
  | mariadbd --datadir=/var/lib/mysql --bootstrap
LABEL lockcheck.clock=libfaketime
