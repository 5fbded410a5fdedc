package doctor

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

// refuse is a network that reaches nothing.
type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func (b *bed) answerAll(status int) {
	b.sim.SetFault(openstacksim.Fault{Path: "/**", Status: status})
}

// skew sets the clock of the cloud.
func (b *bed) skew(d time.Duration) {
	next := b.through
	b.through = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err == nil {
			resp.Header.Set("Date", b.now.Add(d).UTC().Format(http.TimeFormat))
		}
		return resp, err
	})
}

// plainCatalog puts http into the catalog of a Keystone that is asked by https.
func (b *bed) plainCatalog() {
	next := b.through
	b.address = "https://openstack.simulated"
	b.through = roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(body, []byte("https://"), []byte("http://"))))
		return resp, err
	})
}

// secure serves the cloud over TLS, with a certificate for 127.0.0.1 from a CA of its own.
func (b *bed) secure(life time.Duration) {
	b.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "cloud.example"}, NotBefore: b.now.Add(-24 * time.Hour), NotAfter: b.now.Add(life),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(b.sim.Handler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.StartTLS()
	b.t.Cleanup(server.Close)
	b.caFile = filepath.Join(b.t.TempDir(), "ca.pem")
	if err := os.WriteFile(b.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.address, b.through = server.URL, nil
}

func documentedRules(t *testing.T) []openstacksim.AccessRule {
	t.Helper()
	var rules []accessRule
	if err := json.Unmarshal(AccessRules, &rules); err != nil {
		t.Fatal(err)
	}
	var all []openstacksim.AccessRule
	for _, r := range rules {
		all = append(all, openstacksim.AccessRule(r))
	}
	return all
}
