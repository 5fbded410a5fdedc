package kube

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// In a hosted control plane the pod runs in the management cluster, and the claims are in the cluster of the kubeconfig. The service account
// of the pod must not be used: the claim of that name in the management cluster is another one.
func TestTheClaimsOfAKubeconfigAreThoseOfItsCluster(t *testing.T) {
	guest := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"metadata": {"annotations": {"asked-with": %q}}}`, r.Header.Get("Authorization"))
	}))
	defer guest.Close()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: guest.Certificate().Raw})
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		testfile.Write(t, path, content, 0o600)
		return path
	}
	write("ca.crt", ca)
	write("token", []byte("first\n"))
	path := write("kubeconfig", fmt.Appendf(nil, "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %s, certificate-authority: ca.crt}}]\nusers: [{name: u, user: {tokenFile: token}}]\n", guest.URL))
	env := map[string]string{"KUBERNETES_SERVICE_HOST": "management.invalid", "KUBERNETES_SERVICE_PORT": "443"}
	api, err := New(Options{Kubeconfig: path, Env: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second"} { // the file is read for each request
		write("token", []byte(token))
		got, err := api.Annotations(t.Context(), "shop", "data")
		if err != nil || got["asked-with"] != "Bearer "+token {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if _, err := New(Options{Kubeconfig: filepath.Join(dir, "none"), Env: func(name string) string { return env[name] }}); err == nil {
		t.Error("a missing kubeconfig is no error")
	}
}
