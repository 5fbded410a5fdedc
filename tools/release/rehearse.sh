#!/usr/bin/env bash
# Makes a release and uses it, on this machine: the steps of .github/workflows/release.yaml against a real registry, signed with a key of the
# day, then what a user does with nothing but the published files. Twice: a version and its next patch. Prints the time of each step.
#
#   REHEARSAL        directory that is kept, for the next stage; default: a new one, removed at the end
#   REGISTRY_ADDRESS host:port of the registry; default 127.0.0.1:5055. Nodes must reach it for the stage on a cluster
#   DEBIAN_SOURCES   as for make release-dry-run
set -euo pipefail
here=$PWD
version=$(sed -n 's/^appVersion: //p' charts/cinder-csi/Chart.yaml)
next=${version%.*}.$((${version##*.} + 1))
address=${REGISTRY_ADDRESS:-127.0.0.1:5055}
registry=$address/example/cinder-csi
if [ -n "${REHEARSAL:-}" ]; then
	work=$REHEARSAL
	mkdir -p "$work"
else
	work=$(mktemp -d)
fi
export COSIGN=$here/bin/release-tools/cosign COSIGN_PLAIN_HTTP=1 COSIGN_PASSWORD=rehearsal
processes=()
times=

finish() {
	local process
	for process in "${processes[@]}"; do
		kill "$process" 2>/dev/null || true
		wait "$process" 2>/dev/null || true
	done
	# A registry or containerd that is kept would write below the directory.
	[ -n "${REHEARSAL:-}" ] || rm -rf "$work"
	printf '\n%s%-52s %5d s\n' "$times" total "$SECONDS"
}
trap finish EXIT

# step NAME COMMAND...: not in a condition, so set -e holds in functions.
step() {
	local begin=$SECONDS
	printf '\n=== %s\n' "$1"
	"${@:2}"
	times+=$(printf '%-52s %5d s' "$1" $((SECONDS - begin)))$'\n'
}

fails() {
	if "$@" >"$work/refused" 2>&1; then
		echo "this must fail: $*" >&2
		exit 1
	fi
	echo "refused: $(tail -n 1 "$work/refused")"
}

tools() {
	local module=$here/tools/release/tools.mod
	mkdir -p bin/release-tools
	CGO_ENABLED=0 go build -trimpath -modfile="$module" -o bin/release-tools/ github.com/sigstore/cosign/v3/cmd/cosign github.com/distribution/distribution/v3/cmd/registry
	make --no-print-directory tools
}

start_registry() {
	rm -rf "$work/registry" # of an earlier rehearsal: a published version never changes, and this one is built of another commit
	REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY=$work/registry REGISTRY_HTTP_ADDR=$address OTEL_TRACES_EXPORTER=none \
		bin/release-tools/registry serve tools/release/registry.yaml >"$work/registry.log" 2>&1 &
	processes+=($!)
	for _ in $(seq 50); do
		! curl --silent --fail "http://$address/v2/" >/dev/null || return 0
		sleep 0.2
	done
	cat "$work/registry.log" >&2
	return 1
}

make_key() {
	rm -f "$work/cosign.key" "$work/cosign.pub"
	(cd "$work" && "$COSIGN" generate-key-pair 2>/dev/null)
	export COSIGN_KEY=$work/cosign.key COSIGN_PUBLIC_KEY=$work/cosign.pub
}

# prepare VERSION: a clone whose files have the version and whose changelog has a day, as RELEASE.md says.
prepare() {
	local source=$work/$1/source
	rm -rf "${work:?}/$1"
	mkdir -p "$work/$1"
	git clone --quiet --no-hardlinks "$here" "$source"
	(
		cd "$source"
		tools/release/set-version.sh "$1" "$(date -u +%F)"
		git -c user.name=rehearsal -c user.email=rehearsal@example.com commit --quiet --all --message "release $1"
		git -c user.name=rehearsal -c user.email=rehearsal@example.com tag --annotate --message "$1" "$1"
	)
}

check_tag() {
	cd "$work/$1/source"
	go run ./tools/release/cmd/publish check -tag "$1"
	fails go run ./tools/release/cmd/publish check -tag v9.9.9
	cd "$here"
}

build() {
	# The packages and the emulator are downloaded once.
	mkdir -p bin/image "$work/$1/source/bin"
	ln -s "$here/bin/image" "$work/$1/source/bin/image"
	make --no-print-directory -C "$work/$1/source" release-dry-run VERSION="$1" ${DEBIAN_SOURCES:+DEBIAN_SOURCES="$DEBIAN_SOURCES"}
}

push() {
	cd "$work/$1/source"
	go run ./tools/release/cmd/publish push -tag "$1" -registry "$registry" -plain-http -output "$work/$1/downloads" \
		-home https://git.example.com/cinder-csi -downloads "https://git.example.com/cinder-csi/releases/download/$1"
	cd "$here"
}

sign() {
	cd "$work/$1/source"
	tools/release/sign.sh dist "$work/$1/downloads"
	# From here on, a user has the downloads and the registry alone.
	mkdir -p "$work/user"
	cp tools/release/cosign.sh tools/release/verify.sh "$work/user/"
	cd "$here"
	rm -rf "$work/$1/source"
}

verify() {
	"$work/user/verify.sh" "$work/$1/downloads"
	cp -r "$work/$1/downloads" "$work/changed"
	echo changed >>"$work/changed/cinder.yaml"
	fails "$work/user/verify.sh" "$work/changed"
	rm -r "$work/changed"
}

# The image of the driver, by digest, and the chart, by digest, into the user's directory.
pull() {
	local image chart
	image=$(jq -r '.[] | select(.name == "cinder-csi-driver" and .platform == "") | .ref' "$work/$1/downloads/artefacts.json")
	chart=$(jq -r '.[] | select(.kind == "chart") | .ref' "$work/$1/downloads/artefacts.json")
	rm -rf "$work/$1/user"
	mkdir -p "$work/$1/user"
	bin/tools/helm pull "oci://$chart" --plain-http --destination "$work/$1/user"
	"$COSIGN" save --allow-http-registry --allow-insecure-registry --dir "$work/$1/user/image" "$image"
	rm -r "$work/$1/user/image"
	echo "$image" >"$work/$1/user/driver"
}

# generate VERSION: bundles of both forms by the released program, in an empty directory with an empty environment.
generate() {
	local user=$work/$1/user digest arch
	arch=$(go env GOARCH)
	digest=$(sed 's/.*@//' "$user/driver")
	tar -x -z -C "$user" -f "$work/$1/downloads/cinder-csi-generator-$1-linux-$arch.tar.gz"
	tar -x -z -C "$user" -f "$work/$1/downloads/kubectl-cinder-$1-linux-$arch.tar.gz"
	printf 'metadata: {name: rehearsal}\nspec:\n  images:\n    driver: {registry: %s, repository: example/cinder-csi/cinder-csi-driver, digest: "%s"}\n' "$address" "$digest" >"$user/distribution.yaml"
	cd "$user"
	local alone=(env -i "PATH=/usr/bin:/bin" "HOME=$user")
	"${alone[@]}" ./cinder-csi-generator version
	"${alone[@]}" ./kubectl-cinder --version
	local form
	for form in kustomize helm; do
		"${alone[@]}" ./cinder-csi-generator generate --simulated --config distribution.yaml --target vanilla --format "$form" --output-dir "$form"
	done
	"${alone[@]}" "$here/bin/tools/kubectl" kustomize kustomize >kustomize.objects
	"${alone[@]}" "$here/bin/tools/helm" template cinder-csi ./cinder-csi*.tgz --namespace cinder-csi -f helm/values.yaml >helm.objects
	grep --quiet "image: $(cat driver)" kustomize.objects helm.objects
	echo "both bundles of $1 have the image $(cat driver)"
	cd "$here"
}

one() {
	step "$1: version in chart, manifests and changelog" prepare "$1"
	step "$1: the tag is the version; another is refused" check_tag "$1"
	step "$1: build everything, both architectures" build "$1"
	step "$1: push images and chart, lay out the downloads" push "$1"
	step "$1: sign, attest provenance and SBOMs" sign "$1"
	step "$1: user: signatures, provenance, SBOMs, checksums" verify "$1"
	step "$1: user: pull image and chart by digest" pull "$1"
	step "$1: user: generate with the released program, render" generate "$1"
}

[ -z "$(git status --porcelain)" ] || { echo "commit first: a release is made of a commit" >&2; exit 64; }
step "tools: cosign, registry, helm, kubectl" tools
step "start a registry at $address" start_registry
step "a key for the day" make_key
one "$version"
one "$next"
