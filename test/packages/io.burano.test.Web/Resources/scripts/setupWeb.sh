#!/bin/bash
# Writes the page and starts the web server: setupWeb.sh PORT GREETING
set -e
mkdir -p /srv/web
sed -e "s/%GREETING%/$2/" -e "s/%HOST%/$(hostname)/" site/index.html >/srv/web/index.html
install -m 0755 site/answer.sh /srv/web/answer.sh
server="/usr/bin/socat TCP-LISTEN:$1,fork,reuseaddr EXEC:/srv/web/answer.sh"
if command -v burano-test-web; then server="/usr/bin/burano-test-web $1"; fi
sed -e "s#%SERVER%#$server#" web.service >/etc/systemd/system/web.service
systemctl daemon-reload
systemctl enable --now web.service
