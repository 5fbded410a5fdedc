#!/bin/bash
# Start an OpenStack of a release that this machine's Debian does not have, with the scripts of ../openstack in a root directory
# of its own. See README.md.
#
#   CLOUD        victoria, zed, epoxy or sid; zed is ../openstack/up.sh on this machine itself
#   BACKEND      file: one file for each volume; ceph: images of Ceph, with CLOUD=epoxy
#   COMPUTE      loop: attached volumes are loop devices; libvirt: servers are guests of QEMU, with CLOUD=epoxy BACKEND=ceph
#   CLOUD_BEDS   ${TMPDIR:-/tmp}/cloud-bed: a directory for each cloud
#   CLOUD_CACHE  ~/.cache/cloud-bed: a root directory for each suite of Debian
#   MIRROR       http://deb.debian.org/debian
#
# The variables of ../openstack/up.sh count, too, without OPENSTACK_BED. Each release has its own PORT_OFFSET and BED_ADDRESS as defaults.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib/cloud.sh
. "$HERE/lib/cloud.sh"
# shellcheck source=../openstack/lib/packages.sh
. "$OPENSTACK_SCRIPTS/lib/packages.sh"
# shellcheck source=lib/root.sh
. "$HERE/lib/root.sh"

main() {
    choose_cloud
    refuse_what_does_not_run
    [ "$CLOUD" != zed ] || exec "$OPENSTACK_SCRIPTS/up.sh"
    require_root
    make_root
    enter /opt/openstack-scripts/up.sh 8>&-
}

main
