# ZooKeeper 3.9. The package of that name would bring a desktop with it, the
# library has all that a server needs.
FROM {{.Trixie}}
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libzookeeper-java openjdk-21-jre-headless \
 && rm -rf /var/lib/apt/lists/*
# The server of a configuration file. Only what it needs is on its class path: among
# all there is, two bridges between logging libraries refuse each other. A small
# heap, and the compiler that is ready first: a run is over before the better one
# would pay.
RUN printf '%s\n' '#!/bin/sh' 'cd /usr/share/java || exit' \
      'jars=zookeeper.jar:zookeeper-jute.jar:slf4j-api.jar:slf4j-simple.jar:metrics-core.jar:snappy-java.jar:commons-io.jar:commons-cli.jar' \
      'jars=$jars:netty-common.jar:netty-buffer.jar:netty-transport.jar:netty-codec.jar:netty-handler.jar:netty-resolver.jar' \
      'exec java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto -cp "$jars" org.apache.zookeeper.server.quorum.QuorumPeerMain "$@"' \
      > /usr/local/bin/zookeeper-server \
 && chmod +x /usr/local/bin/zookeeper-server
