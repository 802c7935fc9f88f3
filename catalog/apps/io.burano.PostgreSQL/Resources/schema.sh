#!/bin/sh
# Runs the statements in SCHEMA in one transaction, when the database at SERVER and PORT answers. The Job has a limit.
set -eu
until pg_isready --quiet --host "$SERVER" --port "$PORT"; do sleep 1; done
export PGPASSWORD="$POSTGRES_PASSWORD"
printf %s "$SCHEMA" | psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --single-transaction --host "$SERVER" --port "$PORT" --username postgres "$DATABASE"
