# shellcheck shell=bash
# Which cloud, where its root directory and its bed are, and how a command runs in it. Sourced by up.sh and down.sh.

CLOUD=${CLOUD:-zed} BACKEND=${BACKEND:-file} COMPUTE=${COMPUTE:-loop}
CLOUD_BEDS=${CLOUD_BEDS:-${TMPDIR:-/tmp}/cloud-bed}
CLOUD_CACHE=${CLOUD_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/cloud-bed}
OPENSTACK_SCRIPTS=$(cd "$HERE/../openstack" && pwd)
export OPENSTACK_BED
[ "$CLOUD" = zed ] || OPENSTACK_BED=$CLOUD_BEDS/$CLOUD
[ "$CLOUD" = zed ] || [ "$BACKEND" = file ] || OPENSTACK_BED+=-$BACKEND
[ "$CLOUD" = zed ] || [ "$COMPUTE" = loop ] || OPENSTACK_BED+=-$COMPUTE
# shellcheck source=../../openstack/lib/bed.sh
. "$OPENSTACK_SCRIPTS/lib/bed.sh"

# The Debian suite of a release, and the ports and the address that keep it apart from the others and from the bed of this machine. A second
# cloud of the same release runs beside the first with PORT_OFFSET and BED_ADDRESS of the caller.
choose_cloud() {
    local offset address
    case $CLOUD in
        zed) SUITE=bookworm offset='' address='' ;;
        victoria) SUITE=bullseye offset=1000 address=198.18.0.2 ;;
        epoxy) SUITE=trixie offset=2000 address=198.18.0.3 ;;
        sid) SUITE=sid offset=3000 address=198.18.0.4 ;;
        *) die "no cloud $CLOUD; CLOUD is victoria, zed, epoxy or sid" ;;
    esac
    PORT_OFFSET=${PORT_OFFSET:-$offset} BED_ADDRESS=${BED_ADDRESS:-$address}
    # shellcheck disable=SC2034 # used by the scripts that source this
    ROOT=$CLOUD_CACHE/$SUITE
}

# Debian does not have every part in every suite, and this bed does not start every part that Debian has.
refuse_what_does_not_run() {
    case $BACKEND in
        file) ;;
        ceph) [ "$CLOUD" = epoxy ] || die "BACKEND=ceph runs with CLOUD=epoxy alone: the others were not tried" ;;
        *) die "no backend $BACKEND; BACKEND is file or ceph" ;;
    esac
    case $COMPUTE in
        loop) ;;
        libvirt)
            [ "$BACKEND" = ceph ] || die "COMPUTE=libvirt runs with BACKEND=ceph alone: libvirt gets no disk from a driver of files"
            [ -s "$OPENSTACK_BED/guest/initramfs" ] || die "no guest in $OPENSTACK_BED/guest; make cloud-up builds it"
            BED_ATTACH=libvirt
            ;;
        *) die "no compute driver $COMPUTE; COMPUTE is loop or libvirt" ;;
    esac
}

# The mounts are in a mount namespace of their own, which ends with its last process. So nothing of this machine is below the
# root directory for anybody else, and a script may delete it.
enter() { # COMMAND...: in the root directory
    mkdir -p "$CLOUD_BEDS" "$ROOT$CLOUD_BEDS" "$ROOT/opt/openstack-scripts"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --propagation slave /bin/bash -euc '
        root=$1 beds=$2 scripts=$3
        shift 3
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        mount --bind "$beds" "$root$beds"
        mount --bind "$scripts" "$root/opt/openstack-scripts"
        mount -o remount,bind,ro "$root/opt/openstack-scripts" # Python would write its byte code there
        exec chroot "$root" "$@"' enter "$ROOT" "$CLOUD_BEDS" "$OPENSTACK_SCRIPTS" \
        env TMPDIR=/tmp PORT_OFFSET="$PORT_OFFSET" BED_ADDRESS="$BED_ADDRESS" BED_CACHE=/var/cache/openstack-bed \
        BED_CLOUD="$CLOUD" BED_BACKEND="$BACKEND" ${BED_ATTACH:+BED_ATTACH="$BED_ATTACH"} "$@"
}
