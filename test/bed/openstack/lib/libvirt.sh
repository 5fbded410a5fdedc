# shellcheck shell=bash
# Nova's own libvirt driver with QEMU, which emulates the processor: the servers are guests. Each compute has a libvirtd. Its
# directories are in a mount namespace of its own, and it has another host name, by which Nova knows a hypervisor.

GUESTS=$RUN/guests
# shellcheck disable=SC2034 # used by up.sh
LIBVIRT_PACKAGES=(nova-compute-kvm libvirt-daemon-system libvirt-clients qemu-system-x86)

libvirt_dir() { echo "$RUN/libvirt-$1"; } # ZONE: what it keeps until the bed stops, with its socket

libvirt_uri() { echo "qemu:///system?socket=$(libvirt_dir "$1")/run/libvirt-sock"; } # ZONE

# libvirtd starts QEMU with an environment of its own, so this puts back the mark by which down.sh finds a process. The second
# serial port is for the tests: no network of the bed reaches into a guest.
write_emulator() { # FILE
    cat > "$1" <<EOT
#!/bin/sh
export $MARK=$BED
uuid= before=
for argument; do
    [ "\$before" != -uuid ] || uuid=\$argument
    before=\$argument
done
case " \$*" in
    *org.qemu.guest_agent.0*)
        set -- "\$@" -chardev "socket,id=bed,path=$GUESTS/\$uuid.sock,server=on,wait=off" \\
            -device '{"driver":"virtserialport","bus":"virtio-serial0.0","id":"bed-port","chardev":"bed","name":"cinder-csi.agent"}'
        ;;
esac
exec /usr/bin/qemu-system-x86_64 "\$@"
EOT
    chmod 755 "$1"
}

# No network and no filter: the default ones would make a bridge and firewall rules on this machine.
write_libvirt_configs() { # ZONE
    local dir etc secret=11111111-2222-4333-8444-555555555555 # as in ceph_cinder_backend
    dir=$(libvirt_dir "$1")
    etc=$dir/etc
    mkdir -p "$dir"/{bin,etc/secrets,run,var,cache} "$LOG/libvirt-$1" "$GUESTS"
    write_emulator "$dir/bin/qemu-system-x86_64"
    echo 'auth_unix_rw = "none"' > "$etc/libvirtd.conf"
    cat > "$etc/qemu.conf" <<'EOT'
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
EOT
    cat > "$etc/secrets/$secret.xml" <<EOT
<secret ephemeral='no' private='no'><uuid>$secret</uuid><usage type='ceph'><name>client.admin</name></usage></secret>
EOT
    (umask 077 && sed -n 's/.*key = //p' "$CEPH/client.admin.keyring" | tr -d '\n' > "$etc/secrets/$secret.base64")
}

start_libvirt() {
    local zone
    [ "$BED_ATTACH" = libvirt ] || return 0
    for zone in $NOVA_AZS; do
        alive "libvirtd-$zone" || write_libvirt_configs "$zone"
        # shellcheck disable=SC2016 # the inner shell expands it
        start "libvirtd-$zone" unshare --mount --uts --propagation unchanged /bin/bash -euc '
            dir=$1 log=$2
            hostname "$3"
            mkdir -p /run/libvirt /var/log/libvirt
            mount --bind "$dir/etc" /etc/libvirt
            mount --bind "$dir/run" /run/libvirt
            mount --bind "$dir/var" /var/lib/libvirt
            mount --bind "$dir/cache" /var/cache/libvirt
            mount --bind "$log" /var/log/libvirt
            PATH=$dir/bin:$PATH exec libvirtd --config "$dir/etc/libvirtd.conf" --pid-file "$dir/libvirtd.pid"' \
            libvirtd "$(libvirt_dir "$zone")" "$LOG/libvirt-$zone" "compute-$zone"
        wait_for 60 "libvirtd-$zone" virsh -c "$(libvirt_uri "$zone")" version
    done
}
