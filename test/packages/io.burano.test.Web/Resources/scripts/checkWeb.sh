#!/bin/bash
# Says what the web server answers: checkWeb.sh PORT
curl -sS --retry 20 --retry-connrefused --retry-delay 1 "http://127.0.0.1:$1/"
