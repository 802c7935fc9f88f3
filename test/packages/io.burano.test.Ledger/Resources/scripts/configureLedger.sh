#!/bin/bash
# Makes the ledger's table and serves its lines at port 8080: configureLedger.sh ADDRESS PASSWORD
set -e
mkdir -p /srv/ledger
install -m 0755 page.sh add.sh /srv/ledger
# Single quotes mean the same to the shell and to systemd.
(umask 077; printf "PGHOST=%s\nPGUSER=ledger\nPGDATABASE=ledger\nPGPASSWORD='%s'\n" "$1" "$2" >/srv/ledger/environment)
# shellcheck source=/dev/null
(set -a; . /srv/ledger/environment; psql -c 'CREATE TABLE IF NOT EXISTS lines (id serial PRIMARY KEY, line text NOT NULL)')
cat >/etc/systemd/system/ledger.service <<END
[Unit]
Description=The lines of the ledger

[Service]
EnvironmentFile=/srv/ledger/environment
ExecStart=/usr/bin/socat TCP-LISTEN:8080,fork,reuseaddr EXEC:/srv/ledger/page.sh
Restart=on-failure

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --now ledger.service
