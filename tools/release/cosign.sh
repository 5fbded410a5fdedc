# shellcheck shell=bash
# Sourced by sign.sh and verify.sh. cosign comes from tools.mod, so the workflow, the rehearsal and a developer run the same one. COSIGN names
# a built one.
COSIGN=${COSIGN:-go tool -modfile=tools/release/tools.mod cosign}

# cosign is a word list: "go tool … cosign" or a path.
cosign() {
	# shellcheck disable=SC2086
	$COSIGN "$@"
}

# refs KIND PLATFORM FILE: the addresses with digests that artefacts.json has, one a line. PLATFORM "index" is the image index or the chart.
refs() {
	jq -r --arg kind "$1" --arg platform "$2" '.[] | select(.kind == $kind and (if .platform == "" then "index" else .platform end) == $platform) | .ref' "$3"
}
