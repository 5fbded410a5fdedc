#!/bin/bash
# Stop the bed that up.sh started; its data stays. --wipe deletes that too.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib/bed.sh
. "$HERE/lib/bed.sh"
# shellcheck source=lib/process.sh
. "$HERE/lib/process.sh"

# The services first: they write their last words to the database.
stop_gently() {
    local pid storage services=()
    storage=" $(pid_of mariadb rabbitmq epmd | paste -sd' ') "
    for pid in $(ours); do
        case $({ tr '\0' ' ' < "/proc/$pid/cmdline"; } 2> /dev/null || true) in
            *rabbit* | *beam.smp* | *erl_child_setup* | *inet_gethost*) continue ;;
        esac
        [[ $storage == *" $pid "* ]] || services+=("$pid")
    done
    signal TERM "${services[@]}"
    wait_gone 30 "${services[@]}" || signal KILL "${services[@]}"
    mapfile -t services < <(pid_of mariadb rabbitmq)
    signal TERM "${services[@]}"
    wait_gone 100 "${services[@]}" || true
}

kill_all() {
    local pids
    while mapfile -t pids < <(ours) && [ "${#pids[@]}" -gt 0 ]; do
        signal KILL "${pids[@]}"
        sleep 0.2
    done
    rm -f "$RUN"/*.pid "$RUN/settings"
}

# A freed loop device is somebody else's next: no link to it may stay.
release_disks() {
    local device file
    release_deleted_files
    rm -rf "$BED"/servers/*/{by-id,dev,sys}
    for file in "$STATE"/volumes/*/*/*; do
        [ -e "$file" ] || continue
        # By the file itself: a bed in a root directory of its own has another path for it.
        losetup -n -O NAME -j "$file" | while read -r device; do losetup -d "$device" || true; done
    done
}

# Cinder may have deleted the file of a disk that was still attached. Of a bed in a root directory of its own, the kernel shows only the end of the
# path, because the mount is gone. So the links of the servers say which devices are those of this bed.
release_deleted_files() {
    local link device
    for link in "$BED"/servers/*/dev/*; do
        device=$(readlink "$link") || continue
        case $(losetup -n -O BACK-FILE "$device" 2> /dev/null || true) in
            */"${BED##*/}"/state/volumes/*' (deleted)') losetup -d "$device" || true ;;
        esac
    done
}

# Another bed may listen there.
remove_address() {
    local address
    address=$(sed -n 's/^BED_ADDRESS=//p' "$STATE/settings" 2> /dev/null) || return 0
    case $address in '' | 127.*) return ;; esac
    [ -n "$(ss -Hltn src "$address")" ] || ip address del "$address/32" dev lo 2> /dev/null || true
}

main() {
    local wipe=
    case ${1:-} in
        '') ;;
        --wipe) wipe=yes ;;
        *) die "unknown argument $1; usage: down.sh [--wipe]" ;;
    esac
    require_root
    if [ ! -d "$RUN" ]; then
        echo "no bed in $BED"
        return
    fi
    lock_bed
    [ -n "$wipe" ] || stop_gently
    kill_all
    release_disks
    remove_address
    [ -z "$wipe" ] || rm -rf "$BED" "$BED.lock"
    echo "stopped${wipe:+ and wiped} $BED"
}

main "$@"
