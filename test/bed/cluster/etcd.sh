#!/usr/bin/env bash
# What happens to the etcd of a running cluster, for the rehearsals of a recovery:
#
#   etcd.sh lose            every node loses its power, etcd its data; then a new cluster starts on the same nodes
#   etcd.sh save DIR        a backup of etcd, while the cluster runs
#   etcd.sh restore DIR     etcd gets that backup instead of its data; API server, controllers and kubelets start again
#
# In the new cluster the nodes are as after an installation: no pods, no volumes, no CSINode. The images stay. `up.sh` repairs a cluster on which
# this script was interrupted.
set -euo pipefail
# shellcheck source=lib/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/cluster.sh"
# shellcheck source=lib/pki.sh
. "$HERE/lib/pki.sh"
# shellcheck source=lib/controlplane.sh
. "$HERE/lib/controlplane.sh"
# shellcheck source=lib/nodes.sh
. "$HERE/lib/nodes.sh"

stop() { # NAME...: as when the machine of the control plane is lost
	local name pid
	for name; do
		alive "$name" || continue
		pid=$(pid_of "$name")
		signal KILL "$pid"
		wait_gone 600 "$pid" || die "process $pid of $name does not end"
		rm "$RUN/$name.pid"
	done
}

stop_control_plane() { stop kube-scheduler kube-controller-manager kube-apiserver etcd; }

# kubelet's own directory is what an installation of the node replaces; containerd keeps the images.
reinstall() { # NODE
	rm -rf "$NODES/$1/lib/kubelet" "$NODES/$1/log/pods" "$NODES/$1/log/containers"
}

lose() {
	local node
	release_loops
	for node in "${SERVERS[@]}"; do
		if alive "$node"; then stop_node "$node"; fi
		reinstall "$node"
	done
	stop_control_plane
	rm -rf "$BED/etcd"
	start_control_plane
	start_nodes
	start_snapshot_controller
}

# etcd stands still meanwhile, so that its files are of one moment.
save() { # DIR
	local pid
	pid=$(pid_of etcd)
	rm -rf "$1"
	signal STOP "$pid"
	cp -a "$BED/etcd" "$1" || {
		signal CONT "$pid"
		die "etcd was not copied to $1"
	}
	signal CONT "$pid"
}

restart_kubelet() { # NODE
	in_node "$1" pkill -TERM -x kubelet || true
}

restore() { # DIR
	local node
	[ -d "$1/member" ] || die "$1 is no backup of etcd"
	stop_control_plane
	rm -rf "$BED/etcd"
	cp -a "$1" "$BED/etcd"
	start_control_plane
	for node in "${SERVERS[@]}"; do
		restart_kubelet "$node"
		await_node "$node"
	done
}

lock_cluster
case ${1:-} in
	lose) lose ;;
	save | restore) "$1" "${2:?the directory of the backup}" ;;
	*) die "usage: etcd.sh lose | save DIR | restore DIR" ;;
esac
say "$1: done"
