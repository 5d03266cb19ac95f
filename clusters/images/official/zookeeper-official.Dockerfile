# The class path that the scripts of the image put together; lockcheck starts the server itself. The
# image has its settings in /conf: without those of the log, every detail would be logged.
FROM {{.}}
RUN ln -s /apache-zookeeper-*-bin /lockcheck-zookeeper
ENV CLASSPATH=/lockcheck-zookeeper/lib/*:/conf
