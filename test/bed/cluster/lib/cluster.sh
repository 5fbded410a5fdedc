# shellcheck shell=bash
# Where the cluster is, and its processes. Sourced by up.sh and down.sh.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BED=${CLUSTER_BED:-${TMPDIR:-/tmp}/cluster-bed}
case $BED in /*) ;; *) BED=$PWD/$BED ;; esac
LOG=$BED/log RUN=$BED/run
# shellcheck disable=SC2034 # used by the scripts that source this
PKI=$BED/pki NODES=$BED/nodes OPENSTACK=${OPENSTACK_BED:-${TMPDIR:-/tmp}/openstack-bed}
# Binaries survive down.sh.
CLUSTER_CACHE=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cluster-bed}
# shellcheck disable=SC2034
BIN=$CLUSTER_CACHE/bin

# The range for benchmarks (RFC 2544), which nobody routes; the OpenStack bed has the first address of it. The API server listens on the first
# address of the services itself, which Kubernetes makes its service address: pods reach it without kube-proxy.
# shellcheck disable=SC2034
SERVICES=198.18.128.0/20 API=198.18.128.1 BRIDGE=cluster-bed NODE_NETWORK=198.18.144

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

[ "$(id -u)" = 0 ] || die "run as root"

# shellcheck source=../../openstack/lib/process.sh
. "$HERE/../openstack/lib/process.sh"
# shellcheck source=../../openstack/lib/packages.sh
. "$HERE/../openstack/lib/packages.sh"
# The mark by which this cluster's processes are found; the variable is process.sh's.
# shellcheck disable=SC2034
MARK=CLUSTER_BED_PROCESS
# shellcheck disable=SC2034
PACKAGES=(busybox-static containerd runc containernetworking-plugins iproute2 jq openssl procps mount util-linux e2fsprogs xfsprogs libfaketime)

# One script at a time works on a cluster. Daemons must not inherit the lock.
lock_cluster() {
	exec 9>"$BED.lock"
	flock -w 600 9 || die "another script holds $BED.lock"
}

# The node's processes are children of its init; this is init's pid as this machine sees it.
node_pid() { # NODE
	local pid
	read -r pid _ <"$RUN/$1.pid"
	pgrep -P "$pid"
}

in_node() { # NODE COMMAND...
	local pid
	pid=$(node_pid "$1")
	shift
	nsenter --target "$pid" --mount --uts --ipc --net --cgroup --pid -- "$@"
}

# The path of a program of Kubernetes, in the version that the cluster was started with.
kubernetes() { # PROGRAM
	local version
	version=$(cat "$BED/$([ "$1" = kubelet ] && echo kubelet || echo kubernetes)" 2>/dev/null || true)
	if [ -n "$version" ]; then echo "$CLUSTER_CACHE/versions/$version/$1"; else echo "$BIN/$1"; fi
}
