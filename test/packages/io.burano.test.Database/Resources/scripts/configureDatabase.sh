#!/bin/bash
# Has PostgreSQL serve the data on the volume, which is made when it is not there: configureDatabase.sh PASSWORD
set -e
chown -R postgres: /var/lib/postgresql
pg_lsclusters --no-header | grep -q main || pg_createcluster 15 main
cat >/etc/postgresql/15/main/conf.d/network.conf <<END
listen_addresses = '*'
END
grep -q ledger /etc/postgresql/15/main/pg_hba.conf || echo 'host ledger ledger samenet scram-sha-256' >>/etc/postgresql/15/main/pg_hba.conf
systemctl restart postgresql@15-main
cd /
if ! runuser -u postgres -- psql -Atc "SELECT 1 FROM pg_database WHERE datname = 'ledger'" | grep -q 1; then
  runuser -u postgres -- psql -c "CREATE ROLE ledger LOGIN" -c "CREATE DATABASE ledger OWNER ledger"
fi
runuser -u postgres -- psql -v password="$1" <<<"ALTER ROLE ledger PASSWORD :'password'"
