# ZooKeeper 3.9. Only what a server needs is on the class path: among all that Debian's packages
# put there, two bridges between logging libraries refuse each other.
FROM {{.Servers}}
ENV CLASSPATH=/usr/share/java/zookeeper.jar:/usr/share/java/zookeeper-jute.jar:/usr/share/java/slf4j-api.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/metrics-core.jar:\
/usr/share/java/snappy-java.jar:/usr/share/java/commons-io.jar:/usr/share/java/commons-cli.jar:/usr/share/java/netty-common.jar:/usr/share/java/netty-buffer.jar:\
/usr/share/java/netty-transport.jar:/usr/share/java/netty-codec.jar:/usr/share/java/netty-handler.jar:/usr/share/java/netty-resolver.jar
LABEL lockcheck.recipe=zookeeper
