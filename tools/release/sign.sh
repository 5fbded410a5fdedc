#!/usr/bin/env bash
# Signs what was pushed, and the checksums of the downloads.
#   tools/release/sign.sh DIST DOWNLOADS
# With COSIGN_KEY (a file or env://NAME), by that key and without a transparency log: for a rehearsal. Without it, by the identity of the
# pipeline (OIDC), with an entry in the public transparency log. COSIGN_PLAIN_HTTP=1 is for a registry of a rehearsal.
set -euo pipefail
# shellcheck source=tools/release/cosign.sh
. "$(dirname "${BASH_SOURCE[0]}")/cosign.sh"
[ $# = 2 ] || { echo "use: $0 DIST DOWNLOADS" >&2; exit 64; }
dist=$1
downloads=$2

how=(--yes)
if [ -n "${COSIGN_KEY:-}" ]; then
	services=$(mktemp)
	trap 'rm -f "$services"' EXIT
	cosign signing-config create --out "$services" # empty: neither log nor time stamps
	how+=(--key "$COSIGN_KEY" --signing-config "$services")
fi
registry=()
[ -z "${COSIGN_PLAIN_HTTP:-}" ] || registry=(--allow-http-registry --allow-insecure-registry)

for kind in image chart; do
	for ref in $(refs "$kind" index "$downloads/artefacts.json"); do
		cosign sign "${how[@]}" "${registry[@]}" --recursive "$ref"
		cosign attest "${how[@]}" "${registry[@]}" --type slsaprovenance1 --predicate "$downloads.predicate.json" "$ref"
	done
done
# The SBOM belongs to the image of an architecture, not to the index of both.
for platform in linux-amd64 linux-arm64; do
	for ref in $(refs image "$platform" "$downloads/artefacts.json"); do
		program=${ref%@*}
		program=${program##*/}
		cosign attest "${how[@]}" "${registry[@]}" --type spdxjson --predicate "$dist/sbom/$program-image-$platform.spdx.json" "$ref"
	done
done
cosign sign-blob "${how[@]}" --bundle "$downloads/SHA256SUMS.sigstore.json" "$downloads/SHA256SUMS" >/dev/null
cosign attest-blob "${how[@]}" --type slsaprovenance1 --predicate "$downloads.predicate.json" --bundle "$downloads/provenance.sigstore.json" "$downloads/SHA256SUMS" >/dev/null
