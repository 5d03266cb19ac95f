# Redis 7.0.15. Newer ones of Debian do not start under libfaketime.
FROM {{.Bookworm}}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends redis-server libfaketime \
 && rm -rf /var/lib/apt/lists/*
LABEL lockcheck.clock=libfaketime
