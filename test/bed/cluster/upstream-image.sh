#!/usr/bin/env bash
# Builds upstream's cinder-csi-plugin from a checkout and writes its image: upstream-image.sh CHECKOUT ARCHIVE. The tools beside the plugin are those
# of this project's image. The image has the name that upstream's manifests give it.
set -euo pipefail
checkout=${1:?usage: upstream-image.sh CHECKOUT ARCHIVE} archive=${2:?usage: upstream-image.sh CHECKOUT ARCHIVE}
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
name=$(sed -n 's/^ *image: *\(.*cinder-csi-plugin:.*\)/\1/p' "$checkout/manifests/cinder-csi-plugin/cinder-csi-nodeplugin.yaml")
version=${name##*:}
mkdir -p "$(dirname "$archive")" bin
program=$(dirname "$archive")/cinder-csi-plugin
(cd "$checkout" && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go build -trimpath \
	-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/cloud-provider-openstack/pkg/version.Version=$version" -o "$program" ./cmd/cinder-csi-plugin)
go run ./tools/image/cmd/oci-image -driver "$program" -name "$name" -output "$archive"
