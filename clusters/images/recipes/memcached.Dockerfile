# memcached 1.6.
FROM {{.Servers}}
LABEL lockcheck.recipe=memcached
