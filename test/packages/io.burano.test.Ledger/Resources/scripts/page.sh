#!/bin/bash
# Answers one request with the lines of the ledger.
while IFS= read -r line && [[ -n ${line%$'\r'} ]]; do :; done
printf 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n'
psql --no-psqlrc --tuples-only --no-align --command 'SELECT line FROM lines ORDER BY id'
