#!/usr/bin/env bash
# Starts a Kubernetes cluster on this machine whose nodes are servers of the OpenStack bed, or what of it does not run. See README.md.
#
#   CLUSTER_BED      directory; default ${TMPDIR:-/tmp}/cluster-bed
#   OPENSTACK_BED    directory of the OpenStack bed; default ${TMPDIR:-/tmp}/openstack-bed
#   CLUSTER_CACHE    ~/.cache/cluster-bed: keeps the programs
#   CLUSTER_KUBERNETES  another version of Kubernetes, such as v1.28.15; CLUSTER_KUBELET: another one of kubelet. The cluster keeps them until down.sh
set -euo pipefail
# shellcheck source=lib/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/cluster.sh"
# shellcheck source=lib/pki.sh
. "$HERE/lib/pki.sh"
# shellcheck source=lib/controlplane.sh
. "$HERE/lib/controlplane.sh"
# shellcheck source=lib/nodes.sh
. "$HERE/lib/nodes.sh"

# kubelet changes these for the whole machine; down.sh restores them.
SYSCTLS=(kernel.panic kernel.panic_on_oops kernel.keys.root_maxbytes kernel.keys.root_maxkeys vm.overcommit_memory vm.panic_on_oom)

check_cgroups() {
	[ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ] || die "this machine has cgroup version 2; the nodes are made for version 1"
}

keep_version() { # FILE VERSION
	[ -e "$BED/$1" ] || echo "$2" >"$BED/$1"
	[ -z "$2" ] || [ "$2" = "$(cat "$BED/$1")" ] || die "$BED was started with another version of $1 than $2; run down.sh first"
}

# The programs of other versions are beside those of the pinned one. Scripts that start them again later find the versions in the bed.
choose_versions() {
	keep_version kubernetes "${CLUSTER_KUBERNETES:-}"
	keep_version kubelet "${CLUSTER_KUBELET:-${CLUSTER_KUBERNETES:-}}"
	build_version "$(cat "$BED/kubernetes")" kube-apiserver kube-controller-manager kube-scheduler
	build_version "$(cat "$BED/kubelet")" kubelet
}

build_version() { # VERSION PROGRAM...: without a version, the pinned one has them
	[ -z "$1" ] || PROGRAMS="${*:2}" nice -n 10 "$HERE/build-versions.sh" "$CLUSTER_CACHE/versions" "$1"
}

start_openstack() {
	BED_NODES_PER_AZ=2 "$HERE/../openstack/up.sh" 9>&-
}

main() {
	check_cgroups
	mkdir -p "$LOG" "$RUN" "$PKI" "$NODES"
	chmod 700 "$BED" # it holds keys
	lock_cluster
	install_packages
	say "the OpenStack bed"
	start_openstack
	say "building the programs, the first time for half an hour"
	nice -n 10 "$HERE/build.sh" "$BIN"
	choose_versions
	[ -s "$BED/sysctls" ] || sysctl "${SYSCTLS[@]}" >"$BED/sysctls"
	make_pki
	say "the control plane"
	start_control_plane
	say "the nodes"
	start_nodes
	start_snapshot_controller
	say "ready: export KUBECONFIG=$BED/admin.kubeconfig"
}

main
