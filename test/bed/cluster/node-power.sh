#!/usr/bin/env bash
# Cuts the power of a node of the running cluster, or switches it on and waits until it is ready: node-power.sh off|on NODE
# Its server in OpenStack stays: that one is a record with disks, without a life of its own.
set -euo pipefail
# shellcheck source=lib/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/cluster.sh"
# shellcheck source=lib/pki.sh
. "$HERE/lib/pki.sh"
# shellcheck source=lib/controlplane.sh
. "$HERE/lib/controlplane.sh"
# shellcheck source=lib/nodes.sh
. "$HERE/lib/nodes.sh"

lock_cluster
case ${1:-} in
	off) stop_node "$2" ;;
	on)
		start_node "$2"
		await_node "$2"
		;;
	*) die "usage: node-power.sh off|on NODE" ;;
esac
