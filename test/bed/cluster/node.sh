#!/usr/bin/env bash
# The first process of a node's namespaces (started by up.sh): makes the file systems and the network of a server of the OpenStack bed, then runs
# containerd and kubelet with everything at its usual path. When one of them ends, so does the node; kubelet alone starts again, as with systemd. When
# this ends, the kernel ends the rest.
set -euo pipefail
bed=$1 bin=$2 kubelet=$3 name=$4 server=$5 metadata=$6 address=$7 gateway=$8
node=$bed/nodes/$name
hostname "$name"

# ---- file systems. Shared, as systemd makes them: kubelet's mounts propagate into the driver's container.
mount --make-rshared /
mount --bind "$node/lib" /var/lib
mount --bind "$node/log" /var/log
mount -t tmpfs -o mode=755 run /run

# This network namespace's sysfs, with the server's disks, and this cgroup namespace's cgroups.
controllers=$(cd /sys/fs/cgroup && find . -mindepth 1 -maxdepth 1 -type d ! -name unified -printf '%f\n')
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
for controller in $controllers; do
	mkdir "/sys/fs/cgroup/$controller"
	option=$controller
	[ "$controller" != systemd ] || option=none,name=systemd
	mount -t cgroup -o "$option" cgroup "/sys/fs/cgroup/$controller"
done
mount --bind "$server/sys/block" /sys/block
mount --make-rprivate /sys

# The devices that every server has; node-devices adds the disks. kubelet makes loop devices for raw block volumes.
make_devices() {
	local i
	mkdir /run/dev
	mount -t tmpfs -o mode=755 dev /run/dev
	cd /run/dev
	mkdir pts shm mqueue
	mknod -m 666 null c 1 3
	mknod -m 666 zero c 1 5
	mknod -m 666 full c 1 7
	mknod -m 666 random c 1 8
	mknod -m 666 urandom c 1 9
	mknod -m 644 kmsg c 1 11
	mknod -m 666 tty c 5 0
	mknod -m 660 loop-control c 10 237
	for i in $(seq 0 127); do mknod -m 660 "loop$i" b 7 "$i"; done
	ln -s /proc/self/fd fd
	ln -s pts/ptmx ptmx
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts pts
	mount -t tmpfs -o mode=1777 shm shm
	mount -t mqueue mqueue mqueue
	cd /
	mount --rbind /run/dev /dev
}
make_devices

# ---- network: up.sh moves eth0 in. There is no default route, so no packet leaves the machine.
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip address add 169.254.169.254/32 dev lo
ip address add "$address/24" dev eth0
ip link set eth0 up
ip route add 198.18.0.0/15 via "$gateway"
echo 1 >/proc/sys/net/ipv4/ip_forward

# ---- processes
run() { # NAME COMMAND...
	local log=$bed/log/$name-$1.log
	shift
	"$@" >>"$log" 2>&1 </dev/null &
}
run devices "$bin/node-devices" /sys/block /dev
run metadata "$bin/node-metadata" 169.254.169.254:80 "$metadata"
run containerd containerd --config "$node/containerd.toml"
until ctr version >/dev/null 2>&1; do sleep 0.1; done
# kubelet looks for its loop devices in /sys/block, where the server's disks hide them: it alone sees this machine's instead.
run kubelet bash -c 'while :; do "$@"; echo "kubelet has ended and starts again"; sleep 0.5; done' bash \
	unshare --mount --propagation unchanged bash -c 'umount /sys/block && exec "$@"' bash \
	"$kubelet" --config="$node/kubelet.yaml" --kubeconfig="$bed/$name.kubeconfig" --hostname-override="$name" --node-ip="$address" --v=2
wait -n
echo "a process of $name has ended; so does the node" >&2
exit 1
