# As MariaDB/mariadb-docker: no database is there, its folder is a volume, the sockets' one can be
# written by anybody, and the image runs as root.
FROM {{.Made}}
USER root
RUN rm -rf /var/lib/mysql /etc/mysql/mariadb.conf.d/50-mysqld_safe.cnf \
 && mkdir -p /var/lib/mysql /run/mysqld /docker-entrypoint-initdb.d \
 && chown -R mysql:mysql /var/lib/mysql /run/mysqld && chmod 1777 /run/mysqld \
 && sed -Ei 's/^(bind-address|log|user\s)/#&/' /etc/mysql/mariadb.conf.d/*.cnf \
 && printf '[mariadb]\nhost-cache-size=0\nskip-name-resolve\n' > /etc/mysql/mariadb.conf.d/05-skipcache.cnf \
 && printf '#!/bin/sh\nexit 70\n' > /usr/local/bin/docker-entrypoint.sh && chmod +x /usr/local/bin/docker-entrypoint.sh
ENV LANG=C.UTF-8
LABEL lockcheck.clock=
VOLUME /var/lib/mysql
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["mariadbd"]
