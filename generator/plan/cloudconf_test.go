package plan

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// certificate is a CA's in PEM, and its private key.
func certificate(t *testing.T) (public, private string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, pub, priv)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

func withCA(bundle string) v1alpha1.Distribution {
	return v1alpha1.Distribution{Spec: v1alpha1.Spec{Credentials: v1alpha1.Credentials{CABundle: bundle}}}
}

func TestAKeyOfTheSecretGivesTheCA(t *testing.T) {
	for name, tc := range map[string]struct {
		config, key string
		file        bool // cloud.conf names it
	}{
		"nothing":     {"", "", false},
		"a key":       {"ca.crt", "ca.crt", true},
		"the default": {"cacert", "cacert", true},
	} {
		r, err := Decide(cloudOf("standard"), v1alpha1.Distribution{Spec: v1alpha1.Spec{Credentials: v1alpha1.Credentials{CAKey: tc.config}}}, v1alpha1.Vanilla, v1alpha1.Helm, "test")
		if err != nil {
			t.Fatal(err)
		}
		if named := strings.Contains(r.CloudConf.Value, "ca-file = /etc/cinder-csi/cloud/cacert\n"); r.CAKey.Value != tc.key || named != tc.file || strings.Contains(r.CloudConf.Value, "ca-file") != tc.file {
			t.Errorf("%s: key %q, cloud.conf %q", name, r.CAKey.Value, r.CloudConf.Value)
		}
	}
}

func TestACABundleWithAnythingButCertificatesIsRefusedAndNotRepeated(t *testing.T) {
	ca, key := certificate(t)
	const secret = "hunter2"
	noBegin := strings.TrimPrefix(key, "-----BEGIN PRIVATE KEY-----\n")
	body := strings.Split(noBegin, "\n")[0]
	cases := map[string]string{
		"text before":                  "password: hunter2\n" + ca,
		"text between":                 ca + "password: hunter2\n" + ca,
		"text after":                   ca + "password: hunter2\n",
		"text in the middle":           strings.Replace(ca, "\n", "\npassword: hunter2\n", 1),
		"a damaged block with text":    "-----BEGIN CERTIFICATE-----\npassword: hunter2\n" + ca,
		"a header":                     strings.Replace(ca, "\n", "\nPassword: hunter2\n\n", 1),
		"a key":                        key,
		"a key after a certificate":    ca + key,
		"a key without its BEGIN":      noBegin + ca,
		"a key's text alone":           body + "\n" + ca,
		"a damaged key":                strings.Replace(key, "\n", "\n!\n", 1) + ca,
		"a key called a certificate":   strings.ReplaceAll(key, "PRIVATE KEY", "CERTIFICATE"),
		"another block":                "-----BEGIN hunter2-----\nAAAA\n-----END hunter2-----\n" + ca,
		"text on the certificate line": "hunter2 " + ca,
	}
	for name, text := range cases {
		_, err := Decide(cloudOf("standard"), withCA(text), v1alpha1.Vanilla, v1alpha1.Helm, "test")
		var wrong *ConfigError
		if !errors.As(err, &wrong) || len(wrong.Problems) != 1 || !strings.HasPrefix(wrong.Problems[0], "spec.credentials.caBundle: ") {
			t.Errorf("%s: want one problem of spec.credentials.caBundle, got %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), body)) {
			t.Errorf("%s: the message repeats what was given: %v", name, err)
		}
	}
}

func TestCertificatesAreEmbeddedInOneSpelling(t *testing.T) {
	one, _ := certificate(t)
	two, _ := certificate(t)
	for name, text := range map[string]string{
		"as they are":    one + two,
		"CRLF":           strings.ReplaceAll(one+two, "\n", "\r\n"),
		"white space":    "\n\n " + one + "\n\n" + two + "\n \n",
		"no newline":     strings.TrimSpace(one + two),
		"trailing space": strings.ReplaceAll(one+two, "\n", " \n"),
	} {
		r, err := Decide(cloudOf("standard"), withCA(text), v1alpha1.Vanilla, v1alpha1.Helm, "test")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]string{one + two, one + two}, []string{r.CABundle.Value, r.Config.Credentials.CABundle}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
