# Redis 7.0.15. Newer ones of Debian do not start under libfaketime.
FROM {{.Servers}}
ENV PATH=/usr/local/sbin:/usr/local/bin:/opt/redis-7/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin
LABEL lockcheck.recipe=redis lockcheck.clock=libfaketime
