#!/bin/sh
# Answers one request, from standard input, with the page.
end=$(printf '\r')
while read -r line && [ "$line" != "$end" ]; do :; done
printf 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n'
cat /srv/greeting/page
