#!/bin/sh
# Runs the statements in SCHEMA up to the first that fails, when the server at SERVER and PORT answers. The Job has a limit.
set -eu
export MYSQL_PWD="$MARIADB_ROOT_PASSWORD"
client() { mariadb --host "$SERVER" --port "$PORT" --user root "$@"; }
until client --execute 'SELECT 1' >/dev/null 2>&1; do sleep 1; done
printf %s "$SCHEMA" | client "$DATABASE"
