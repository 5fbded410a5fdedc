# shellcheck shell=bash
# The nodes: each is a server of the OpenStack bed, in namespaces of its own. node.sh is its first process.

# Two in one zone, so that a pod can move; one in the other.
SERVERS=(node-az1 node-az1-2 node-az2)

# A node's place among the servers; its addresses follow from it.
number_of() { # NODE
	local i
	for i in "${!SERVERS[@]}"; do
		if [ "${SERVERS[i]}" = "$1" ]; then
			echo $((i + 1))
			return
		fi
	done
	die "no node has the name $1: ${SERVERS[*]}"
}

# The controllers that the kernel has, in the hierarchies of version 1.
cgroup_roots() { find /sys/fs/cgroup -mindepth 1 -maxdepth 1 -type d ! -name unified; }

# What a node takes for the root of its cgroups. A cpuset is empty until it is filled from its parent.
make_cgroups() { # NODE
	local root directory
	for root in $(cgroup_roots); do
		for directory in "$root/cluster-bed" "$root/cluster-bed/$1"; do
			mkdir -p "$directory"
			[ ! -e "$directory/cpuset.cpus" ] || {
				cat "$directory/../cpuset.cpus" >"$directory/cpuset.cpus"
				cat "$directory/../cpuset.mems" >"$directory/cpuset.mems"
			}
		done
	done
}

remove_cgroups() { # [NODE]
	local root directory
	for root in $(cgroup_roots); do
		directory=$root/cluster-bed${1:+/$1}
		[ ! -d "$directory" ] || find "$directory" -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
}

# With an address of its own: else it changes with each node that joins, and the others keep the old one for a minute.
make_bridge() {
	ip link show "$BRIDGE" >/dev/null 2>&1 || ip link add "$BRIDGE" address 02:00:c6:12:90:01 type bridge
	ip address replace "$NODE_NETWORK.1/24" dev "$BRIDGE"
	ip link set "$BRIDGE" up
}

containerd_config() { # NODE
	cat <<-T
		version = 2
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "cluster-bed/pause:1"
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		    runtime_type = "io.containerd.runc.v2"
		    base_runtime_spec = "$NODES/$1/spec.json"
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "/usr/lib/cni"
		    conf_dir = "$NODES/$1/cni"
	T
}

# A container's own sysfs would show this machine's disks; it gets the node's /sys, which has the server's. Private: what a container
# mounts there is not the node's.
container_spec() {
	ctr oci spec | jq '.mounts |= map(if .destination == "/sys"
		then {destination: "/sys", type: "bind", source: "/sys", options: ["rbind", "rprivate", "nosuid", "noexec", "nodev", "ro"]} else . end)'
}

cni_config() { # NUMBER
	cat <<-J
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false,
		 "ipam": {"type": "host-local", "ranges": [[{"subnet": "198.18.$((144 + $1)).0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	J
}

kubelet_config() { # NODE
	cat <<-Y
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
		authorization: {mode: Webhook}
		tlsCertFile: $PKI/$1.crt
		tlsPrivateKeyFile: $PKI/$1.key
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		failCgroupV1: false
		cgroupDriver: cgroupfs
		failSwapOn: false
		makeIPTablesUtilChains: false
		localStorageCapacityIsolation: false
		imageGCHighThresholdPercent: 100
		evictionHard: {imagefs.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, memory.available: 10Mi}
		# When kubelet sees that a claim has grown; a minute by default.
		syncFrequency: 5s
		# No name server: no query leaves the machine.
		resolvConf: $BED/resolv.conf
	Y
}

start_node() { # NODE
	local directory=$NODES/$1 number address metadata pid
	if alive "$1"; then return 0; fi
	number=$(number_of "$1")
	address=$NODE_NETWORK.$((number + 10))
	metadata=$(jq -r '"http://\(.address):\(.metadata_proxy)"' "$OPENSTACK/bed.json")
	mkdir -p "$directory"/{cni,lib/kubelet,log}
	make_cgroups "$1"
	make_certificate "$1" "/O=system:nodes/CN=system:node:$1" "IP:$address,DNS:$1"
	make_kubeconfig "$1"
	containerd_config "$1" >"$directory/containerd.toml"
	container_spec >"$directory/spec.json"
	cni_config "$number" >"$directory/cni/10-pods.conflist"
	kubelet_config "$1" >"$directory/kubelet.yaml"
	start "$1" "$HERE/in-cgroups.sh" "cluster-bed/$1" \
		unshare --mount --uts --ipc --net --cgroup --pid --fork --kill-child --mount-proc \
		"$HERE/node.sh" "$BED" "$BIN" "$(kubernetes kubelet)" "$1" "$OPENSTACK/servers/by-name/$1" "$metadata/$1" "$address" "$NODE_NETWORK.1"
	wait_for 60 "$1" node_pid "$1"
	pid=$(node_pid "$1")
	ip link add "cb-$1" type veth peer name eth0 netns "$pid"
	ip link set "cb-$1" master "$BRIDGE" up
	ip route replace "198.18.$((144 + number)).0/24" via "$address"
}

await_node() { # NODE
	wait_for 180 "$1" in_node "$1" ctr version
	wait_for 180 "$1" kubectl wait --for=condition=Ready "node/$1" --timeout=1s
}

# All at once, and then one after the other is filled.
start_nodes() {
	local node image
	make_images
	make_bridge
	: >"$BED/resolv.conf"
	for node in "${SERVERS[@]}"; do start_node "$node"; done
	for node in "${SERVERS[@]}"; do
		await_node "$node"
		for image in "$BED"/images/*.tar; do import "$node" "$image"; done
	done
}

# As when a server loses its power: every process ends without a word. Only the kernel stays, which writes back what was written to a file.
stop_node() { # NODE
	local init
	init=$(node_pid "$1")
	signal KILL "$(pid_of "$1")" "$init"
	wait_gone 600 "$init" || die "process $init of $1 does not end"
	rm "$RUN/$1.pid"
	# The next kubelet would look for three seconds at each container that is no more.
	remove_cgroups "$1"
}

# kubelet holds a raw block volume by a loop device. Its file's name is lost with the node, so this is before that: the kernel frees the device
# with its last user.
release_loops() {
	local device file
	losetup -n -l -O NAME,BACK-FILE | while read -r device file; do
		case $file in /var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/*) losetup -d "$device" || true ;; esac
	done
}

# Without a registry every image must be there; test-cluster imports those of the bundle.
make_images() {
	local snapshots
	snapshots=$(sed -n 's/^ *image: *//p' "$(module github.com/kubernetes-csi/external-snapshotter/v8)/deploy/kubernetes/snapshot-controller/setup-snapshot-controller.yaml")
	mkdir -p "$BED/images"
	"$BIN/static-image" -output "$BED/images/pause.tar" -name cluster-bed/pause:1 "$BIN/pause"
	"$BIN/static-image" -output "$BED/images/workload.tar" -name cluster-bed/workload:1 "$BIN/workload"
	"$BIN/static-image" -output "$BED/images/snapshot-controller.tar" -name "$snapshots" "$BIN/snapshot-controller"
}

import() { # NODE ARCHIVE
	in_node "$1" ctr --namespace k8s.io images import "$2" >>"$LOG/images.log"
}
