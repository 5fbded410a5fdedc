#!/usr/bin/env bash
# The last stage of a rehearsal: what a user does with a cluster, from the files of `make release-rehearsal REHEARSAL=DIR` and its registry alone.
# Installs release N on the cluster bed, upgrades to N+1 and goes back, while a pod writes to a volume. containerd pulls the driver by digest.
#
# The registry has the address 127.0.0.1 in every reference of the release. So each node gets it there, over the same directory and read-only;
# containerd asks a registry of this machine without TLS. The images of the sidecars are the bed's, because no registry can be reached.
#
#   REHEARSAL   the kept directory
set -euo pipefail
here=$PWD
work=${REHEARSAL:?name the directory that make release-rehearsal kept}
user=$work/cluster
bed=${CLUSTER_BED:-${TMPDIR:-/tmp}/cluster-bed}
programs=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cluster-bed}/bin
openstack=${OPENSTACK_BED:-${TMPDIR:-/tmp}/openstack-bed}
mapfile -t versions < <(cd "$work" && printf '%s\n' v*/ | tr -d / | sort -V)
[ "${#versions[@]}" = 2 ] || { echo "$work has ${#versions[@]} releases; make release-rehearsal REHEARSAL=$work makes two" >&2; exit 64; }
old=${versions[0]} new=${versions[1]}
address=$(sed 's|/.*||' "$work/$old/user/driver")
export KUBECONFIG=$bed/admin.kubeconfig PATH=$here/bin/tools:$PATH
processes=() nodes=() times=

finish() {
	local process
	for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
	for process in "${processes[@]}"; do wait "$process" 2>/dev/null || true; done
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

on() { "$here/test/bed/cluster/exec-node.sh" "$@"; }

registries() {
	local node
	mapfile -t nodes < <(kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}')
	for node in "${nodes[@]}"; do
		on "$node" env REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY="$work/registry" REGISTRY_STORAGE_MAINTENANCE_READONLY='{"enabled":true}' \
			REGISTRY_HTTP_ADDR="$address" OTEL_TRACES_EXPORTER=none \
			"$here/bin/release-tools/registry" serve "$here/tools/release/registry.yaml" >"$work/registry-$node.log" 2>&1 &
		processes+=($!)
		for _ in $(seq 100); do
			! on "$node" curl --silent --fail "http://$address/v2/" >/dev/null || break
			sleep 0.2
		done
		on "$node" curl --silent --fail "http://$address/v2/" >/dev/null
		# Nothing of an earlier run may be there.
		on "$node" ctr --namespace k8s.io images ls --quiet | { grep --fixed-strings "$address/" || true; } |
			while read -r image; do on "$node" ctr --namespace k8s.io images rm "$image" </dev/null >/dev/null; done
	done
}

# The released programs alone, in an empty directory.
prepare() {
	local version
	rm -rf "$user"
	mkdir -p "$user"
	sed 's/^  lab-appcred:/  openstack:/' "$openstack/clouds.yaml" >"$user/clouds.yaml"
	for version in "$old" "$new"; do
		mkdir "$user/$version"
		cp "$work/$version/user/cinder-csi-generator" "$work/$version/user/kubectl-cinder" "$user/$version/"
		cat >"$user/$version/distribution.yaml" <<-Y
			metadata: {name: rehearsal}
			spec:
			  kubernetesVersion: "1.37"
			  images:
			    registry: mirror.invalid
			    driver: {registry: "$address", repository: example/cinder-csi/cinder-csi-driver, digest: "$(sed 's/.*@//' "$work/$version/user/driver")"}
		Y
		(cd "$user/$version" && env -i PATH=/usr/bin:/bin HOME="$user" OS_CLIENT_CONFIG_FILE="$user/clouds.yaml" ./cinder-csi-generator generate \
			--os-cloud openstack --config distribution.yaml --target vanilla --format kustomize --output-dir bundle)
		kubectl kustomize "$user/$version/bundle" >"$user/$version/objects.yaml"
	done
}

sidecars() {
	local image program node
	sed -n 's/^ *image: *"\{0,1\}\(mirror[^"]*\)"\{0,1\}$/\1/p' "$user/$old/objects.yaml" "$user/$new/objects.yaml" | sort -u | while read -r image; do
		program=$(basename "${image%%:*}")
		[ "$program" != csi-node-driver-registrar ] || program=registrar
		"$programs/static-image" -output "$user/image.tar" -name "$image" "$programs/$program" </dev/null
		for node in "${nodes[@]}"; do on "$node" ctr --namespace k8s.io images import "$user/image.tar" </dev/null >/dev/null; done
	done
}

install() { # VERSION
	kubectl apply --server-side --kustomize "$user/$1/bundle" >"$user/apply-$1.log" || { cat "$user/apply-$1.log"; return 1; }
	kubectl --namespace cinder-csi rollout status deployment/cinder-csi-controller --timeout=300s
	kubectl --namespace cinder-csi-node rollout status daemonset/cinder-csi-node --timeout=300s
	running "$1"
}

# Every pod of the driver runs the image of the version, by its digest.
running() { # VERSION
	local want images
	want=$(cat "$work/$1/user/driver")
	for _ in $(seq 60); do
		images=$(kubectl get pods --all-namespaces --selector app.kubernetes.io/name=cinder-csi -o jsonpath='{range .items[*].spec.containers[?(@.name=="driver")]}{.image}{"\n"}{end}' | sort | uniq -c)
		[ "$(wc -l <<<"$images")" != 1 ] || [[ $images != *"$want" ]] || break
		sleep 1
	done
	echo "$images"
	[[ $images == *"$want" ]] && [ "$(wc -l <<<"$images")" = 1 ]
}

credentials() {
	kubectl create namespace cinder-csi
	kubectl create secret generic cinder-csi-credentials --namespace cinder-csi --from-file=clouds.yaml="$user/clouds.yaml"
}

# A claim and a pod that appends lines to it.
use() {
	kubectl create namespace rehearsal
	claim data
	kubectl apply --filename - <<-Y
		apiVersion: v1
		kind: Pod
		metadata: {name: writer, namespace: rehearsal}
		spec:
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  containers:
		  - {name: workload, image: "cluster-bed/workload:1", imagePullPolicy: Never, args: [append, /data/lines, writer], volumeMounts: [{name: data, mountPath: /data}]}
		  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
	Y
	kubectl --namespace rehearsal wait pod/writer --for=condition=Ready --timeout=300s
	uid=$(kubectl --namespace rehearsal get pod writer -o jsonpath='{.metadata.uid}')
}

claim() { # NAME
	kubectl apply --filename - <<-Y
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: rehearsal}
		spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
	Y
}

