//go:build cluster

package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// placedNodes are where a placement allows the pods of the controller. The second one also has a taint.
var placedNodes = []string{"node-az1-2", "node-az2"}

// platform plays what OpenShift's own operators add: certificates of the service CA.
type platform struct {
	*cluster
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
	pem string
}

// playPlatform gives the nodes the labels and the taint of the row, and the cluster what OpenShift has before a bundle comes.
func (c *cluster) playPlatform(t *testing.T, s setting) *platform {
	t.Helper()
	restore := func(args ...string) {
		t.Cleanup(func() {
			if _, _, err := c.try(context.Background(), "", "kubectl", args...); err != nil {
				t.Error(err)
			}
		})
	}
	label := func(key, value string) {
		for _, node := range placedNodes {
			c.kubectl(t, "label", "node", node, key+"="+value)
			restore("label", "node", node, key+"-")
		}
	}
	if s.on("placement") {
		label(placedLabel, "true")
		c.kubectl(t, "taint", "node", placedNodes[1], placedLabel+"=:NoSchedule")
		restore("taint", "node", placedNodes[1], placedLabel+"-")
	}
	if !s.openShift() {
		return nil
	}
	p := &platform{cluster: c}
	p.standIn(t)
	return p
}

// serveCertificates makes what OpenShift's service CA makes. A Service with its annotation gets a Secret with a certificate. The namespace gets a
// ConfigMap with the CA.
func (p *platform) serveCertificates(t *testing.T, b *pairBundle) {
	t.Helper()
	if p.ca == nil {
		p.makeCA(t)
	}
	const columns = `{range .items[*]}{.metadata.name} {.metadata.annotations.service\.beta\.openshift\.io/serving-cert-secret-name}{"\n"}{end}`
	for line := range strings.Lines(p.kubectl(t, "get", "services", "--namespace="+b.controller, "-o", "jsonpath="+columns)) {
		service, secret, _ := strings.Cut(strings.TrimSpace(line), " ")
		if secret == "" {
			continue
		}
		certificate, key := p.sign(t, &x509.Certificate{DNSNames: []string{fmt.Sprintf("%s.%s.svc", service, b.controller)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		files := map[string]string{"tls.crt": certificate, "tls.key": key}
		for name, content := range files {
			testfile.Write(t, filepath.Join(p.work, name), content, 0o600)
		}
		p.kubectl(t, "create", "secret", "tls", secret, "--namespace="+b.controller, "--cert=tls.crt", "--key=tls.key")
	}
	p.kubectl(t, "create", "configmap", "openshift-service-ca.crt", "--namespace="+b.controller, "--from-literal=service-ca.crt="+p.pem)
}

func (p *platform) makeCA(t *testing.T) {
	t.Helper()
	key := testenv.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "service CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := testenv.Value(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	p.ca, p.key, p.pem = template, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// sign gives a certificate of the CA and its key, in PEM.
func (p *platform) sign(t *testing.T, template *x509.Certificate) (certificate, key string) {
	t.Helper()
	own := testenv.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), p.ca.NotBefore, p.ca.NotAfter
	template.Subject, template.KeyUsage = pkix.Name{CommonName: template.DNSNames[0]}, x509.KeyUsageDigitalSignature
	der := testenv.Value(x509.CreateCertificate(rand.Reader, template, p.ca, &own.PublicKey, p.key))(t)
	text := testenv.Value(x509.MarshalECPrivateKey(own))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}))
}
