#!/usr/bin/env bash
# Builds what `make test-cluster CASE=pairs` needs beside the programs of the cluster: kube-router, which enforces NetworkPolicies, and kube-rbac-proxy.
set -euo pipefail
bin=${1:?usage: build-pairs.sh DIRECTORY}
cd "$(dirname "${BASH_SOURCE[0]}")"
# The checksum database does not know kube-router's module path as the Go proxy serves it; go.sum has the sums.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false" GONOSUMDB='github.com/cloudnativelabs/*'

mkdir -p "$bin"
for module in router rbacproxy; do
	(cd "$module" && go build -trimpath -ldflags "-s -w" -o "$bin/" tool)
done
