# ZooKeeper 3.9. The package of that name would bring a desktop with it, the
# library has all that a server needs.
FROM {{.Trixie}}
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libzookeeper-java openjdk-21-jre-headless \
 && rm -rf /var/lib/apt/lists/*
# The server of a configuration file. A small heap, and the compiler that is ready
# first: a run is over before the better one would pay.
RUN printf '%s\n' '#!/bin/sh' \
      'exec java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -cp "/usr/share/java/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "$@"' \
      > /usr/local/bin/zookeeper-server \
 && chmod +x /usr/local/bin/zookeeper-server
