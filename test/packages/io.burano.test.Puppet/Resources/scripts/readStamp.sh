#!/bin/sh
set -eu
cat /srv/greeting/stamp
