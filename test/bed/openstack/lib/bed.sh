# shellcheck shell=bash
# Where the bed is, how it was set up, and how its scripts speak.
# Sourced by up.sh and down.sh, before everything else in lib/.

# The distribution's own Python and tools, whatever the caller's PATH has.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8

BED=${OPENSTACK_BED:-${TMPDIR:-/tmp}/openstack-bed}
case $BED in /*) ;; *) BED=$PWD/$BED ;; esac
# shellcheck disable=SC2034 # used by the scripts that source this
ETC=$BED/etc LOG=$BED/log RUN=$BED/run STATE=$BED/state

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

require_root() { [ "$(id -u)" = 0 ] || die "run as root"; }

# One script at a time works on a bed. Daemons must not inherit the lock.
lock_bed() {
    exec 9> "$BED.lock"
    flock -w 600 9 || die "another script holds $BED.lock"
}

setting() { # NAME DEFAULT: the environment, else the first start or that of the running bed, else DEFAULT
    local remembered=
    remembered=$(sed -n "s/^$1=//p" "$STATE/settings" "$RUN/settings" 2> /dev/null) || true
    printf -v "$1" %s "${!1:-${remembered:-$2}}"
}

# Data made with one set of these is useless with another.
remember_settings() {
    local name now
    now=$(for name in CINDER_AZS NOVA_AZS BED_ATTACH PORT_OFFSET BED_ADDRESS; do
        echo "$name=${!name}"
    done
        # A bed that is older than these settings has their defaults.
        [ "$BED_BACKEND" = file ] || echo "BED_BACKEND=$BED_BACKEND"
        [ -z "$BED_CEPH" ] || echo "BED_CEPH=$BED_CEPH"
        [ "$BED_BACKUPS" = "$STATE/backups" ] || echo "BED_BACKUPS=$BED_BACKUPS")
    if [ -s "$STATE/settings" ] && [ "$now" != "$(cat "$STATE/settings")" ]; then
        die "$BED was first started with other settings; run down.sh --wipe first
first start: $(paste -sd' ' "$STATE/settings")
now:         $(paste -sd' ' <<< "$now")"
    fi
    echo "$now" > "$STATE/settings"
}

# A running bed keeps the settings of its start, also when up.sh starts again what has stopped. It can get more servers, and TLS or none.
remember_start() {
    local name now changed
    now=$(for name in NOVA_CROSS_AZ_ATTACH CINDER_AZ_FALLBACK NOVA_MAX_VOLUMES BED_API_WORKERS BED_DEBUG \
        BED_PAGE_SIZE BED_GATEWAY_TIMEOUT BED_GATEWAY_RATE BED_FILTERS; do
        echo "$name=${!name}"
    done)
    if [ -s "$RUN/settings" ]; then
        changed=$(grep -vxF -f "$RUN/settings" <<< "$now" | paste -sd' ') || true
        [ -z "$changed" ] || die "$BED runs with other settings than $changed; run down.sh first"
    fi
    {
        echo "$now"
        echo "BED_NODES_PER_AZ=$BED_NODES_PER_AZ"
        echo "BED_TLS=$BED_TLS"
    } > "$RUN/settings"
}

# Random, so that no secret is equal to any name and a leak can be searched for.
secret() { # NAME: prints the bed's secret of that name, made at first use
    local file=$STATE/passwords
    if ! grep -qs "^$1=" "$file"; then
        (umask 077 && echo "$1=$(head -c 15 /dev/urandom | base64 | tr '+/' 'xy')" >> "$file")
    fi
    sed -n "s/^$1=//p" "$file"
}

# The users of seed.py, its application credential, and two services' own.
make_secrets() {
    local name
    for name in admin demo-admin demo demo-reader other csi \
        nova placement glance cinder neutron barbican metadata rabbitmq; do
        secret "$name" > /dev/null
    done
}
