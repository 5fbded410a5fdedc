#!/usr/bin/env bash
# Builds Kubernetes' storage tests, ginkgo, agnhost, node-ssh and static-image where test/bed/cluster keeps its programs. What is built already is left alone (go build compares).
set -euo pipefail
bin=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cluster-bed}/bin
cd "$(dirname "${BASH_SOURCE[0]}")/e2e"
# As test/bed/cluster/build.sh, so that both use the same compiled packages.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false"
mkdir -p "$bin"
(cd ../../../bed/cluster/programs && nice -n 10 go build -trimpath -ldflags "-s -w" -o "$bin/" ./static-image)
nice -n 10 go build -trimpath -ldflags "-s -w" -o "$bin/" tool ./node-ssh
nice -n 10 go vet -trimpath ./...
nice -n 10 go test -c -trimpath -ldflags "-s -w" -o "$bin/external-storage.test" .
