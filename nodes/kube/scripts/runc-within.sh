#!/bin/bash
# runc for Docker on a server that is a container, whose root may not lower the score by which the kernel chooses whom to end when memory is
# short: with a lower one containers would not start. containerd does the same by itself (restrict_oom_score_adj).
set -euo pipefail
words=("$@")
for ((i = 0; i < $# - 1; i++)); do
	if [ "${words[i]}" = --bundle ]; then
		sed -i -E 's/"oomScoreAdj":-[0-9]+/"oomScoreAdj":0/' "${words[i + 1]}/config.json"
	fi
done
exec runc "$@"
