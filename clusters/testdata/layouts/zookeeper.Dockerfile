# As 31z4/zookeeper-docker: the distribution of Apache is in a folder of the root, with all its
# libraries in lib; its settings, that of the log among them, are in /conf; there is no class path;
# Java is where Temurin has it.
FROM {{.Made}}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends liblogback-java \
 && rm -rf /var/lib/apt/lists/*
RUN mkdir -p /opt/java /apache-zookeeper-3.9.4-bin/bin /apache-zookeeper-3.9.4-bin/lib /apache-zookeeper-3.9.4-bin/conf /conf /data /datalog /logs \
 && ln -s /usr/lib/jvm/java-21-openjdk-amd64 /opt/java/openjdk && rm /usr/bin/java \
 && for jar in $(echo "$CLASSPATH" | tr : ' ') /usr/share/java/logback-core.jar /usr/share/java/logback-classic.jar; do \
      case $jar in */slf4j-simple.jar) ;; *) cp "$jar" /apache-zookeeper-3.9.4-bin/lib/;; esac; done \
 && useradd -r --uid 1000 zookeeper && chown zookeeper /conf /data /datalog /logs \
 && printf '%s' '<configuration><appender name="C" class="ch.qos.logback.core.ConsoleAppender"><encoder><pattern>%d %-5p %m%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="C"/></root></configuration>' > /conf/logback.xml \
 && printf '#!/bin/sh\nexit 70\n' > /docker-entrypoint.sh && chmod +x /docker-entrypoint.sh
ENV CLASSPATH= JAVA_HOME=/opt/java/openjdk ZOO_CONF_DIR=/conf ZOOCFGDIR=/conf ZOO_DATA_DIR=/data ZOO_LOG_DIR=/logs \
    PATH=/opt/java/openjdk/bin:$PATH:/apache-zookeeper-3.9.4-bin/bin
WORKDIR /apache-zookeeper-3.9.4-bin
VOLUME ["/data", "/datalog", "/logs"]
ENTRYPOINT ["/docker-entrypoint.sh"]
CMD ["zkServer.sh", "start-foreground"]
