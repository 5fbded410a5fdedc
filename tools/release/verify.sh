#!/usr/bin/env bash
# Checks a release as a user does: checksums, signatures, provenance and SBOM. docs/how-to/use-a-release.md has the commands one by one.
#   tools/release/verify.sh DOWNLOADS
# Who signed: COSIGN_PUBLIC_KEY (a file), or IDENTITY, the address of the workflow at the tag. COSIGN_PLAIN_HTTP=1 as for sign.sh.
set -euo pipefail
# shellcheck source=tools/release/cosign.sh
. "$(dirname "${BASH_SOURCE[0]}")/cosign.sh"
[ $# = 1 ] || { echo "use: $0 DOWNLOADS" >&2; exit 64; }
downloads=$1

if [ -n "${COSIGN_PUBLIC_KEY:-}" ]; then
	who=(--key "$COSIGN_PUBLIC_KEY" --insecure-ignore-tlog)
else
	who=(--certificate-identity "${IDENTITY:?name the workflow that signed, or COSIGN_PUBLIC_KEY}" --certificate-oidc-issuer "${ISSUER:-https://token.actions.githubusercontent.com}")
fi
registry=()
[ -z "${COSIGN_PLAIN_HTTP:-}" ] || registry=(--allow-http-registry --allow-insecure-registry)

# Signature first: unsigned checksums prove nothing.
cosign verify-blob "${who[@]}" --bundle "$downloads/SHA256SUMS.sigstore.json" "$downloads/SHA256SUMS"
cosign verify-blob-attestation "${who[@]}" --type slsaprovenance1 --bundle "$downloads/provenance.sigstore.json" "$downloads/SHA256SUMS"
(cd "$downloads" && sha256sum --check --quiet SHA256SUMS)
echo "$downloads: signature, provenance and checksums are right"
for kind in image chart; do
	for ref in $(refs "$kind" index "$downloads/artefacts.json"); do
		cosign verify "${who[@]}" "${registry[@]}" "$ref" >/dev/null
		cosign verify-attestation "${who[@]}" "${registry[@]}" --type slsaprovenance1 "$ref" >/dev/null
		echo "$ref: signature and provenance are right"
	done
done
for platform in linux-amd64 linux-arm64; do
	for ref in $(refs image "$platform" "$downloads/artefacts.json"); do
		cosign verify "${who[@]}" "${registry[@]}" "$ref" >/dev/null
		cosign verify-attestation "${who[@]}" "${registry[@]}" --type spdxjson "$ref" >/dev/null
		echo "$ref: signature and SBOM are right ($platform)"
	done
done
