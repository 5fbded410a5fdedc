#!/bin/bash
# Start a small real OpenStack (Keystone, Placement, Nova, Glance, Cinder, from
# Debian 12's packages) on an address of this machine, or what of it does not run. See README.md.
#
#   OPENSTACK_BED    directory; default ${TMPDIR:-/tmp}/openstack-bed
#
# Fixed by the first start of a directory, remembered by it:
#   CINDER_AZS       "az1 az2": Cinder's zones, one backend each
#   NOVA_AZS         "az1 az2": Nova's zones, one nova-compute each
#   BED_ATTACH       loop: attached volumes are loop devices; none: bookkeeping only; libvirt: servers are guests of QEMU
#   PORT_OFFSET      0: added to every port, for a second bed beside the first
#   BED_ADDRESS      198.18.0.1: where the APIs listen; up.sh puts it on lo
#   BED_BACKEND      file: one file for each volume; ceph: images of Ceph
#   BED_CEPH         with ceph: flatten, clone-v2, or both; see ../clouds/README.md
#   BED_BACKUPS      where cinder-backup keeps backups; two beds may share that of one of them
#
# Read at each start of a stopped bed:
#   NOVA_CROSS_AZ_ATTACH (true)   CINDER_AZ_FALLBACK (false)
#   NOVA_MAX_VOLUMES (-1)         BED_NODES_PER_AZ (1; a running bed gets more)
#   BED_TLS (0)      1: Keystone, Nova and Cinder behind TLS with a private CA; may change on a running bed
#   BED_API_WORKERS (2)           BED_DEBUG (false)
#   BED_PAGE_SIZE    1000: the longest list in an answer of Cinder and Nova
#   BED_GATEWAY_TIMEOUT, BED_GATEWAY_RATE   10m, 0: with BED_TLS=1, the timeouts of haproxy, and how many requests a second it passes on from one address
#   BED_FILTERS      Cinder's resource_filters.json: which filters its lists have
#   BED_CACHE        ~/.cache/openstack-bed: keeps a dump of the empty databases
#   BED_PREPARE      1: only what a machine keeps, the packages and that dump
#   BED_PATIENCE     1: how many times longer than usual a service may take to answer, on a busy machine
#   BED_CLOUD        zed: the name of the release; ../clouds/up.sh sets it
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib/bed.sh
. "$HERE/lib/bed.sh"
# shellcheck source=lib/process.sh
. "$HERE/lib/process.sh"
# shellcheck source=lib/packages.sh
. "$HERE/lib/packages.sh"
# shellcheck source=lib/config.sh
. "$HERE/lib/config.sh"
# shellcheck source=lib/ceph.sh
. "$HERE/lib/ceph.sh"
# shellcheck source=lib/libvirt.sh
. "$HERE/lib/libvirt.sh"
# shellcheck source=lib/barbican.sh
. "$HERE/lib/barbican.sh"
# shellcheck source=lib/database.sh
. "$HERE/lib/database.sh"
# shellcheck source=lib/services.sh
. "$HERE/lib/services.sh"
# shellcheck source=lib/tls.sh
. "$HERE/lib/tls.sh"

read_settings() {
    setting CINDER_AZS "az1 az2"
    setting NOVA_AZS "az1 az2"
    setting BED_ATTACH loop
    setting PORT_OFFSET 0
    setting BED_ADDRESS 198.18.0.1
    setting BED_BACKEND file
    setting BED_CEPH ""
    setting BED_BACKUPS "$STATE/backups"
    setting NOVA_CROSS_AZ_ATTACH true
    setting CINDER_AZ_FALLBACK false
    setting NOVA_MAX_VOLUMES -1
    setting BED_NODES_PER_AZ 1
    setting BED_TLS 0
    setting BED_API_WORKERS 2
    setting BED_DEBUG false
    setting BED_PAGE_SIZE 1000
    setting BED_GATEWAY_TIMEOUT 10m
    setting BED_GATEWAY_RATE 0
    setting BED_FILTERS /etc/cinder/resource_filters.json
    setting BED_CLOUD zed
    setting BED_CACHE "${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/openstack-bed"
}

