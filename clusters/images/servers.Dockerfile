# All servers of Debian, installed once; the images of the recipes stand on this one. What only
# slows the installation down is left out: manuals, flushing to the disk, certificates of authorities
# (which the JRE asks for, and no server uses), and a first MariaDB database.
FROM {{.Trixie}}
RUN set -e; export DEBIAN_FRONTEND=noninteractive; \
  for path in man doc info locale ca-certificates; do echo "path-exclude=/usr/share/$path/*"; done > /etc/dpkg/dpkg.cfg.d/lockcheck; \
  echo force-unsafe-io >> /etc/dpkg/dpkg.cfg.d/lockcheck; \
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; \
  mkdir -p /usr/share/man/man1 /etc/postgresql-common /var/lib/mysql/mysql; \
  echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf; \
  touch /var/lib/mysql/mysql/user.frm; \
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.sources; do \
    if test -f $list; then sed s/trixie/bookworm/g $list > /etc/apt/sources.list.d/bookworm-${list##*/}; fi; \
  done; \
  apt-get -o Acquire::Languages=none update; \
  apt-get install -y --no-install-recommends libfaketime redis-server valkey-server memcached \
    postgresql pgbouncer mariadb-server openjdk-21-jre-headless libsnappy-jni; \
  mkdir /tmp/packages; cd /tmp/packages; \
  # Redis 7 of bookworm next to Redis 8. The libraries that it needs are those of Redis 8.
  apt-get -o APT::Sandbox::User=root download redis-server=5:7.0.15* redis-tools=5:7.0.15*; \
  for package in *.deb; do dpkg-deb --extract $package /opt/redis-7; rm $package; done; \
  /opt/redis-7/usr/bin/redis-server --version; \
  # The libraries on ZooKeeper's class path, without the fifty that their packages depend on.
  apt-get -o APT::Sandbox::User=root download libzookeeper-java libslf4j-java libdropwizard-metrics-java libsnappy-java libcommons-io-java libcommons-cli-java libnetty-java; \
  for package in *.deb; do dpkg-deb --fsys-tarfile $package | tar --extract --directory / ./usr/share/java; done; \
  ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/; \
  mkdir -p /run/mysqld; chown mysql /run/mysqld; \
  apt-get clean; \
  rm -rf /tmp/packages /var/lib/apt/lists/* /var/lib/mysql/* /etc/apt/sources.list.d/bookworm-* /usr/sbin/policy-rc.d
LABEL lockcheck.recipe=servers
