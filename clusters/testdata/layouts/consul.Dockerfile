# As the images of HashiCorp: the program is in /bin, a shell is there, and /consul/data is a volume.
# Theirs stand on Alpine.
FROM {{.Made}} AS made
FROM {{.Base}}
COPY --from=made /bin/consul /bin/consul
RUN useradd -r consul && mkdir -p /consul/data /consul/config && chown -R consul /consul \
 && printf '#!/bin/sh\nexit 70\n' > /usr/local/bin/docker-entrypoint.sh && chmod +x /usr/local/bin/docker-entrypoint.sh
VOLUME /consul/data
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["agent", "-dev", "-client", "0.0.0.0"]
