# shellcheck shell=bash
# The cluster's certificates and the kubeconfig of each component.

make_ca() {
	[ -s "$PKI/ca.crt" ] && return
	openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/ca.key"
	openssl req -x509 -new -key "$PKI/ca.key" -subj /CN=cluster-bed -days 365 -sha256 -out "$PKI/ca.crt"
	openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/service-accounts.key"
}

make_certificate() { # NAME SUBJECT [ALTERNATIVE_NAMES]
	[ -s "$PKI/$1.crt" ] && return
	openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$1.key"
	openssl req -new -key "$PKI/$1.key" -subj "$2" |
		openssl x509 -req -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -CAcreateserial -days 365 -sha256 -out "$PKI/$1.crt" -extfile <(
			echo "extendedKeyUsage=clientAuth,serverAuth"
			[ -z "${3:-}" ] || echo "subjectAltName=$3"
		) 2>>"$LOG/openssl.log"
}

make_kubeconfig() { # NAME, of a certificate too
	cat >"$BED/$1.kubeconfig" <<-Y
		apiVersion: v1
		kind: Config
		current-context: cluster-bed
		contexts: [{name: cluster-bed, context: {cluster: cluster-bed, user: $1}}]
		clusters: [{name: cluster-bed, cluster: {server: "https://$API", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
		users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$PKI/$1.crt"), client-key-data: $(base64 -w0 "$PKI/$1.key")}}]
	Y
}

make_pki() {
	make_ca
	make_certificate apiserver /CN=kube-apiserver "IP:$API,DNS:kubernetes.default.svc"
	make_certificate front-proxy /CN=front-proxy
	make_certificate admin /O=system:masters/CN=admin
	make_certificate controller-manager /CN=system:kube-controller-manager
	make_certificate scheduler /CN=system:kube-scheduler
	local name
	for name in admin controller-manager scheduler; do make_kubeconfig "$name"; done
}
