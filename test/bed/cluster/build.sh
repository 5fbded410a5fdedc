#!/usr/bin/env bash
# Builds the programs of the cluster into the directory given: Kubernetes, etcd, the CSI sidecars and our own small programs.
# What is built already is left alone (go build compares).
set -euo pipefail
bin=${1:?usage: build.sh DIRECTORY}
cd "$(dirname "${BASH_SOURCE[0]}")"
# Without the version of the checkout a program stays the same from commit to commit.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false"

# shellcheck source=test/bed/cluster/lib/version-flags.sh
source lib/version-flags.sh
flags=$(version_flags "$(cd programs && go list -m -f '{{.Version}}' k8s.io/kubernetes)")

mkdir -p "$bin"
(cd programs && go vet ./...)
(cd programs && go build -trimpath -ldflags "$flags" -o "$bin/" tool ./...)
(cd provisioner && go build -trimpath -ldflags "-s -w" -o "$bin/" tool)
ln -sf server "$bin/etcd"
