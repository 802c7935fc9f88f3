#!/bin/bash
# Writes the page and starts the web server: setupWeb.sh PORT GREETING
set -e
mkdir -p /srv/web
sed -e "s/%GREETING%/$2/" -e "s/%HOST%/$(hostname)/" site/index.html >/srv/web/index.html
install -m 0755 site/answer.sh /srv/web/answer.sh
sed -e "s/%PORT%/$1/" web.service >/etc/systemd/system/web.service
systemctl daemon-reload
systemctl enable --now web.service
