#!/usr/bin/env bash
# Writes a version into chart and changelog, as the first steps of RELEASE.md say. `make update` writes what follows from them, manifests/ too.
#   tools/release/set-version.sh v0.2.0 2026-01-31
set -euo pipefail
[ $# = 2 ] || { echo "use: $0 VERSION DAY" >&2; exit 64; }
version=$1
day=$2
pattern='^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$'
[[ $version =~ $pattern ]] || { echo "$0: version $version: want vMAJOR.MINOR.PATCH, for example v0.2.0" >&2; exit 64; }
chart=charts/cinder-csi
old=$(sed -n 's/^appVersion: //p' "$chart/Chart.yaml")
[ -n "$old" ] || { echo "$0: $chart/Chart.yaml has no appVersion" >&2; exit 1; }
was=${old//./\\.} # as a pattern
sed -i -e "s/^version: .*/version: ${version#v}/" -e "s/^appVersion: .*/appVersion: $version/" \
	-e "s|\(cinder-csi-driver\):$was\$|\1:$version|" "$chart/Chart.yaml"
# The chart refuses values of another version, by its schema and without it.
sed -i "s/^\(chartVersion:\) .*/\1 ${version#v}/" "$chart/values.yaml"
sed -i "s/\(\"chartVersion\": {\"const\": \)\"[^\"]*\"/\1\"${version#v}\"/" "$chart/values.schema.json"
# The images of the project are those whose tag is its version.
sed -i "s/\(repository: cinder-csi\/cinder-csi-[a-z]*, tag:\) $was,/\1 $version,/" "$chart/values.yaml"
# What helm-docs writes from the values.
sed -i -e "s/\(\"repository\":\"cinder-csi\/cinder-csi-[a-z]*\",\"tag\":\)\"$was\"/\1\"$version\"/" -e "s/^\(| chartVersion | string | \`\)\"[^\"]*\"/\1\"${version#v}\"/" \
	-e "s/\bVersion ${was#v}\b/Version ${version#v}/" "$chart/README.md"
if grep --quiet "^## \[${version#v}\]" CHANGELOG.md; then
	sed -i "s/^## \[${version#v}\].*/## [${version#v}] - $day/" CHANGELOG.md
else
	sed -i "s/^## \[Unreleased\]\$/## [Unreleased]\n\n## [${version#v}] - $day/" CHANGELOG.md
fi
