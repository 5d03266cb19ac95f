# ZooKeeper 3.9. The package of that name would bring a desktop with it, the
# library has all that a server needs.
FROM {{.Trixie}}
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libzookeeper-java openjdk-21-jre-headless \
 && rm -rf /var/lib/apt/lists/*
# Only what a server needs is on the class path: among all there is, two bridges
# between logging libraries refuse each other.
ENV CLASSPATH=/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/metrics-core.jar:\
/usr/share/java/snappy-java.jar:/usr/share/java/commons-io.jar:/usr/share/java/commons-cli.jar:/usr/share/java/netty-common.jar:/usr/share/java/netty-buffer.jar:\
/usr/share/java/netty-transport.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-handler.jar:/usr/share/java/netty-resolver.jar
