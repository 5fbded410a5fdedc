# shellcheck shell=bash
# Debian's packages. The file system tools are for what the disks are used for.

PACKAGES=(
    keystone placement-api glance-api
    nova-api nova-conductor nova-scheduler nova-compute
    cinder-api cinder-scheduler cinder-volume cinder-backup
    rabbitmq-server mariadb-server
    uwsgi-core uwsgi-plugin-python3 python3-pymysql python3-openstackclient
    iproute2 qemu-utils mount e2fsprogs xfsprogs
)

missing_packages() {
    local package
    for package in "${PACKAGES[@]}"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null |
            grep -qx installed || echo "$package"
    done
}

apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
        -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" \
        >> "$LOG/apt.log" 2>&1 9>&-
}

# Debian starts what it installs, unless this file says no.
forbid_autostart() {
    local policy=/usr/sbin/policy-rc.d
    [ ! -e "$policy" ] || return 0
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' > "$policy"
    chmod 755 "$policy"
}

install_packages() {
    local names missing
    # Not from <(missing_packages): a failure there would look like nothing missing.
    names=$(missing_packages)
    read -r -d '' -a missing <<< "$names" || true
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}"
    (
        forbid_autostart
        # For the lock of another update, unlike for that of dpkg, apt-get does not wait.
        { apt_get update || { sleep 30 && apt_get update; }; } && apt_get install --no-install-recommends "${missing[@]}"
    ) || die "apt-get failed, see $LOG/apt.log"
}
