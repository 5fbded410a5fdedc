#!/usr/bin/busybox sh
# shellcheck shell=dash
# Process 1 of the test guest. It makes the machine usable, and ends it when the agent ends.
# busybox comes last in the path, and the driver does not have it in its own: that finds the tools of its image alone.
/usr/bin/busybox mkdir -p /busybox /root /csi /var/lib/kubelet
/usr/bin/busybox --install -s /busybox
export PATH=/usr/sbin:/usr/bin:/busybox HOME=/root

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mount --make-rshared / # kubelet and the driver share their mounts

xargs modprobe -a </etc/guest-modules

if grep -qw guest.udev /proc/cmdline; then
	mkdir -p /run/udev
	/usr/lib/systemd/systemd-udevd --daemon
	udevadm trigger --action=add
	udevadm settle --timeout=30
fi

ip link set lo up
if [ -d /sys/class/net/eth0 ]; then # a guest of Nova has none
	ip addr add 10.0.2.15/24 dev eth0
	ip link set eth0 up
fi

guest-agent
poweroff -f
