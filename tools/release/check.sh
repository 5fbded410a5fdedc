#!/usr/bin/env bash
# Builds the release of the current commit twice and compares the results. The two builds differ in directory, time zone, language, umask
# and build cache. The second build starts with an empty cache, so that it compiles everything again.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
first=$work/first
second=$work/another/directory-with-a-longer-name

# Both before the first build: a commit that somebody makes meanwhile must not get into the second one.
umask 022
git clone --quiet --no-hardlinks . "$first"
umask 077
git clone --quiet --no-hardlinks . "$second"

# build DIRECTORY NAME=VALUE...: the release of a clone in this environment.
build() {
	env "${@:2}" make --no-print-directory -C "$1" release-dry-run ${VERSION:+VERSION="$VERSION"} DEBIAN_SOURCES="${DEBIAN_SOURCES:-}" \
		RELEASE_BUILDER="${RELEASE_BUILDER:-}" RELEASE_HOME="${RELEASE_HOME:-}"
}

umask 022
build "$first" TZ=Pacific/Kiritimati LC_ALL=C.UTF-8
umask 077
build "$second" TZ=America/St_Johns LC_ALL=C GOCACHE="$work/cache"

diff "$first/dist/SHA256SUMS" "$second/dist/SHA256SUMS"
(cd "$second/dist" && sha256sum --check --quiet SHA256SUMS)
echo "two builds are equal: $(wc -l <"$first/dist/SHA256SUMS") files, SHA256SUMS has the digest $(sha256sum <"$first/dist/SHA256SUMS" | cut -d ' ' -f 1)"
if [ -n "${KEEP:-}" ]; then
	rm -rf "$KEEP"
	cp -r "$first/dist" "$KEEP"
fi
