# Redis 8.0. It does not start under libfaketime.
FROM {{.Servers}}
LABEL lockcheck.recipe=redis-8
