#!/usr/bin/env bash
# One claim's life in a real cluster on a real OpenStack, then CLAIMS (10) at once, with the time of each step: our bundle's objects and RBAC,
# the real sidecars under our service account, the driver as a host process that stands for the bed's server node-az1.
#
#   CLUSTER=DIR OPENSTACK_BED=DIR test/cluster/life.sh
#
# CLUSTER is the directory of a running cluster with one kubelet: bin/{kubectl,csi-provisioner,csi-attacher,csi-resizer,csi-snapshotter,registrar},
# admin.kubeconfig, kubelet/ (the kubelet's root), snapshot.storage.*.yaml (CRDs), and an image lab/toolbox:1 on the node.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
CLUSTER=${CLUSTER:?the directory of a running cluster}
OPENSTACK_BED=${OPENSTACK_BED:-${TMPDIR:-/tmp}/openstack-bed}
NODE=${NODE:-$(hostname)}
CLAIMS=${CLAIMS:-10}
DRIVER=cinder.csi.openstack.org NS=cinder-csi POD_NS=life-$(date +%s)
WORK=$(mktemp -d)
SERVER=$OPENSTACK_BED/servers/by-name/node-az1
PIDS=()
# csi-provisioner would prefer this variable over its own flag.
unset KUBECONFIG

k() { "$CLUSTER/bin/kubectl" --kubeconfig "$CLUSTER/admin.kubeconfig" "$@"; }
now() { date +%s.%N; }
mark() { T=$(now); }
lap() { awk -v what="$1" -v a="$T" -v b="$(now)" 'BEGIN {printf "%-58s %6.1f s\n", what, b - a}'; }
wait_for() { # SECONDS WHAT COMMAND...
	local end=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || { echo "timed out: $what (logs in $WORK)" >&2; exit 1; }
		sleep 0.1
	done
}
beside() { # NAME COMMAND...
	local name=$1
	shift
	"$@" >"$WORK/$name.log" 2>&1 &
	PIDS+=($!)
}
stop() {
	local pid
	k delete namespace "$POD_NS" --wait=false >/dev/null 2>&1 || true
	for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -f "$CLUSTER/kubelet/plugins_registry/$DRIVER-reg.sock" # by which kubelet knows that the driver is gone
}
trap stop EXIT

# ------------------------------------------------------------- our objects
OS_CLIENT_CONFIG_FILE=$OPENSTACK_BED/clouds.yaml bin/cinder-csi-generator generate --os-cloud lab-demo \
	--target vanilla --format kustomize --output-dir "$WORK/bundle" >"$WORK/generate.log" 2>&1
k apply -f "$CLUSTER"/snapshot.storage.k8s.io_volumesnapshotclasses.yaml -f "$CLUSTER"/snapshot.storage.k8s.io_volumesnapshots.yaml \
	-f "$CLUSTER"/snapshot.storage.k8s.io_volumesnapshotcontents.yaml >/dev/null
k wait --for=condition=Established crd/volumesnapshotclasses.snapshot.storage.k8s.io --timeout=30s >/dev/null
k kustomize "$WORK/bundle" >"$WORK/objects.yaml"
k apply -f "$WORK/bundle/namespace.yaml" >/dev/null
k apply --server-side --force-conflicts --dry-run=server -f "$WORK/objects.yaml" >"$WORK/dry-run.log"
echo "the API server accepts all $(grep -c . "$WORK/dry-run.log") objects of the bundle"
# The workloads stay out: this cluster pulls no images, the same programs run as processes below.
k create --dry-run=client -o json -f "$WORK/objects.yaml" |
	jq 'select(.kind != "Deployment" and .kind != "DaemonSet")' | k apply --server-side --force-conflicts -f - >/dev/null
class=$(k get storageclass -o json | jq -r '[.items[] | select(.metadata.annotations["storageclass.kubernetes.io/is-default-class"] == "true")][0].metadata.name')
echo "default class: $class"

# ------------------------------------------------------------- the driver, the sidecars
beside driver bin/cinder-csi-driver --endpoint="unix://$WORK/csi.sock" --cloud-config="$OPENSTACK_BED/cloud.conf" --cluster=life --strict --v=2 \
	--config-drive-dir="$SERVER/config-drive" --sys-root="$SERVER/sys" --dev-root="$SERVER/dev"
