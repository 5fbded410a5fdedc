#!/usr/bin/env bash
# Builds the programs of the cluster into the directory given: Kubernetes, etcd, the CSI sidecars and our own small programs.
# What is built already is left alone (go build compares).
set -euo pipefail
bin=${1:?usage: build.sh DIRECTORY}
cd "$(dirname "${BASH_SOURCE[0]}")"
# Without the version of the checkout a program stays the same from commit to commit.
export CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false"

# Without these the API server calls itself v0.0.0, which charts and sidecars take for an old Kubernetes.
version=$(cd programs && go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags+=" -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
	flags+=" -X $package.gitCommit=$(printf '%040d' 0) -X $package.buildDate=1970-01-01T00:00:00Z"
done

mkdir -p "$bin"
(cd programs && go build -trimpath -ldflags "$flags" -o "$bin/" tool ./...)
(cd provisioner && go build -trimpath -ldflags "-s -w" -o "$bin/" tool)
ln -sf server "$bin/etcd"
