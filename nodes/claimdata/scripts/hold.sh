#!/bin/bash
# Stops the pods of a node that write to claims, copies the files of the claims, and lets the pods go on.
# Arguments: a folder of its own, the most seconds for which pods are frozen, then pod:UID for each pod and volume:ID:PATH for each volume. Without pods and volumes it only
# ends and removes the remains of former runs. It writes "held", reads "copy", writes "copied ID BYTES" for each volume and "complete", and reads "release". The pods go on when it ends, however it does.
set -euo pipefail
trap '' PIPE
folder=$1 limit=$2
shift 2
root=/sys/fs/cgroup
if [ -d "$root/freezer" ]; then root=$root/freezer; fi

cgroup() { find "$root" -type d \( -name "pod$1" -o -name "*-pod${1//-/_}.slice" \) -print -quit; }
stop() { if [ -e "$1/cgroup.freeze" ]; then echo 1 >"$1/cgroup.freeze"; else echo FROZEN >"$1/freezer.state"; fi; }
stands() { if [ -e "$1/cgroup.freeze" ]; then grep -qx 'frozen 1' "$1/cgroup.events"; else [ "$(cat "$1/freezer.state")" = FROZEN ]; fi; }
run() { # one that is gone runs no more
	if [ -e "$1/cgroup.freeze" ]; then echo 0 >"$1/cgroup.freeze"; elif [ -e "$1/freezer.state" ]; then echo THAWED >"$1/freezer.state"; fi
}

hear() { # ends the script where nothing else is said
	local word
	read -r -t "$limit" word || exit 1
	[ "$word" = "$1" ] || exit 1
}

# A run that is still going on is of a server that has died: it ends first, and its watch, which has the lock too, lets its pods go on.
exec 9<>/run/burano-backup
flock --nonblock 9 || {
	kill -KILL -- "-$(cat /run/burano-backup)" || true
	flock --timeout 10 9 || {
		echo "a former backup is going on here and does not end" >&2
		exit 1
	}
}
echo "$$" >/run/burano-backup # bash leads its process group

volumes=() groups=() watch=
need=0
for one; do
	case $one in
	pod:*)
		group=$(cgroup "${one#pod:}")
		[ -n "$group" ] || {
			echo "pod ${one#pod:} has no cgroup here: it has just ended, or what runs it makes none" >&2
			exit 1
		}
		groups+=("$group")
		;;
	volume:*)
		volumes+=("${one#volume:}")
		path=${one#volume:*:}
		[ -d "$path" ] || {
			echo "there is no $path: the volume is not mounted here" >&2
			exit 1
		}
		need=$((need + $({ du -sxB1 -- "$path" 2>/dev/null || true; } | cut -f1)))  # its files come and go still
		;;
	esac
done
rm -rf -- "${folder%/*}"
[ "$((${#volumes[@]} + ${#groups[@]}))" -gt 0 ] || exit 0
(umask 077 && mkdir -p "$folder")
read -r size free < <(df -B1 --output=size,avail "$folder" | tail -1)
# The kubelet evicts pods where less than a tenth is free, and a large disk that has been fuller before needs no seventh for that.
reserve=$((size / 7 < free / 2 ? size / 7 : free / 2))
if [ "$need" -gt $((free - reserve)) ]; then
	echo "the volumes have $need bytes, and their copies need as much of the $free that are free in $folder, of which $reserve stay free" >&2
	exit 1
fi

release() {
	for group in "${groups[@]}"; do run "$group" || true; done
	[ -z "$watch" ] || kill -KILL -- "-$watch" 2>/dev/null || true
}
trap release EXIT
if [ "${#groups[@]}" -gt 0 ]; then
	# Whatever becomes of this script.
	# shellcheck disable=SC2016
	setsid bash -c "$(declare -f run)"'; until ! kill -0 "$1" || [ "$SECONDS" -ge "$2" ]; do sleep 0.2; done; shift 2; for group; do run "$group"; done' \
		watch "$$" "$limit" "${groups[@]}" </dev/null >/dev/null 2>&1 &
	watch=$!
fi
for group in "${groups[@]}"; do stop "$group"; done
deadline=$((SECONDS + limit))
for group in "${groups[@]}"; do
	until stands "$group"; do
		[ "$SECONDS" -lt "$deadline" ] || {
			echo "the pod of $group does not freeze" >&2
			exit 1
		}
		sleep 0.02
		stop "$group"
	done
done
echo held
hear copy
for one in "${volumes[@]}"; do
	id=${one%%:*} path=${one#*:}
	cp -a --reflink=auto --one-file-system -- "$path/." "$folder/$id"
	echo "copied $id $(du -sxB1 -- "$folder/$id" | cut -f1)"
done
for group in "${groups[@]}"; do
	stands "$group" || {
		echo "copying took longer than $limit s, for which pods may be frozen: they have gone on, and the copies are of no one moment" >&2
		exit 1
	}
done
echo complete
hear release
