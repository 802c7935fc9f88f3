#!/bin/bash
# Writes the files of a folder as an archive.
set -euo pipefail
exec tar --create --directory="$1" --exclude=./lost+found --numeric-owner --xattrs --acls --sparse --file=- .
