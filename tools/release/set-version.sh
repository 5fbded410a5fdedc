#!/usr/bin/env bash
# Writes a version into chart, manifests and changelog, as the first steps of RELEASE.md say. `make update` writes what follows from them.
#   tools/release/set-version.sh v0.2.0 2026-01-31
set -euo pipefail
[ $# = 2 ] || { echo "use: $0 VERSION DAY" >&2; exit 64; }
version=$1
day=$2
old=$(sed -n 's/^appVersion: //p' charts/cinder-csi/Chart.yaml)
sed -i -e "s/^version: .*/version: ${version#v}/" -e "s/^appVersion: .*/appVersion: $version/" \
	-e "s|\(cinder-csi-driver\):$old\$|\1:$version|" charts/cinder-csi/Chart.yaml
# The images of the project are those whose tag is its version.
sed -i "s/^\(  newTag:\) $old\$/\1 $version/" manifests/components/images/kustomization.yaml
if grep --quiet "^## \[${version#v}\]" CHANGELOG.md; then
	sed -i "s/^## \[${version#v}\].*/## [${version#v}] - $day/" CHANGELOG.md
else
	sed -i "s/^## \[Unreleased\]\$/## [Unreleased]\n\n## [${version#v}] - $day/" CHANGELOG.md
fi
