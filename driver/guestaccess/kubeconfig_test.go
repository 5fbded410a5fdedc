package guestaccess

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// certificateOf is a test server's certificate as PEM.
func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// anyCA is base64 of some certificate.
var anyCA = sync.OnceValue(func() string {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return base64.StdEncoding.EncodeToString(certificateOf(s))
})

// admin is a kubeconfig of an administrator, as HyperShift writes it.
func admin(server, user string) string {
	return "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: admin\ncontexts: [{name: admin, context: {cluster: c, namespace: default, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: '" + server + "', certificate-authority-data: " + anyCA() + "}}]\nusers: [{name: u, user: {" + user + "}}]\n"
}

func TestAKubeconfigThatCannotBeUsedIsRefusedWithoutItsSecrets(t *testing.T) {
	const token = "token: hunter2"
	for _, c := range []struct{ text, want string }{
		{admin("https://guest:6443", token), ""},
		{strings.Replace(admin("https://guest:6443", token), "{server:", "{tls-server-name: kube-apiserver, server:", 1), ""},
		{"hunter2", "not a kubeconfig"},
		{"users: [hunter2", "not a kubeconfig"},
		{"{}", "no current context"},
		{strings.Replace(admin("https://guest:6443", token), "current-context: admin", "current-context: hunter2", 1), "no current context"},
		{admin("http://guest:6443", token), "not an https URL"},
		{admin("https://", token), "not an https URL"},
		{strings.Replace(admin("https://guest:6443", token), anyCA(), "aHVudGVyMg==", 1), "no certificate"},
		{strings.Replace(admin("https://guest:6443", token), "{server:", "{proxy-url: http://hunter2, server:", 1), "the cluster has the key proxy-url"},
		{strings.Replace(admin("https://guest:6443", token), "{server:", "{insecure-skip-tls-verify: true, server:", 1), "the cluster has the key insecure-skip-tls-verify"},
		{admin("https://guest:6443", "tokenFile: hunter2"), "the user has the key tokenFile"},
		{admin("https://guest:6443", "client-key-data: hunter2"), "neither client-certificate-data nor a token"},
		{admin("https://guest:6443", "client-certificate-data: hunter2, client-key-data: aHVudGVyMg=="), "not base64"},
		{admin("https://guest:6443", "client-certificate-data: aHVudGVyMg==, client-key-data: aHVudGVyMg=="), "do not belong together"},
	} {
		_, err := parseKubeconfig([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s\nwant error %q, got %v", c.text, c.want, err)
		}
	}
}

func TestTheKubeconfigOfTheSidecarsKeepsServerAndServerName(t *testing.T) {
	k, err := parseKubeconfig([]byte(strings.Replace(admin("https://kube-apiserver:6443/", "token: hunter2"), "{server:", "{tls-server-name: internal, server:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(k.forToken("/etc/hosted-kubernetes"))
	for _, want := range []string{"server: https://kube-apiserver:6443\n", "tls-server-name: internal", "certificate-authority: /etc/hosted-kubernetes/ca.crt", "tokenFile: /etc/hosted-kubernetes/token"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}
