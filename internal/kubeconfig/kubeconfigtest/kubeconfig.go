// Package kubeconfigtest makes kubeconfigs for the tests of the packages that read them.
package kubeconfigtest

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"sync"
)

// CertificateOf returns the certificate of a test server as PEM.
func CertificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// AnyCA returns the base64 of a valid certificate.
var AnyCA = sync.OnceValue(func() string {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return base64.StdEncoding.EncodeToString(CertificateOf(s))
})

// Admin returns a kubeconfig of an administrator, as HyperShift writes it. The user is the content of a YAML flow mapping.
func Admin(server, user string) string {
	return "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: admin\ncontexts: [{name: admin, context: {cluster: c, namespace: default, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: '" + server + "', certificate-authority-data: " + AnyCA() + "}}]\nusers: [{name: u, user: {" + user + "}}]\n"
}
