# A database that is ready, with the user lockcheck from anywhere: not where the image declares a
# volume, which keeps nothing that is written while an image is made.
FROM {{.}}
RUN mkdir -p /lockcheck-data /run/mysqld && chown mysql /lockcheck-data /run/mysqld
USER mysql
RUN mariadb-install-db --datadir=/lockcheck-data --auth-root-authentication-method=normal --skip-test-db >/dev/null \
 && printf "FLUSH PRIVILEGES;\nCREATE USER 'lockcheck'@'%%';\nGRANT ALL ON *.* TO 'lockcheck'@'%%';\nCREATE DATABASE lockcheck;\n" \
  | mariadbd --datadir=/lockcheck-data --bootstrap
