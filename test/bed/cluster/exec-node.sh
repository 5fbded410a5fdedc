#!/usr/bin/env bash
# Runs a command on a node of the running cluster: exec-node.sh NODE COMMAND...
set -euo pipefail
# shellcheck source=lib/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib/cluster.sh"
in_node "$@"
