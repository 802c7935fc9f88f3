#!/bin/bash
# Gets what a script of a plan downloads: "get file|archive|git|svn URL NAME" puts it into the folder NAME. It runs under sh; calls follow.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

need() {
	have "$1" || { echo "$1 is not installed on this server, and is needed to get $2" >&2; exit 1; }
}

fetch() {
	if have curl; then
		curl -fsSL --retry 3 -o "$2" "$1"
	else
		need wget "$1"
		wget -q -t 3 -O "$2" "$1"
	fi
}

get() {
	rm -rf "$3"
	mkdir -p "$3"
	name=${2##*/}
	name=${name%%\?*}
	case $1 in
	git)
		need git "$2"
		git clone --quiet --recursive "$2" "$3"
		;;
	svn)
		need svn "$2"
		svn checkout --quiet --non-interactive --trust-server-cert "$2" "$3"
		;;
	file) fetch "$2" "$3/$name" ;;
	archive)
		fetch "$2" "$3/$name"
		mkdir "$3/.unpacked"
		case $name in
		*.zip)
			need unzip "$2"
			unzip -q "$3/$name" -d "$3/.unpacked"
			;;
		*) tar -x --no-same-owner -f "$3/$name" -C "$3/.unpacked" ;;
		esac
		rm -f "$3/$name"
		# A single folder at the top is the archive's own name, not a part of what it holds.
		from=$3/.unpacked
		if [ "$(find "$from" -mindepth 1 -maxdepth 1 | wc -l)" = 1 ] && [ -d "$(find "$from" -mindepth 1 -maxdepth 1)" ]; then
			from=$(find "$from" -mindepth 1 -maxdepth 1)
		fi
		find "$from" -mindepth 1 -maxdepth 1 -exec mv {} "$3/" \;
		rm -rf "$3/.unpacked"
		;;
	esac
}