add_packages() {
    [ "$BED_BACKEND" != ceph ] || PACKAGES+=("${CEPH_PACKAGES[@]}")
    [ "$BED_ATTACH" != libvirt ] || PACKAGES+=("${LIBVIRT_PACKAGES[@]}" "${BARBICAN_PACKAGES[@]}")
    [ "$BED_TLS" != 1 ] || PACKAGES+=(haproxy openssl)
}

# RabbitMQ's distribution port is 20000 above its own.
assign_ports() {
    local o=$PORT_OFFSET
    KEYSTONE_PORT=$((5000 + o)) NOVA_PORT=$((8774 + o)) METADATA_PORT=$((8775 + o))
    CINDER_PORT=$((8776 + o)) PLACEMENT_PORT=$((8778 + o)) METADATA_PROXY_PORT=$((8780 + o))
    GLANCE_PORT=$((9292 + o)) NEUTRON_PORT=$((9696 + o)) CEPH_PORT=$((6789 + o))
    BARBICAN_PORT=$((9311 + o))
    TLS_OFFSET=10000 # of the TLS ports from those of the services
    RABBIT_PORT=$((5672 + o)) EPMD_PORT=$((14369 + o))
    [ "$RABBIT_PORT" -lt 45000 ] || die "PORT_OFFSET $o is too large"
}

# Two clouds of one release have the same ports, unless the caller gives one of them others. Then each would answer requests of the other.
check_ports() {
    local port
    any_alive && return
    [ -n "$(ip -o address show dev lo to "$BED_ADDRESS")" ] || return 0 # nobody can listen there
    for port in "$KEYSTONE_PORT" "$NOVA_PORT" "$CINDER_PORT"; do
        ! port_open "$BED_ADDRESS" "$port" ||
            die "another program listens on $BED_ADDRESS, port $port: stop that cloud first, or set PORT_OFFSET and BED_ADDRESS"
    done
}

make_directories() {
    local zone
    mkdir -p "$BED/servers" "$ETC" "$LOG" "$RUN" \
        "$STATE"/{nova,cinder,glance/images,rabbit,volumes,faults} "$BED_BACKUPS"
    chmod 700 "$ETC" "$LOG" "$RUN" "$STATE"
    for zone in $CINDER_AZS; do mkdir -p "$STATE/volumes/$zone"; done
    for zone in $NOVA_AZS; do mkdir -p "$STATE/nova-$zone/instances"; done
}

# Proxies, virtual environments and clouds of the caller are not the bed's.
clean_environment() {
    local name
    for name in $(compgen -e); do
        case $name in
            OS_* | *_proxy | *_PROXY | PYTHONHOME | PYTHONPATH | VIRTUAL_ENV | \
                REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE) unset "$name" ;;
        esac
    done
    export PYTHONUNBUFFERED=1
    # On this machine the packages have their byte code. A root directory of ../clouds gets it at the first start.
    if [ "$BED_CLOUD" = zed ]; then export PYTHONDONTWRITEBYTECODE=1; else unset PYTHONDONTWRITEBYTECODE; fi
}

# Pods of a cluster on this machine reach no 127.0.0.1 but their own.
add_address() {
    case $BED_ADDRESS in 127.*) return ;; esac
    ip address replace "$BED_ADDRESS/32" dev lo
}

seed() { # STAGE
    python3 "$HERE/seed.py" "$1" "$BED" && return
    report_stopped
    die "could not make the cloud's $1"
}

main() {
    require_root
    mkdir -p "$BED"
    lock_bed
    any_alive || rm -f "$RUN/settings"
    read_settings
    check_ceph_options
    add_packages
    clean_environment
    assign_ports
    check_ports
    make_directories
    remember_settings
    remember_start
    install_packages
    make_secrets
    write_configs
    add_address
    start_mariadb
    start_rabbitmq
    start_ceph
    make_databases
    [ "${BED_PREPARE:-0}" = 0 ] || { say "prepared"; return; }
    make_keystone_keys
    bootstrap_keystone
    say "starting the services"
    wait_for 180 rabbitmq port_open 127.0.0.1 "$RABBIT_PORT"
    start_keystone
    wait_for 180 keystone port_open "$BED_ADDRESS" "$KEYSTONE_PORT"
    start_apis
    if [ "$BED_TLS" = 1 ]; then start_tls_proxy; else stop_tls_proxy; fi
    seed identity
    start_libvirt
    start_workers
    wait_for_apis
    say "filling the cloud"
    seed content
    say "ready: $BED/clouds.yaml"
}

main
