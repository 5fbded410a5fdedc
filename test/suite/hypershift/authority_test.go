//go:build hypershift

package hypershift

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// authority is a certificate authority.
type authority struct {
	certificate, key []byte // PEM
	parent           *x509.Certificate
	signer           *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := testenv.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "authority " + rand.Text()}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der := testenv.Value(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	parent := testenv.Value(x509.ParseCertificate(der))(t)
	return &authority{certificate: encode("CERTIFICATE", der), key: encodeKey(t, key), parent: parent, signer: key}
}

// issue makes a certificate for a client and for a server at the addresses, and its key.
func (a *authority) issue(t *testing.T, name, organization string, addresses ...string) (certificate, key []byte) {
	t.Helper()
	signer := testenv.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if organization != "" {
		template.Subject.Organization = []string{organization}
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	der := testenv.Value(x509.CreateCertificate(rand.Reader, template, a.parent, signer.Public(), a.signer))(t)
	return encode("CERTIFICATE", der), encodeKey(t, signer)
}

func serial(t *testing.T) *big.Int {
	t.Helper()
	n := testenv.Value(rand.Int(rand.Reader, big.NewInt(1<<62)))(t)
	return n
}

func encodeKey(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der := testenv.Value(x509.MarshalECPrivateKey(key))(t)
	return encode("EC PRIVATE KEY", der)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
