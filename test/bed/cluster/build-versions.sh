#!/usr/bin/env bash
# Builds programs of other Kubernetes versions into DIRECTORY/VERSION/, each with the Go of its time, from the Go module proxy. A program that is
# there stays: `go build` of a version takes 5 to 15 minutes of processor time.
#
#   PROGRAMS     which, separated by spaces; default kube-apiserver
set -euo pipefail
directory=${1:?usage: build-versions.sh DIRECTORY [VERSION...]}
shift
read -ra programs <<<"${PROGRAMS:-kube-apiserver}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/bed/cluster/lib/version-flags.sh
source "$here/lib/version-flags.sh"
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false" GOWORK=off
if [ $# = 0 ]; then
	mapfile -t versions < <(sed 's/#.*//; /^ *$/d' "$here/versions.txt")
	set -- "${versions[@]}"
fi

# build VERSION: a module whose only requirement is Kubernetes gets the versions of that release. The replacements of its go.mod name directories
# of its repository, which the proxy does not serve: the same code is published as modules v0.MINOR.PATCH.
build() {
	local version=$1 program source scratch missing=()
	for program in "${programs[@]}"; do
		[ -x "$directory/$version/$program" ] || missing+=("k8s.io/kubernetes/cmd/$program")
	done
	[ ${#missing[@]} != 0 ] || return 0
	source=$(cd "${TMPDIR:-/tmp}" && go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	scratch=$(mktemp -d)
	{
		printf 'module apiserver\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$(sed -n 's/^go //p' "$source/go.mod")" "$version"
		sed -n "s|^\t\(k8s.io/[a-z-]*\) => ./staging.*|\t\1 => \1 v0.${version#v1.}|p" "$source/go.mod"
		printf ')\n'
	} >"$scratch/go.mod"
	printf 'package tools\n\nimport _ "k8s.io/kubernetes/pkg/apis/core"\n' >"$scratch/tools.go"
	mkdir -p "$directory/$version"
	(
		cd "$scratch"
		GOTOOLCHAIN=go$(cat "$source/.go-version")
		export GOTOOLCHAIN
		# providerless: Kubernetes before 1.31 without the clouds that it had within. The checksum database lacks their module.
		go build -p "${BUILD_PARALLEL:-1}" -tags providerless -trimpath -ldflags "$(version_flags "$version")" -o "$scratch/bin/" "${missing[@]}"
		mv "$scratch"/bin/* "$directory/$version/"
	)
	rm -rf "$scratch"
}

failed=0
for version; do
	start=$SECONDS
	# Not `if build`: the shell would ignore failures within the function.
	set +e
	(
		set -e
		build "$version"
	)
	status=$?
	set -e
	if [ $status = 0 ]; then
		echo "$version: built in $((SECONDS - start)) s"
	else
		echo "$version: does not build ($((SECONDS - start)) s)"
		failed=1
	fi
done
exit $failed
