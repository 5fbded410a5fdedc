#!/usr/bin/env bash
# Runs a command in a cgroup of each controller: in-cgroups.sh CGROUP COMMAND...
set -euo pipefail
for procs in /sys/fs/cgroup/*/"$1"/cgroup.procs; do echo $$ >"$procs"; done
exec "${@:2}"
