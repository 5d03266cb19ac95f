# memcached 1.6.
FROM {{.Trixie}}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends memcached \
 && rm -rf /var/lib/apt/lists/*
