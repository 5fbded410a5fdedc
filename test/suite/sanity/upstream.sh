# shellcheck shell=bash
# Runs upstream's plugin as on a server of test/bed/openstack: upstream.sh SERVER TMP PROGRAM ARGUMENT... in a mount namespace of its own.
# The plugin finds disks in /dev/disk/by-id, and reads the metadata from a disk with the label config-2, which it mounts.
server=$1 tmp=$2
shift 2

mkdir -p "$tmp/dev" "$tmp/bin" "$tmp/tmp"
mount -t tmpfs -o mode=755 dev "$tmp/dev"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/loop-control "$tmp/dev"
for i in $(seq 0 255); do mknod -m 660 "$tmp/dev/loop$i" b 7 "$i"; done
mkdir -p "$tmp/dev/disk/by-id" "$tmp/dev/disk/by-label"
ln -s /dev/null "$tmp/dev/disk/by-label/config-2"
mount --bind "$server/by-id" "$tmp/dev/disk/by-id"

# The config drive is a directory here, so its mount is a bind mount.
cat >"$tmp/bin/mount" <<EOT
#!/bin/sh
for target; do :; done
case " \$* " in *" iso9660 "*) exec $(command -v mount) --bind "$server/config-drive" "\$target" ;; esac
exec $(command -v mount) "\$@"
EOT
chmod 755 "$tmp/bin/mount"

mount --rbind "$tmp/dev" /dev
export PATH=$tmp/bin:$PATH TMPDIR=$tmp/tmp
exec "$@"
