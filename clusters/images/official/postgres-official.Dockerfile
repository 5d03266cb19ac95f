# A database that is ready, so that a server need not make it at each start: not where the image
# declares a volume, which keeps nothing that is written while an image is made.
FROM {{.}}
RUN mkdir /lockcheck-data && chown postgres /lockcheck-data
USER postgres
RUN initdb --pgdata=/lockcheck-data --auth=trust --username=postgres \
 && echo 'host all all all trust' >> /lockcheck-data/pg_hba.conf
