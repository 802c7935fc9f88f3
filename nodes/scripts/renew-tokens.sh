#!/bin/bash
# Has the kubelet ask for new tokens of pods where they have tokens that keys signed whose ids are KEYS (one a line), and waits until no pod has
# such a token. Prints how many there were. A kubelet that starts again asks for all tokens; pods and containers stay as they are.
set -euo pipefail
pods=${PODS_FOLDER:-/var/lib/kubelet/pods}
deadline=$((SECONDS + ${PATIENCE:-180}))
former() { # prints the files of such tokens: the key's id stands in the first part of a token (RFC 7515)
	local file header
	while IFS= read -r file; do
		header=$(head -c 1024 "$file" 2>/dev/null | head -n 1 | cut -d . -f 1 | tr -- '-_' '+/') || continue
		while ((${#header} % 4)); do
			header+='='
		done
		if base64 -d <<<"$header" 2>/dev/null | grep -qFf <(printf '%s\n' "${KEYS:?}"); then
			echo "$file"
		fi
	done < <(find -L "$pods"/*/volumes/kubernetes.io~projected -name '..*' -prune -o -type f -size -64k -print0 2>/dev/null | xargs -0r grep -ls '^eyJ' || true)
}
found=$(former)
if [ -z "$found" ]; then
	echo 0
	exit 0
fi
systemctl restart kubelet
until [ -z "$(former)" ]; do
	if [ "$SECONDS" -ge "$deadline" ]; then
		echo "pods still have tokens that a former key signed:" >&2
		former | sed "s#^$pods/##; s#/.*##" | sort -u | head -n 5 >&2
		exit 1
	fi
	sleep 0.5
done
wc -l <<<"$found"
