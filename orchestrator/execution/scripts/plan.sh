#!/bin/bash
# Runs the commands of execution plans so that each runs once, whatever happens to who asks for it:
#
#	plan.sh run ROOT TASK PLAN STEP CONFIRM BOOT   runs a command that comes as a tar stream, follows it, or gives its result again; a further
#	                                               argument "clean" cleans when it has ended
#	plan.sh stop ROOT TASK PLAN                    ends what the plan still runs
#	plan.sh clean ROOT TASK PLAN                   removes the plan's files; what its commands gave stays for the time of the task
#	plan.sh reboot ROOT TASK PLAN BOOT COMMAND     runs COMMAND, which starts the server again, once; 0 when that is done, 3 before
#
# A command runs in a session of its own and writes to files, so that a lost connection does not end it. The first line of output says
# "began", "follows" or "again", or "interrupted killed|reboot" for a command that ended without a result, which runs once more when CONFIRM
# says that word. Then comes what the command writes, and a last line of NUL, "exit" and its code. BOOT is a file with the id of the
# server's present run.
set -euo pipefail
action=$1 root=$2 task=$3 plan=$4
folder=$root/$task/$plan
umask 077

# A process is known by its id and the time of its start: the 22nd field of its stat, whose second may hold blanks. One that ended and
# was not waited for (state Z) is none.
# It is left in begun.
started() {
	local stat=
	begun=
	{ read -r -d '' stat <"/proc/$1/stat"; } 2>/dev/null || true
	if [[ -n $stat ]]; then
		read -ra stat <<<"${stat##*) }"
		if [[ ${stat[0]} != Z ]]; then begun=${stat[19]}; fi
	fi
}

# Whether the command of a step's folder still runs; pid is its process then, which leads its group.
runs() {
	local start
	pid=
	{ read -r pid start <"$1/process"; } 2>/dev/null || return 1
	started "$pid"
	[[ -n $start && $begun == "$start" ]]
}

end_all() {
	local one
	for one in "$1"/steps/*; do
		if runs "$one"; then kill -KILL -- "-$pid" 2>/dev/null || true; fi
	done
}

clean() { rm -rf "$folder/work" "$folder"/steps/*/command; }

case $action in
stop)
	end_all "$folder"
	exit
	;;
clean)
	clean
	exit
	;;
reboot)
	boot=$5 command=$6
	mkdir -p "$folder"
	if [[ ! -s $folder/reboot ]]; then
		cp "$boot" "$folder/reboot.new"
		sync "$folder/reboot.new"
		mv -f "$folder/reboot.new" "$folder/reboot"
		setsid bash -c "$command" </dev/null >/dev/null 2>&1 &
	fi
	cmp -s "$boot" "$folder/reboot" && exit 3
	exit 0
	;;
esac

step=$5 confirm=$6 boot=$7 after=${8:-}
here=$folder/steps/$step

# Other tasks have ended: nobody waits for what they left.
for other in "$root"/*; do
	[[ -d $other && $other != "$root/$task" ]] || continue
	for left in "$other"/*; do end_all "$left"; done
	rm -rf "$other"
done

if [[ -e $here/exit ]]; then
	echo again
elif runs "$here"; then
	echo follows
else
	if [[ -e $here/process ]]; then
		why=killed
		cmp -s "$boot" "$here/boot" || why=reboot
		if [[ $confirm != "$why" ]]; then
			echo "interrupted $why"
			cat >/dev/null
			exit
		fi
	fi
	if [[ -e $here ]]; then rm -rf "$here"; fi
	mkdir -p "$here" "$folder/work"
	cp "$boot" "$here/boot"
	tar -x --no-same-owner -C "$folder"
	: >"$here/out"
	: >"$here/err"
	# shellcheck disable=SC2016 # the inner shell expands
	setsid bash -c '
		here=$1 start=$2
		stat=$(<"/proc/$$/stat")
		read -ra stat <<<"${stat##*) }"
		echo "$$ ${stat[19]}" >"$here/process.new"
		mv -f "$here/process.new" "$here/process"
		read -r folder <"$here/folder"
		cd "$start/$folder"
		export HOME=/root USER=root LOGNAME=root DEBIAN_FRONTEND=noninteractive
		export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
		umask 022
		code=0
		sh "$here/command" >"$here/out" 2>"$here/err" || code=$?
		umask 077
		echo "$code" >"$here/exit.new"
		mv -f "$here/exit.new" "$here/exit"
	' plan "$here" "$folder" </dev/null >/dev/null 2>"$here/problem" &
	child=$!
	until [[ -e $here/process ]]; do
		started $child
		if [[ -z $begun && ! -e $here/process ]]; then
			cat "$here/problem" >&2
			exit 1
		fi
		sleep 0.01
	done
	echo began
fi
cat >/dev/null

if runs "$here"; then
	tail -c +1 -s 0.02 -f --pid="$pid" "$here/err" >&2 &
	tail -c +1 -s 0.02 -f --pid="$pid" "$here/out"
	wait
else
	cat "$here/out"
	cat "$here/err" >&2
fi
if [[ ! -s $here/exit ]]; then
	if [[ -s $here/problem ]]; then cat "$here/problem" >&2; fi
	printf '\0exit killed\n'
	exit
fi
read -r code <"$here/exit"
printf '\0exit %s\n' "$code"
if [[ $after == clean ]]; then clean; fi
