#!/bin/bash
# Adds a line to the ledger: add.sh LINE
set -ae
# shellcheck source=/dev/null
. /srv/ledger/environment
psql --no-psqlrc --set ON_ERROR_STOP=1 --set line="$1" <<<"INSERT INTO lines (line) VALUES (:'line')"
