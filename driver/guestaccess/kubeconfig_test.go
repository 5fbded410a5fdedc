package guestaccess

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/kubeconfig"
	"github.com/cinder-csi/cinder-csi/internal/kubeconfig/kubeconfigtest"
)

var (
	admin         = kubeconfigtest.Admin
	certificateOf = kubeconfigtest.CertificateOf
)

func TestTheKubeconfigOfTheSidecarsKeepsServerAndServerName(t *testing.T) {
	k, err := kubeconfig.Parse([]byte(strings.Replace(admin("https://kube-apiserver:6443/", "token: hunter2"), "{server:", "{tls-server-name: internal, server:", 1)))
	if err != nil {
		t.Fatal(err)
	}
	text := string(forToken(k, "/etc/hosted-kubernetes"))
	for _, want := range []string{"server: https://kube-apiserver:6443\n", "tls-server-name: internal", "certificate-authority: /etc/hosted-kubernetes/ca.crt", "tokenFile: /etc/hosted-kubernetes/token"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in:\n%s", want, text)
		}
	}
}
