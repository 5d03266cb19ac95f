# As docker-library/redis: the programs are in /usr/local/bin, and /data is a volume.
FROM {{.Made}}
RUN mv /opt/redis-7/usr/bin/redis-* /usr/local/bin/ \
 && mkdir -p /data && chown redis:redis /data \
 && printf '#!/bin/sh\nexit 70\n' > /usr/local/bin/docker-entrypoint.sh && chmod +x /usr/local/bin/docker-entrypoint.sh
VOLUME /data
WORKDIR /data
LABEL lockcheck.clock=
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["redis-server"]