lines() { kubectl --namespace rehearsal exec writer -- /bin/workload print /data/lines | wc -l; }

# The pod is the same one, has not restarted, and has gone on writing. A new claim gets a volume, too.
works() { # NAME
	local before after
	[ "$(kubectl --namespace rehearsal get pod writer -o jsonpath='{.metadata.uid} {.status.containerStatuses[0].restartCount}')" = "$uid 0" ]
	before=$(lines)
	sleep 3
	after=$(lines)
	echo "the writer has $after lines, $((after - before)) more than three seconds ago"
	[ "$after" -gt "$before" ]
	claim "$1"
	kubectl --namespace rehearsal run "$1" --image=cluster-bed/workload:1 --image-pull-policy=Never --restart=Never --overrides='{"spec": {"terminationGracePeriodSeconds": 1,
		"containers": [{"name": "w", "image": "cluster-bed/workload:1", "imagePullPolicy": "Never", "args": ["wait"], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
		"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "'"$1"'"}}]}}'
	kubectl --namespace rehearsal wait "pod/$1" --for=condition=Ready --timeout=300s
}

# With the commands of a user; then no volume may be left.
remove() {
	local image node
	kubectl delete namespace rehearsal --timeout=300s
	for _ in $(seq 120); do
		[ -n "$(kubectl get persistentvolumes,volumeattachments.storage.k8s.io --output name)" ] || break
		sleep 1
	done
	[ -z "$(kubectl get persistentvolumes,volumeattachments.storage.k8s.io --output name)" ]
	kubectl delete --kustomize "$user/$old/bundle" --timeout=300s --ignore-not-found >/dev/null
	for node in "${nodes[@]}"; do
		on "$node" ctr --namespace k8s.io images ls --quiet | { grep --fixed-strings "$address/" || true; } |
			while read -r image; do on "$node" ctr --namespace k8s.io images rm "$image" </dev/null >/dev/null; done
	done
}

[ -z "$(kubectl get namespace cinder-csi --ignore-not-found --output name)" ] || { echo "the cluster has a namespace cinder-csi: remove that bundle first" >&2; exit 64; }
uid=
step "a registry at $address of each node" registries
step "$old and $new: bundles by the released programs" prepare
step "images of the sidecars" sidecars
step "credentials" credentials
step "$old: install" install "$old"
step "a pod writes to a volume" use
step "$new: upgrade while the volume is in use" install "$new"
step "$new: the pod writes on, and a new volume works" works upgraded
step "$old: go back while the volumes are in use" install "$old"
step "$old: the pod writes on, and a new volume works" works back
step "remove everything" remove
