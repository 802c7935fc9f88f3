# shellcheck shell=bash
# What OpenStack stands on: MariaDB, memcached, RabbitMQ. They keep everything below /srv/data.

base_up() {
  mkdir -p /srv/run/lock
  if [[ ! -d /srv/data/mariadb/mysql ]]; then
    install -d -o mysql -g mysql /srv/data/mariadb
    once mariadb-install mariadb-install-db --no-defaults --user=mysql --datadir=/srv/data/mariadb \
      --auth-root-authentication-method=normal --skip-test-db
  fi
  background mariadb mariadbd --no-defaults --user=mysql --datadir=/srv/data/mariadb --socket=/srv/run/mariadb \
    --pid-file=/srv/data/mariadb/pid --bind-address=127.0.0.1 --max-connections=1000 --innodb-buffer-pool-size=256M \
    --innodb-flush-log-at-trx-commit=0 --performance-schema=OFF --skip-log-bin \
    --character-set-server=utf8mb3 --collation-server=utf8mb3_general_ci
  background memcached memcached -u nobody -l 127.0.0.1 -U 0 -m 64

  install -d -o rabbitmq -g rabbitmq /srv/data/rabbitmq /srv/log/rabbitmq-server
  configure /srv/etc/rabbitmq/rabbitmq.conf <<END
listeners.tcp.default = 127.0.0.1:5672
loopback_users = none
default_user = openstack
default_pass = secret
log.console = false
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
END
  echo '[].' | configure /srv/etc/rabbitmq/enabled_plugins
  background epmd setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups epmd -address 127.0.0.1
  background rabbitmq rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server

  await mariadb 300 sql --execute='SELECT 1'
  sql --execute="CREATE USER IF NOT EXISTS 'openstack'@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO 'openstack'@'127.0.0.1';
    CREATE USER IF NOT EXISTS 'openstack'@'localhost' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO 'openstack'@'localhost';"
  await memcached 300 listens 11211
  await rabbitmq 300 listens 5672
}

# rabbitmq runs one of RabbitMQ's programs as its user, with our folders.
rabbitmq() {
  (
    cd /srv/data/rabbitmq || exit
    ulimit -S -n hard
    export HOME=/srv/data/rabbitmq RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_CONF_ENV_FILE=/dev/null
    export RABBITMQ_MNESIA_BASE=/srv/data/rabbitmq/mnesia RABBITMQ_LOG_BASE=/srv/log/rabbitmq-server
    export RABBITMQ_CONFIG_FILE=/srv/etc/rabbitmq/rabbitmq.conf RABBITMQ_ENABLED_PLUGINS_FILE=/srv/etc/rabbitmq/enabled_plugins
    export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"
    exec setpriv --reuid=rabbitmq --regid=rabbitmq --clear-groups "$@"
  )
}

# consumes NAME tells whether a service reads from this queue. An agent that asks before waits for an answer for a minute.
consumes() {
  rabbitmq /usr/lib/rabbitmq/bin/rabbitmqctl --quiet list_queues name consumers | awk -v name="$1" '$1 == name && $2 > 0 { found = 1 } END { exit !found }'
}
