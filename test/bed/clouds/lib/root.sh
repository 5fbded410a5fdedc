# shellcheck shell=bash
# The root directory of a suite, made once.

MIRROR=${MIRROR:-http://deb.debian.org/debian}

make_root() {
    mkdir -p "$CLOUD_CACHE"
    exec 8> "$ROOT.lock"
    flock -w 3600 8 || die "another script holds $ROOT.lock"
    [ ! -d "$ROOT/usr" ] || return 0
    need_mmdebstrap
    say "making $ROOT from Debian's suite $SUITE, for minutes"
    rm -rf "$ROOT.new"
    # A mirror that stands still has an expired list of sid; the signature counts.
    local old=()
    [ "$SUITE" != sid ] || old=(--aptopt='Acquire::Check-Valid-Until "false"')
    mmdebstrap "${old[@]}" --variant=apt --mode=root --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt=force-unsafe-io --essential-hook="$HERE/lib/skip-bytecode.sh" --include="$(IFS=, && echo "${PACKAGES[*]},procps")" \
        "$SUITE" "$ROOT.new" "$MIRROR" > "$ROOT.log" 2>&1 8>&- || die "mmdebstrap failed, see $ROOT.log"
    mv "$ROOT.new" "$ROOT"
}

need_mmdebstrap() {
    command -v mmdebstrap > /dev/null && return
    say "installing mmdebstrap"
    {
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 update &&
            DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=600 install --no-install-recommends mmdebstrap
    } > "$ROOT.log" 2>&1 8>&- || die "apt-get failed, see $ROOT.log"
}
