#!/bin/sh
# Starts PostgreSQL as its official image does: POSTGRES_PASSWORD and POSTGRES_DB, and the scripts of a new database.
set -e
export PATH="$PATH:$(echo /usr/lib/postgresql/*/bin)" PGDATA=/var/lib/postgresql/data
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
database=${POSTGRES_DB:-postgres}
if [ ! -e "$PGDATA/ready" ]; then
  rm -rf "$PGDATA" # of a start that was killed
  echo "$POSTGRES_PASSWORD" > /run/password && chmod 644 /run/password
  as_postgres initdb --no-sync --auth-host=scram-sha-256 --auth-local=trust --pwfile=/run/password > /dev/null
  rm /run/password
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  as_postgres pg_ctl -w start -o "-c listen_addresses=" > /dev/null
  [ "$database" = postgres ] || as_postgres createdb "$database"
  cat /docker-entrypoint-initdb.d/*.sql | as_postgres psql -q -v ON_ERROR_STOP=1 -d "$database"
  as_postgres pg_ctl -w stop > /dev/null
  touch "$PGDATA/ready"
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups postgres -c listen_addresses='*'
