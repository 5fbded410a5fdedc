# shellcheck shell=bash
# Ceph as the backend of Cinder: one monitor, one manager, one OSD in a file, one copy of everything. Cinder has its own RBD
# driver. Backups are in Ceph, too. Nova's driver of the bed reads the images through librbd (pylib/rbdfile.py).

CEPH=$STATE/ceph
# shellcheck disable=SC2034 # used by up.sh
CEPH_PACKAGES=(ceph-mon ceph-mgr ceph-osd ceph-common python3-rados python3-rbd qemu-system-common qemu-block-extra)

ceph_pools() { # one for each zone and type
    local zone
    for zone in $CINDER_AZS; do echo "$zone-standard $zone-fast"; done
}

# Nova gives qemu-img 1 GiB of address space, to read the header of an encrypted volume in use that has grown. With three threads for
# messages, librbd needs more.
ceph_conf() {
    cat <<EOT
[global]
fsid = $(cat "$CEPH/fsid")
mon host = v1:$BED_ADDRESS:$CEPH_PORT
public addr = $BED_ADDRESS
ms bind msgr2 = false
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = $CEPH/\$name.keyring
run dir = $RUN
admin socket = $RUN/ceph-\$name-\$pid.asok
log file = $LOG/ceph-\$name.log
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon allow pool delete = true
mon data avail warn = 1
osd memory target = 939524096
[client]
ms async op threads = 1
[mon]
mon data = $CEPH/mon
keyring = $CEPH/mon.keyring
[mgr]
mgr data = $CEPH/mgr
[osd]
osd data = $CEPH/osd
osd objectstore = bluestore
bluestore block size = 21474836480
EOT
}

ceph_cinder_backend() { # ZONE TYPE: two backends for a zone, because a backend of Ceph has one pool
    local name=backend-$1
    [ "$2" = standard ] || name+=-$2
    cat <<EOT
[$name]
volume_driver = bed_cinder.rbdvol.BedRBDDriver
volume_backend_name = $2
backend_availability_zone = $1
bed_faults_dir = $STATE/faults
rbd_pool = $1-$2
rbd_ceph_conf = $ETC/ceph/ceph.conf
rbd_user = admin
rbd_secret_uuid = 11111111-2222-4333-8444-555555555555
EOT
    echo "max_over_subscription_ratio = 100" # cloudparity has an empty volume of 1001 GiB
    ! ceph_option flatten || echo "rbd_flatten_volume_from_snapshot = true"
}

# An unknown word would otherwise mean a cloud without it.
check_ceph_options() {
    local word
    [ -z "$BED_CEPH" ] || [ "$BED_BACKEND" = ceph ] || die "BED_CEPH needs BED_BACKEND=ceph, and that is $BED_BACKEND"
    for word in $BED_CEPH; do
        case $word in flatten | clone-v2) ;; *) die "BED_CEPH has the word $word; it may have flatten and clone-v2" ;; esac
    done
}

ceph_option() { [[ " $BED_CEPH " == *" $1 "* ]]; } # whether BED_CEPH has this word

admin_ceph() { timeout 120 ceph --conf "$ETC/ceph/ceph.conf" "$@" >> "$LOG/ceph.log" 2>&1; }

start_ceph() {
    [ "$BED_BACKEND" = ceph ] || return 0
    mkdir -p "$CEPH"/{mon,mgr,osd} "$ETC/ceph"
    [ -s "$CEPH/fsid" ] || cat /proc/sys/kernel/random/uuid > "$CEPH/fsid"
    ceph_conf > "$ETC/ceph/ceph.conf"
    # os-brick, which attaches volumes for cinder-backup, knows /etc/ceph alone, and so does Nova when an encrypted volume in use grows.
    # The clouds of a release share the root directory, so each has its own /etc/ceph in its mount namespace.
    ln -sfn "$CEPH/client.admin.keyring" "$ETC/ceph/ceph.client.admin.keyring"
    mkdir -p /etc/ceph
    mountpoint -q /etc/ceph || mount --bind "$ETC/ceph" /etc/ceph
    [ -e "$CEPH/mon/keyring" ] || make_ceph_monitor
    start ceph-mon ceph-mon -f -i a --conf "$ETC/ceph/ceph.conf"
    wait_for 60 ceph-mon admin_ceph status
    if [ ! -s "$CEPH/mgr.a.keyring" ]; then
        admin_ceph auth get-or-create mgr.a mon 'allow profile mgr' osd 'allow *' -o "$CEPH/mgr.a.keyring"
    fi
    start ceph-mgr ceph-mgr -f -i a --conf "$ETC/ceph/ceph.conf"
    [ -s "$CEPH/osd.0.keyring" ] || make_ceph_osd
    start ceph-osd ceph-osd -f -i 0 --conf "$ETC/ceph/ceph.conf"
    [ -e "$CEPH/pools-made" ] || make_ceph_pools
    # librbd makes clones of the format 2 only if every client must know it.
    ! ceph_option clone-v2 || admin_ceph osd set-require-min-compat-client mimic || die "no clones of the format 2, see $LOG/ceph.log"
}

make_ceph_monitor() {
    local admin=$CEPH/client.admin.keyring
    say "Ceph: new cluster"
    {
        ceph-authtool --create-keyring "$CEPH/mon.keyring" --gen-key -n mon. --cap mon 'allow *'
        ceph-authtool --create-keyring "$admin" --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
        ceph-authtool "$CEPH/mon.keyring" --import-keyring "$admin"
        monmaptool --create --clobber --addv a "[v1:$BED_ADDRESS:$CEPH_PORT]" --fsid "$(cat "$CEPH/fsid")" "$CEPH/monmap"
        ceph-mon --mkfs -i a --conf "$ETC/ceph/ceph.conf" --monmap "$CEPH/monmap" --keyring "$CEPH/mon.keyring"
    } >> "$LOG/ceph.log" 2>&1 || die "no monitor of Ceph, see $LOG/ceph.log"
}

make_ceph_osd() {
    local uuid key
    uuid=$(cat /proc/sys/kernel/random/uuid)
    key=$(ceph-authtool --gen-print-key)
    echo "{\"cephx_secret\": \"$key\"}" | admin_ceph osd new "$uuid" -i - || die "no OSD of Ceph, see $LOG/ceph.log"
    ceph-authtool --create-keyring "$CEPH/osd.0.keyring" --name osd.0 --add-key "$key" >> "$LOG/ceph.log" 2>&1
    ceph-osd -i 0 --conf "$ETC/ceph/ceph.conf" --mkfs --osd-uuid "$uuid" >> "$LOG/ceph.log" 2>&1 ||
        die "no OSD of Ceph, see $LOG/ceph.log"
}

make_ceph_pools() {
    local pool
    for pool in $(ceph_pools) backups; do
        { admin_ceph osd pool create "$pool" 8 8 && timeout 120 rbd --conf "$ETC/ceph/ceph.conf" pool init "$pool"; } ||
            die "no pool $pool of Ceph, see $LOG/ceph.log"
    done
    touch "$CEPH/pools-made"
}
