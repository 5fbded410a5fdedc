package cloud

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/cloudconf"
)

// openShiftCA is the path that OpenShift's installer and its Cloud Credential Operator write into every clouds.yaml of a cloud with
// a private CA. It exists in the pods of OpenShift's own operators only.
const openShiftCA = "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"

// certificate is the PEM of what a TLS server of this package's tests shows.
func certificate(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// secretOf is a directory with the Secret of a bundle, as kubelet mounts it.
func secretOf(t *testing.T, url, cacert string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	named := ""
	if cacert != "" {
		named = "cacert: " + cacert + ", "
	}
	files["clouds.yaml"] = "clouds: {openstack: {" + named + "auth: {auth_url: '" + url + "', user_id: u, password: s3cret, project_id: p}}}"
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func confWith(t *testing.T, dir, more string) *cloudconf.File {
	t.Helper()
	f, err := cloudconf.Parse(fmt.Appendf(nil, "[Global]\nuse-clouds = true\nclouds-file = %s/clouds.yaml\ncloud = openstack\n%s", dir, more))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func noEnv(string) string { return "" }

func TestACAPathOfAnotherMachineIsReplacedByACAThatIsHere(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(&keystone{catalog: catalog()})
	t.Cleanup(server.Close)
	ca := certificate(server)
	elsewhere := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(elsewhere, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cacert, conf string
		files        map[string]string
		note         string // empty: nothing to say
		failure      string // empty: the login succeeds
	}{
		"key cacert of the Secret":        {openShiftCA, "", map[string]string{"cacert": ca}, openShiftCA, ""},
		"ca-file of cloud.conf":           {openShiftCA, "ca-file = " + elsewhere + "\n", map[string]string{}, "ca-file of cloud.conf", ""},
		"ca-file comes before the key":    {openShiftCA, "ca-file = " + elsewhere + "\n", map[string]string{"cacert": "of another cloud"}, "ca-file of cloud.conf", ""},
		"the key alone, nothing is named": {"", "", map[string]string{"cacert": ca}, "neither cloud.conf nor clouds.yaml", ""},
		"a path that is here":             {elsewhere, "", map[string]string{"cacert": "of another cloud"}, "", ""},
		"no CA is here":                   {openShiftCA, "", map[string]string{}, "", "into key cacert of the Secret"},
		"the key is empty":                {openShiftCA, "", map[string]string{"cacert": ""}, "", "into key cacert of the Secret"},
		"ca-file is missing too":          {openShiftCA, "ca-file = /nonexistent.pem\n", map[string]string{"cacert": ca}, "ca-file of cloud.conf", "/nonexistent.pem"},
		"no CA at all":                    {"", "", map[string]string{}, "", "put the certificate of a private CA into key cacert"},
		"a CA of another":                 {"", "", map[string]string{"cacert": certificate(stranger(t))}, "neither cloud.conf nor clouds.yaml", "does not have the authority that signed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := secretOf(t, server.URL, tc.cacert, tc.files)
			s, err := FromConf(confWith(t, dir, tc.conf), "", noEnv)
			if err != nil {
				t.Fatal(err)
			}
			if (tc.note == "") != (s.CANote == "") || !strings.Contains(s.CANote, tc.note) {
				t.Errorf("note %q, want %q", s.CANote, tc.note)
			}
			c, err := Connect(t.Context(), s, Options{})
			switch {
			case tc.failure == "" && err != nil:
				t.Errorf("want a login, got %v", err)
			case tc.failure != "" && (err == nil || !strings.Contains(err.Error(), tc.failure) || strings.Contains(err.Error(), "s3cret")):
				t.Errorf("error %v, want %q", err, tc.failure)
			case err == nil:
				c.Close()
			}
		})
	}
}

// stranger is a server with a certificate of its own; httptest gives all of its servers the same.
func stranger(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(&keystone{})
	server.TLS = anotherCertificate(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// A laptop has other files: one named cacert counts only where clouds.yaml names a CA that is missing.
func TestFromSourceTakesTheFileBesideOnlyForAPathThatIsMissing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cacert, flag, want string
	}{
		"missing":           {openShiftCA, "", "BESIDE"},
		"not named":         {"", "", ""},
		"the flag is first": {openShiftCA, "/flag.pem", "/flag.pem"},
	} {
		dir := secretOf(t, "https://keystone.example/v3", tc.cacert, map[string]string{"cacert": "PEM"})
		s, err := FromSource(Source{CloudName: "openstack", CloudsFile: filepath.Join(dir, "clouds.yaml"), CACert: tc.flag, Env: noEnv})
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(tc.want, "BESIDE", filepath.Join(dir, "cacert")); s.CACertFile != want {
			t.Errorf("%s: CA file %q, want %q", name, s.CACertFile, want)
		}
		if noted := s.CANote != ""; noted != (tc.want == "BESIDE") {
			t.Errorf("%s: a note says which CA was chosen instead of that of clouds.yaml, and only then: %q", name, s.CANote)
		}
	}
}

// The Cloud Credential Operator adds the key when the cluster's CA is configured, and changes it when the CA changes.
func TestLiveTakesACAThatTheSecretGetsLater(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(&keystone{catalog: catalog()})
	t.Cleanup(server.Close)
	dir := secretOf(t, server.URL, openShiftCA, map[string]string{})
	conf := confWith(t, dir, "")
	live, err := NewLive(func() (Settings, error) { return FromConf(conf, "", noEnv) }, LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Current(t.Context()); !errors.Is(err, ErrBadFile) {
		t.Fatalf("no CA: %v", err)
	}
	key := filepath.Join(dir, "cacert")
	put := func(content string) {
		t.Helper()
		if err := os.WriteFile(key, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(certificate(server))
	if changed, err := live.Reload(t.Context()); !changed || err != nil {
		t.Errorf("the key is there now: %v, %v", changed, err)
	}
	first, err := live.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	put(certificate(stranger(t)))
	if changed, err := live.Reload(t.Context()); changed || err == nil {
		t.Errorf("a CA that did not sign: %v, %v", changed, err)
	}
	if now, _ := live.Current(t.Context()); now != first {
		t.Error("a CA that did not sign replaced one that did")
	}
	put(certificate(stranger(t)) + certificate(server))
	if changed, err := live.Reload(t.Context()); !changed || err != nil {
		t.Errorf("old and new CA in one file: %v, %v", changed, err)
	}
}

// anotherCertificate is a self-signed certificate that no other test server has.
func anotherCertificate(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"other.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
