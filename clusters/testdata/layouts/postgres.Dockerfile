# As docker-library/postgres: no database is there, its folder is a volume that anybody can write,
# and the programs are on the path of an image that runs as root.
FROM {{.Made}}
USER root
RUN find /usr/local/bin -type l -delete \
 && usermod --uid 999 postgres && chown -R postgres /var/lib/postgresql \
 && rm -rf /var/lib/postgresql/data \
 && install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data \
 && install -d -o postgres -g postgres -m 3777 /var/run/postgresql \
 && mkdir /docker-entrypoint-initdb.d \
 && printf '#!/bin/sh\nexit 70\n' > /usr/local/bin/docker-entrypoint.sh && chmod +x /usr/local/bin/docker-entrypoint.sh
ENV PATH=$PATH:/usr/lib/postgresql/17/bin PG_MAJOR=17 PGDATA=/var/lib/postgresql/data LANG=C.UTF-8
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
