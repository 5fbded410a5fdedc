# shellcheck shell=bash
# etcd, the API server, the controller manager and the scheduler, as processes of this machine.

ETCD=http://127.0.0.1:12379 ETCD_PEER=http://127.0.0.1:12380

kubectl() { "$HERE/../../../bin/tools/kubectl" --kubeconfig "$BED/admin.kubeconfig" "$@"; }

start_etcd() {
	start etcd "$BIN/etcd" --data-dir "$BED/etcd" --unsafe-no-fsync --log-level warn --name cluster-bed \
		--listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" \
		--listen-peer-urls "$ETCD_PEER" --initial-advertise-peer-urls "$ETCD_PEER" --initial-cluster "cluster-bed=$ETCD_PEER"
}

# Every request is in the audit log: test-cluster reads there what was refused.
audit_policy() {
	echo '{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}'
}

start_apiserver() {
	ip address replace "$API/32" dev lo
	audit_policy >"$BED/audit-policy.json"
	start kube-apiserver "$(kubernetes kube-apiserver)" --etcd-servers="$ETCD" \
		--bind-address="$API" --advertise-address="$API" --secure-port=443 --service-cluster-ip-range="$SERVICES" --endpoint-reconciler-type=none \
		--tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
		--kubelet-client-certificate="$PKI/admin.crt" --kubelet-client-key="$PKI/admin.key" --kubelet-certificate-authority="$PKI/ca.crt" \
		--requestheader-client-ca-file="$PKI/ca.crt" --requestheader-allowed-names=front-proxy --requestheader-username-headers=X-Remote-User \
		--requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
		--proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" \
		--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$PKI/service-accounts.key" \
		--service-account-signing-key-file="$PKI/service-accounts.key" \
		--kubelet-preferred-address-types=InternalIP --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
		--audit-policy-file="$BED/audit-policy.json" --audit-log-path="$LOG/audit.log" --audit-log-maxsize=10000
}

start_control_plane() {
	local config
	start_etcd
	start_apiserver
	wait_for 300 kube-apiserver kubectl get --raw=/readyz
	config=$BED/controller-manager.kubeconfig
	start kube-controller-manager "$(kubernetes kube-controller-manager)" --kubeconfig="$config" --authentication-kubeconfig="$config" \
		--authorization-kubeconfig="$config" --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials \
		--service-account-private-key-file="$PKI/service-accounts.key" --root-ca-file="$PKI/ca.crt" \
		--cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key"
	config=$BED/scheduler.kubeconfig
	start kube-scheduler "$(kubernetes kube-scheduler)" --kubeconfig="$config" --authentication-kubeconfig="$config" \
		--authorization-kubeconfig="$config" --bind-address=127.0.0.1 --leader-elect=false
	wait_for 180 kube-controller-manager kubectl get serviceaccount default
}

# With the snapshot CRDs: what a cluster has before a bundle with snapshots comes.
start_snapshot_controller() {
	local client server
	client=$(module github.com/kubernetes-csi/external-snapshotter/client/v8)/config/crd
	server=$(module github.com/kubernetes-csi/external-snapshotter/v8)/deploy/kubernetes/snapshot-controller
	kubectl apply -f "$client/snapshot.storage.k8s.io_volumesnapshotclasses.yaml" -f "$client/snapshot.storage.k8s.io_volumesnapshotcontents.yaml" \
		-f "$client/snapshot.storage.k8s.io_volumesnapshots.yaml" -f "$server/rbac-snapshot-controller.yaml" \
		-f "$server/setup-snapshot-controller.yaml" >/dev/null
}

module() { (cd "$HERE/programs" && go list -m -f '{{.Dir}}' "$1"); }
