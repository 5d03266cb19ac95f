# As valkey-io/valkey-container: the programs are in /usr/local/bin, and it starts in /data.
FROM {{.Made}}
RUN mv /usr/bin/valkey-* /usr/local/bin/ \
 && mkdir -p /data && chown valkey:valkey /data && chmod 1777 /data \
 && printf '#!/bin/sh\nexit 70\n' > /usr/local/bin/docker-entrypoint.sh && chmod +x /usr/local/bin/docker-entrypoint.sh
WORKDIR /data
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["valkey-server"]
