#!/usr/bin/env bash
# Builds the controllers of Argo CD and Flux and the programs that they need where the suite keeps them. A program that is there already stays.
# Each module is built in a directory of its own, because `go install` takes none with lines for `replace`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${GITOPS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/gitops-bed}
mkdir -p "$cache/bin" "$cache/src" "$cache/deb"
# Readonly would refuse the line that this script adds to a go.mod.
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false"

# module MODULE@VERSION DIRECTORY: the source of a module, writable, as a directory of its own.
module() {
	local from
	rm -rf "$2"
	from=$(cd / && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	cp -r "$from" "$2"
	chmod -R u+w "$2"
}

build() { # PROGRAM PACKAGE, in the current directory
	nice -n 15 go build -trimpath -ldflags "-s -w" -o "$cache/bin/$1" "$2"
}

# Flux. The module of a controller lacks that of its types, which its go.mod expects beside it.
for name in kustomize source; do
	[ -e "$cache/bin/$name-controller" ] && continue
	dir=$cache/src/$name-controller
	module "github.com/fluxcd/$name-controller@v1.9.6" "$dir"
	module "github.com/fluxcd/$name-controller/api@v1.9.6" "$dir/api"
	cd "$dir"
	# The proxy does not have v0.18.3, which source-controller asks for.
	if [ "$name" = source ]; then go mod edit -replace github.com/fluxcd/pkg/artifact=github.com/fluxcd/pkg/artifact@v0.18.0; fi
	build "$name-controller" .
done

# Argo CD: three of its controllers as one program, without its server and its command line. The proxy does not have the tag of gitops-engine.
if [ ! -e "$cache/bin/argocd-bed" ]; then
	dir=$cache/src/argo-cd
	module github.com/argoproj/argo-cd/v3@v3.5.7 "$dir"
	module github.com/argoproj/argo-cd/gitops-engine@v0.0.0-20260914071520-c9c369efcc5b "$dir/gitops-engine"
	mkdir "$dir/cmd/bed"
	cp "$here/testdata/argocd-bed.go.txt" "$dir/cmd/bed/main.go"
	cd "$dir"
	build argocd-bed ./cmd/bed
fi
for name in application-controller applicationset-controller repo-server; do ln -sf argocd-bed "$cache/bin/argocd-$name"; done

# The repo-server runs this script of its own, and kustomize. A module from the proxy has no executable files.
chmod u+x "$cache/src/argo-cd/hack/git-verify-wrapper.sh"
ln -sf "$cache/src/argo-cd/hack/git-verify-wrapper.sh" "$cache/bin/"
[ -e "$cache/bin/kustomize" ] || (cd / && GOBIN=$cache/bin nice -n 15 go install -trimpath -ldflags "-s -w" sigs.k8s.io/kustomize/kustomize/v5@v5.8.1)

# Argo CD keeps its cache in Redis. The package is unpacked and not installed, so that no service starts.
if [ ! -e "$cache/redis/usr/bin/redis-server" ]; then
	(cd "$cache/deb" && apt-get download -qq redis-server redis-tools libjemalloc2 liblua5.1-0 liblzf1 lua-cjson lua-bitop)
	for package in "$cache"/deb/*.deb; do dpkg -x "$package" "$cache/redis"; done
fi