wait_for 20 "the driver's socket" test -S "$WORK/csi.sock"
token=$(k create token cinder-csi-controller -n "$NS" --duration=2h)
(umask 077 && k config view --raw --flatten -o json | jq --arg t "$token" '.users = [{name: "controller", user: {token: $t}}] | .contexts[].context.user = "controller"' >"$WORK/controller.kubeconfig")
# The sidecars get the arguments of the bundle, but for where things are here.
k create --dry-run=client -o json -f "$WORK/objects.yaml" >"$WORK/objects.json"
sidecar() { # NAME
	local args
	args=$(jq -rs --arg name "$1" '
		(map(select(.kind == "ConfigMap" and (.metadata.name | startswith("cinder-csi-controller-settings")))) | .[0].data) as $settings
		| .[] | select(.kind == "Deployment") | .spec.template.spec.containers[] | select(.name == $name) | .args[]
		| select(test("^--(csi-address|kubeconfig|http-endpoint)=") | not)
		| gsub("\\$\\((?<key>[A-Z_]+)\\)"; $settings[.key])' "$WORK/objects.json")
	[ -n "$args" ] || { echo "the bundle has no arguments for the $1" >&2; exit 1; }
	# shellcheck disable=SC2086 # one argument a line, none with a blank
	beside "$1" "$CLUSTER/bin/csi-$1" --kubeconfig="$WORK/controller.kubeconfig" --csi-address="$WORK/csi.sock" $args
}
for name in provisioner attacher resizer snapshotter; do sidecar "$name"; done
leads() { [ "$(k -n "$NS" get leases -o json | jq '[.items[] | select(.spec.holderIdentity != "")] | length')" -ge "$1" ]; }
wait_for 60 "the sidecars' leases" leads 4
registered() { k get csinode "$NODE" -o json | jq -e --arg d "$DRIVER" '.spec.drivers[]? | select(.name == $d)'; }
unregistered() { k get csinode "$NODE" -o json | jq -e --arg d "$DRIVER" '[.spec.drivers[]? | select(.name == $d)] | length == 0'; }
wait_for 60 "the end of an earlier run's registration" unregistered
beside registrar "$CLUSTER/bin/registrar" --csi-address "$WORK/csi.sock" --kubelet-registration-path "$WORK/csi.sock" --registry "$CLUSTER/kubelet/plugins_registry"
wait_for 60 "the driver in the CSINode" registered
k get csinode "$NODE" -o json | jq -c '.spec.drivers[] | {name, nodeID, topologyKeys, allocatable}'

# ------------------------------------------------------------- the claim's life
k create namespace "$POD_NS" >/dev/null
wait_for 30 "the namespace's service account" k -n "$POD_NS" get serviceaccount default
claim() { # NAME
	k apply -f - >/dev/null <<-Y
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: $POD_NS}
		spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
	Y
}
pod() { # NAME CLAIM ARGS...
	local name=$1 claim=$2 args
	shift 2
	args=$(printf '"%s",' "$@")
	k apply -f - >/dev/null <<-Y
		apiVersion: v1
		kind: Pod
		metadata: {name: $name, namespace: $POD_NS}
		spec:
		  hostNetwork: true
		  restartPolicy: Never
		  terminationGracePeriodSeconds: 1
		  automountServiceAccountToken: false
		  containers: [{name: c, image: "lab/toolbox:1", imagePullPolicy: Never, args: [${args%,}], volumeMounts: [{name: d, mountPath: /data}]}]
		  volumes: [{name: d, persistentVolumeClaim: {claimName: $claim}}]
	Y
}
phase() { [ "$(k -n "$POD_NS" get "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
text="hello-$RANDOM-$RANDOM"
mark
claim data
pod writer data write /data/f "$text" read /data/f sleep
wait_for 120 "the first pod" phase pod/writer Running
lap "claim and pod: provision, attach, stage, publish, Running"
wait_for 20 "the first pod's words" grep -q "$text" <(k -n "$POD_NS" logs writer)
pv=$(k -n "$POD_NS" get pvc data -o 'jsonpath={.spec.volumeName}')
mark
k -n "$POD_NS" delete pod writer --wait >/dev/null
detached() { k get volumeattachments -o json | jq -e --arg p "$pv" '[.items[] | select(.spec.source.persistentVolumeName == $p)] | length == 0'; }
wait_for 120 "the detachment" detached
lap "pod deleted: unpublished, unstaged, detached"
mark
pod reader data read /data/f sleep
wait_for 120 "the second pod" phase pod/reader Running
lap "second pod Running"
wait_for 20 "the first pod's words in the second" grep -q "$text" <(k -n "$POD_NS" logs reader)
echo "the second pod read what the first one wrote"
mark
k -n "$POD_NS" delete pod reader --wait >/dev/null
k -n "$POD_NS" delete pvc data --wait=false >/dev/null
gone() { ! k get pv -o name | grep -qx "persistentvolume/$pv"; }
wait_for 120 "the volume's end" gone
lap "pod and claim deleted: detached, volume gone"

# ------------------------------------------------------------- many claims at once
mark
for i in $(seq "$CLAIMS"); do
	claim "many-$i"
	pod "many-$i" "many-$i" write /data/f "$text-$i" read /data/f sleep
done
running() { [ "$(k -n "$POD_NS" get pods -o json | jq '[.items[] | select(.status.phase == "Running")] | length')" = "$CLAIMS" ]; }
wait_for 300 "$CLAIMS pods" running
lap "$CLAIMS claims and pods at once: all Running"
mark
k -n "$POD_NS" delete pods,pvc --all --wait=false >/dev/null
none() { [ "$(k get pv -o json | jq --arg d "$DRIVER" '[.items[] | select(.spec.csi.driver == $d)] | length')" = 0 ]; }
wait_for 300 "the end of $CLAIMS volumes" none
lap "$CLAIMS pods and claims deleted: volumes gone"
for name in provisioner attacher resizer; do
	! grep -iE 'forbidden|cannot (get|list|watch|create|update|patch|delete) resource' "$WORK/$name.log" || { echo "$name lacks a right" >&2; exit 1; }
done
echo "no sidecar met a missing right; logs in $WORK"
