# PostgreSQL 17 and PgBouncer. The database is made here, so that a server need
# not do it at each start.
FROM {{.Trixie}}
RUN mkdir -p /etc/postgresql-common \
 && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql pgbouncer \
 && rm -rf /var/lib/apt/lists/* \
 && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
USER postgres
RUN initdb --pgdata=/var/lib/postgresql/data --auth=trust --username=postgres \
 && echo 'host all all all trust' >> /var/lib/postgresql/data/pg_hba.conf
