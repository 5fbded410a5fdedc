package kubeconfig

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/kubeconfig/kubeconfigtest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	admin         = kubeconfigtest.Admin
	anyCA         = kubeconfigtest.AnyCA
	certificateOf = kubeconfigtest.CertificateOf
)

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
		_, err := Parse([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s\nwant error %q, got %v", c.text, c.want, err)
		}
	}
}

// Gardener and others mount a kubeconfig that names a token file, and one for the certificate authority.
func TestAKubeconfigMayNameFilesOnlyInAFile(t *testing.T) {
	dir := t.TempDir()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	text := strings.Replace(admin(s.URL, "tokenFile: token"), "certificate-authority-data: "+anyCA(), "certificate-authority: ca.crt", 1)
	for name, content := range map[string]string{"kubeconfig": text, "ca.crt": string(certificateOf(s)), "token": "hunter2"} {
		testfile.Write(t, filepath.Join(dir, name), content, 0o600)
	}
	c, err := Load(filepath.Join(dir, "kubeconfig"))
	if err != nil || c.Server != s.URL || c.TokenFile != filepath.Join(dir, "token") || string(c.CA) != string(certificateOf(s)) {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "certificate-authority") {
		t.Errorf("Parse: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing file is no error")
	}
	exec := filepath.Join(dir, "exec")
	testfile.Write(t, exec, admin(s.URL, "exec: {command: hunter2}"), 0o600)
	if _, err := Load(exec); err == nil || !strings.Contains(err.Error(), "not a kubeconfig") {
		t.Errorf("exec: %v", err)
	}
}
