# MariaDB 11.8, with the user lockcheck from anywhere. The database is made here,
# so that a server need not do it at each start.
FROM {{.Servers}}
USER mysql
RUN mariadb-install-db --datadir=/var/lib/mysql --auth-root-authentication-method=normal --skip-test-db >/dev/null \
 && printf "FLUSH PRIVILEGES;\nCREATE USER 'lockcheck'@'%%';\nGRANT ALL ON *.* TO 'lockcheck'@'%%';\nCREATE DATABASE lockcheck;\n" \
  | mariadbd --datadir=/var/lib/mysql --bootstrap
LABEL lockcheck.recipe=mariadb lockcheck.clock=libfaketime
