#!/bin/bash
# Stop the cloud that up.sh started; its data stays. --wipe deletes that too. The root directory stays.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=lib/cloud.sh
. "$HERE/lib/cloud.sh"

main() {
    choose_cloud
    [ "$CLOUD" != zed ] || exec "$OPENSTACK_SCRIPTS/down.sh" "$@"
    require_root
    if [ ! -d "$ROOT/usr" ]; then
        echo "no bed in $OPENSTACK_BED"
        return
    fi
    enter /opt/openstack-scripts/down.sh "$@"
}

main "$@"
