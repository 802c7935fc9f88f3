#!/bin/bash
# Runs a command for a worker that shows a number: fence.sh NUMBER FOLDER COMMAND... A number lower than the last one seen is
# refused with exit code 75. A higher one is kept, and what former workers still run is killed. FOLDER outlives a reboot.
set -euo pipefail
number=$1 folder=$2
shift 2
running=$folder/running
if [[ ! -d $running ]]; then mkdir -p "$running"; fi

# A process is known by its id and the time of its start: the 22nd field of its stat, whose second may hold blanks. What is here for each
# command starts no process that it can do without.
started() {
	local stat=
	{ read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null || true
	read -ra stat <<<"${stat##*) }"
	echo "${stat[19]-}"
}

exec {lock}>"$folder/lock"
flock "$lock"
last=0
if [[ -e $folder/last ]]; then last=$(<"$folder/last"); fi
if ((number < last)); then
	echo "fenced: this node is worked on under number $last, and number $number is of a former worker" >&2
	exit 75
fi
if ((number > last)); then
	echo "$number" >"$folder/last.new"
	sync "$folder/last.new"
	mv -fT "$folder/last.new" "$folder/last"
	for entry in "$running"/*; do
		[[ -e $entry ]] || continue
		start=$(<"$entry") # empty after a loss of power
		group=${entry##*/}
		if [[ -n $start && $(started "$group") == "$start" ]]; then kill -KILL -- "-$group" || true; fi
		rm -f "$entry"
	done
fi
started $$ >"$running/$$"
exec {lock}>&-
exec "$@"
