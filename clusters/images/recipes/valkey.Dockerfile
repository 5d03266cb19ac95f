# Valkey 8.1.
FROM {{.Servers}}
LABEL lockcheck.recipe=valkey
