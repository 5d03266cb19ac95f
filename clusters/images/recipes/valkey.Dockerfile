# Valkey 8.1.
FROM {{.Trixie}}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends valkey-server \
 && rm -rf /var/lib/apt/lists/*
