#!/usr/bin/env bash
# Stops the cluster that up.sh started, also half of one, and deletes its data. The built programs and the OpenStack bed stay.
set -euo pipefail
# shellcheck source=lib/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/cluster.sh"
# shellcheck source=lib/nodes.sh
. "$HERE/lib/nodes.sh"

# A node's first process takes its others and its mounts with it.
kill_all() {
	local pids
	while mapfile -t pids < <(ours) && [ "${#pids[@]}" -gt 0 ]; do
		signal KILL "${pids[@]}"
		sleep 0.2
	done
}

main() {
	if [ ! -d "$RUN" ]; then
		echo "no cluster in $BED"
		return
	fi
	lock_cluster
	release_loops
	kill_all
	remove_cgroups
	ip link del "$BRIDGE" 2>/dev/null || true
	ip address del "$API/32" dev lo 2>/dev/null || true
	[ ! -s "$BED/sysctls" ] || sysctl -q -p "$BED/sysctls" || true
	rm -rf "$BED" "$BED.lock"
	echo "stopped and wiped $BED"
}

main
