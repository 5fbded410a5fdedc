#!/usr/bin/env bash
# Has the nodes enforce NetworkPolicies, or ends that: network-policies.sh on|off. kube-router does it, as a process of each node. Of its three
# tasks it has the firewall alone: there is no kube-proxy, and the routes are those of up.sh.
set -euo pipefail
# shellcheck source=lib/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/cluster.sh"

NODES_WITH_POLICIES=(node-az1 node-az1-2 node-az2)
# kube-router's iptables must be the one of the kernel's own tables: its sets have no match in nftables.
TOOLS=$BED/iptables

make_tools() {
	local name
	mkdir -p "$TOOLS"
	for name in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
		ln -sf /usr/sbin/xtables-legacy-multi "$TOOLS/$name"
	done
}

# A node reaches the pods of the others without this machine, which does not forward.
add_routes() { # NODE
	local i
	for i in "${!NODES_WITH_POLICIES[@]}"; do
		[ "${NODES_WITH_POLICIES[i]}" = "$1" ] || in_node "$1" ip route replace "198.18.$((145 + i)).0/24" via "$NODE_NETWORK.$((11 + i))"
	done
}

# The packets between pods of one node pass a bridge, which asks iptables only if it is told to.
start_router() { # NODE
	# shellcheck disable=SC2016 # the shell of the node expands these
	in_node "$1" sh -c '
		pidof kube-router >/dev/null && exit 0
		echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
		cd /
		PATH=$2:$PATH setsid nohup "$1/kube-router" --run-router=false --run-service-proxy=false --run-firewall=true --health-port=0 --v=1 \
			--hostname-override="$4" --kubeconfig="$3/admin.kubeconfig" --service-cluster-ip-range="$5" >>"$3/log/kube-router-$4.log" 2>&1 </dev/null &
	' sh "$BIN" "$TOOLS" "$BED" "$1" "$SERVICES" 9>&-
}

stop_router() { # NODE
	# shellcheck disable=SC2016
	in_node "$1" sh -c '
		for pid in $(pidof kube-router); do kill "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done; done
		PATH=$2:$PATH
		iptables -F && iptables -X
		for set in $(ipset list -n); do ipset destroy "$set" 2>/dev/null; done
		for set in $(ipset list -n); do ipset destroy "$set"; done
		echo 0 >/proc/sys/net/bridge/bridge-nf-call-iptables
	' sh "$BIN" "$TOOLS"
}

# shellcheck disable=SC2034 # packages.sh reads it
PACKAGES=(iptables ipset)
case ${1:-} in
	on)
		install_packages
		make_tools
		for node in "${NODES_WITH_POLICIES[@]}"; do
			add_routes "$node"
			start_router "$node"
		done
		;;
	off) for node in "${NODES_WITH_POLICIES[@]}"; do stop_router "$node"; done ;;
	*) die "usage: network-policies.sh on|off" ;;
esac
