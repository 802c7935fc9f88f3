#!/bin/bash
# Answers one request with the page.
while IFS= read -r line && [[ -n ${line%$'\r'} ]]; do :; done
printf 'HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n'
cat /srv/web/index.html
