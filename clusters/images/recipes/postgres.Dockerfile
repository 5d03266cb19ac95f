# PostgreSQL 17 and PgBouncer. The database is made here, so that a server need
# not do it at each start.
FROM {{.Servers}}
USER postgres
RUN initdb --pgdata=/var/lib/postgresql/data --auth=trust --username=postgres \
 && echo 'host all all all trust' >> /var/lib/postgresql/data/pg_hba.conf
LABEL lockcheck.recipe=postgres
