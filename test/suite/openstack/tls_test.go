//go:build openstack && tls

package openstack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// These tests need the bed of `make openstack-up TLS=1`: Keystone, Nova and Cinder behind TLS, with a private CA.

// openShiftCA is the path that OpenShift's installer and its Cloud Credential Operator write into clouds.yaml. The driver's pods do not
// have it.
const openShiftCA = "/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem"

// bedCA is the PEM of the CA of the bed.
func bedCA(t *testing.T, bed string) string {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(bed, "state", "tls", "ca.pem"))
	if err != nil {
		t.Fatalf("the bed has no TLS; run `make openstack-up TLS=1`: %v", err)
	}
	return string(pem)
}

// mountFiles puts a Secret or a ConfigMap into a directory as kubelet does: it writes a new directory and moves the link ..data to it.
func mountFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.MkdirAll(dir, 0o755))
	fresh, err := os.MkdirTemp(dir, "..2026_")
	do(err)
	for name, content := range files {
		do(os.WriteFile(filepath.Join(fresh, name), []byte(content), 0o600))
	}
	do(os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..data_tmp")))
	do(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	for name := range files {
		if link := filepath.Join(dir, name); isNotThere(link) {
			do(os.Symlink(filepath.Join("..data", name), link))
		}
	}
	entries, err := os.ReadDir(dir)
	do(err)
	for _, e := range entries {
		if _, kept := files[e.Name()]; !kept && !strings.HasPrefix(e.Name(), "..") {
			do(os.Remove(filepath.Join(dir, e.Name())))
		}
	}
}

func isNotThere(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// pod is what a bundle mounts into the controller's driver.
type pod struct {
	conf    string // the path of cloud.conf
	volumes map[string]corev1.Volume
	dirs    map[string]string // of the volumes cloud and ca
	secret  map[string]string // the keys of the credentials' Secret
	owner   keystone
}

// podOf generates a bundle and mounts what its controller mounts, with the Secret and the ConfigMaps that are there. The credentials are a
// new application credential, under an entry whose cacert is OpenShift's.
func podOf(t *testing.T, bed, target, credentials string, secret, configMaps map[string]string) (p *pod, messages string) {
	t.Helper()
	owner := newKeystone(t, bed, "lab-demo")
	made := owner.newCredential(t, openstack.AccessRules())
	p = &pod{volumes: map[string]corev1.Volume{}, dirs: map[string]string{}, secret: map[string]string{}, owner: owner}
	p.secret["clouds.yaml"] = fmt.Sprintf("clouds:\n  openstack:\n    region_name: RegionOne\n    cacert: %s\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: %s\n      application_credential_id: %s\n      application_credential_secret: %s\n",
		openShiftCA, owner.authURL, made.ID, made.Secret)
	for key, value := range secret {
		p.secret[key] = value
	}
	dir, root := filepath.Join(t.TempDir(), "bundle"), t.TempDir()
	config := filepath.Join(root, "config.yaml")
	text := "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: bed}\nspec:\n  images: {driver: {registry: registry.example, repository: cinder-csi-driver, tag: v1}}\n  hypershift: {platform: OpenStack}\n" + credentials
	if target != "hypershift" {
		text = strings.Replace(text, "  hypershift: {platform: OpenStack}\n", "", 1)
	}
	testfile.Write(t, config, text, 0o600)
	_, messages, code := run(t, cloudsFile(bed), program(t, "cinder-csi-generator"), "generate", "--os-cloud", "lab-demo", "--target", target, "--format", "kustomize", "--config", config, "--output-dir", dir)
	if code != 0 {
		t.Fatalf("generate: exit %d: %s", code, messages)
	}
	if target == "hypershift" {
		dir = filepath.Join(dir, "management")
	}
	out, failure, code := run(t, nil, program(t, "tools/kubectl"), "kustomize", dir)
	if code != 0 {
		t.Fatal(failure)
	}
	data := map[string]map[string]string{}
	for _, document := range strings.Split(out, "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		testenv.Must(t, yaml.Unmarshal([]byte(document), &object))
		switch object.Kind {
		case "ConfigMap":
			var m corev1.ConfigMap
			testenv.Must(t, yaml.Unmarshal([]byte(document), &m))
			data[m.Name] = m.Data
		case "Deployment":
			var d appsv1.Deployment
			testenv.Must(t, yaml.Unmarshal([]byte(document), &d))
			for _, v := range d.Spec.Template.Spec.Volumes {
				p.volumes[v.Name] = v
			}
		}
	}
	p.dirs["cloud"], p.dirs["ca"] = filepath.Join(root, "cloud"), filepath.Join(root, "ca")
	p.mountSecret(t)
	if v, there := p.volumes["ca"]; there {
		files := map[string]string{}
		for _, item := range v.ConfigMap.Items {
			content, there := data[v.ConfigMap.Name][item.Key]
			if !there {
				content, there = configMaps[v.ConfigMap.Name+"/"+item.Key]
			}
			if !there {
				t.Fatalf("no ConfigMap %s has the key %s", v.ConfigMap.Name, item.Key)
			}
			files[item.Path] = content
		}
		mountFiles(t, p.dirs["ca"], files)
	}
	p.conf = filepath.Join(root, "cloud.conf")
	conf := strings.NewReplacer("/etc/cinder-csi/cloud", p.dirs["cloud"], "/etc/cinder-csi/ca", p.dirs["ca"]).Replace(data["cinder-csi-controller-config"]["cloud.conf"])
	testfile.Write(t, p.conf, conf, 0o600)
	return p, messages
}

// mountSecret mounts the Secret as the volume cloud of the bundle says.
func (p *pod) mountSecret(t *testing.T) {
	t.Helper()
	files := map[string]string{}
	for _, source := range p.volumes["cloud"].Projected.Sources {
		for _, item := range source.Secret.Items {
			content, there := p.secret[item.Key]
			if there {
				files[item.Path] = content
			} else if source.Secret.Optional == nil || !*source.Secret.Optional {
				t.Fatalf("the Secret has no key %s, and the pod would wait for it", item.Key)
			}
		}
	}
	mountFiles(t, p.dirs["cloud"], files)
}

func (p *pod) start(t *testing.T, bed string, flags ...string) *driver {
	t.Helper()
	d := startDriverWith(t, bed, p.conf, flags...)
	d.secrets = filepath.Join(p.dirs["cloud"], "clouds.yaml")
	return d
}

func indent(text string) string {
	return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ")
}

const caWarning = "this login trusts the CA file"

func TestTLSInspectReadsTheCloud(t *testing.T) {
	bed := bed(t)
	bedCA(t, bed)
	for _, user := range users {
		out, messages, code := run(t, cloudsFile(bed), program(t, "cinder-csi-generator"), "inspect", "--os-cloud", user, "-o", "json")
		if code != 0 || !json.Valid([]byte(out)) || !strings.Contains(out, "https://") {
			t.Errorf("%s: exit %d: %s", user, code, messages)
		}
	}
}

func TestTLSEachWayToGiveTheCA(t *testing.T) {
	bed := bed(t)
	ca := bedCA(t, bed)
	for _, tc := range []struct {
		name, target, credentials string
		secret, configMaps        map[string]string
		warned                    bool
		note                      string // of the driver's log
	}{
		{name: "caBundle", target: "vanilla", credentials: "  credentials:\n    caBundle: |\n" + indent(ca) + "\n", note: "ca-file of cloud.conf"},
		{name: "caConfigMap", target: "vanilla", credentials: "  credentials: {caConfigMap: cloud-ca/ca.crt}\n", configMaps: map[string]string{"cloud-ca/ca.crt": ca}, note: "ca-file of cloud.conf"},
		{name: "caKey", target: "vanilla", credentials: "  credentials: {caKey: ca.crt}\n", secret: map[string]string{"ca.crt": ca}, note: "ca-file of cloud.conf"},
		{name: "the key cacert by the README", target: "vanilla", secret: map[string]string{"cacert": ca}, warned: true, note: "takes its place"},
		{name: "as OpenShift leaves the Secret", target: "standalone", secret: map[string]string{"cacert": ca}, note: "takes its place"},
		{name: "OpenShift before 4.19", target: "standalone", credentials: "  credentials:\n    caBundle: |\n" + indent(ca) + "\n", note: "ca-file of cloud.conf"},
		{name: "as HyperShift leaves the Secret", target: "hypershift", secret: map[string]string{"cacert": ca}, note: "takes its place"},
		{name: "HyperShift's ConfigMap", target: "hypershift", credentials: "  credentials: {caConfigMap: openstack-trusted-ca/ca-bundle.pem}\n", configMaps: map[string]string{"openstack-trusted-ca/ca-bundle.pem": ca}, note: "ca-file of cloud.conf"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, messages := podOf(t, bed, tc.target, tc.credentials, tc.secret, tc.configMaps)
			if strings.Contains(messages, caWarning) != tc.warned {
				t.Errorf("want a warning %v: %s", tc.warned, messages)
			}
			d := p.start(t, bed)
			began := time.Now()
			newVolume(t, d, "ext4")
			log, err := os.ReadFile(d.log)
			if err != nil || strings.Count(string(log), tc.note) != 1 {
				t.Errorf("want %q once in the log: %v\n%s", tc.note, err, log)
			}
			t.Logf("the login and a volume took %s", time.Since(began).Round(time.Millisecond))
		})
	}
}

// Without any CA the driver says what to do, and takes the CA when the Secret gets it.
func TestTLSWithoutACATheDriverSaysWhatToDoAndGoesOnWhenTheSecretHasIt(t *testing.T) {
	bed := bed(t)
	ca := bedCA(t, bed)
	p, _ := podOf(t, bed, "standalone", "", nil, nil)
	d := p.start(t, bed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := d.controller.CreateVolume(ctx, csitest.Claim("bed-"+rand.Text(), csitest.As(csitest.Single("ext4"))))
	if err == nil || !strings.Contains(err.Error(), "into key cacert of the Secret") {
		t.Errorf("want what to do, got %v", err)
	}
	began := time.Now()
	p.secret["cacert"] = ca
	p.mountSecret(t)
	working(t, d, 2*time.Minute)
	t.Logf("the driver works %s after the Secret had the CA", time.Since(began).Round(time.Millisecond))
}

// working waits until the driver can ask Cinder.
func working(t *testing.T, d *driver, within time.Duration) {
	t.Helper()
	end := time.Now().Add(within)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := d.controller.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 1})
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// authority is a CA and a certificate of it for the APIs of the bed.
type authority struct{ ca, server string }

func newAuthority(t *testing.T, address string) authority {
	t.Helper()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	do(err)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "new CA of the bed"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	do(err)
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: root.NotBefore, NotAfter: root.NotAfter, IPAddresses: []net.IP{net.ParseIP(address)}}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
	do(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	do(err)
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return authority{encode("CERTIFICATE", rootDER), encode("CERTIFICATE", leafDER) + encode("PRIVATE KEY", private)}
}

// tlsProxy is the TLS proxy of the bed.
type tlsProxy struct{ bed, address string }

// serve makes the proxy use another certificate, and waits until it does.
func (f tlsProxy) serve(t *testing.T, certificate, ca string) {
	t.Helper()
	path := filepath.Join(f.bed, "state", "tls", "server.pem")
	testfile.Write(t, path+".new", certificate, 0o600)
	testenv.Must(t, os.Rename(path+".new", path))
	text := testfile.Text(t, filepath.Join(f.bed, "run", "tls-proxy.pid"))
	pid := testenv.Value(strconv.Atoi(strings.Fields(text)[0]))(t)
	testenv.Must(t, syscall.Kill(pid, syscall.SIGUSR2))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca))
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := tls.Dial("tcp", f.address, &tls.Config{RootCAs: roots})
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the proxy does not show the new certificate: %v", err)
		}
	}
}

func TestTLSTheCAIsRotatedWhileAVolumeIsInUse(t *testing.T) {
	bed := bed(t)
	ca := bedCA(t, bed)
	served := testfile.Text(t, filepath.Join(bed, "state", "tls", "server.pem"))
	for _, target := range []string{"vanilla", "standalone", "hypershift"} {
		t.Run(target, func(t *testing.T) {
			p, _ := podOf(t, bed, target, "", map[string]string{"cacert": ca}, nil)
			u := testenv.Value(url.Parse(p.owner.authURL))(t)
			f := tlsProxy{bed, u.Host}
			t.Cleanup(func() { f.serve(t, served, ca) })
			address := freeAddress(t)
			d := p.start(t, bed, "--http-endpoint="+address)
			id := newVolume(t, d, "ext4").GetVolumeId()
			server := serverNamed(t, bed, "node-az1")
			testenv.Must(t, publish(t, d, id, server))
			put := func(what, content string, reloads int) {
				t.Helper()
				began := time.Now()
				p.secret["cacert"] = content
				p.mountSecret(t)
				line := fmt.Sprintf(`cinder_csi_config_reloads_total{result="success"} %d`, reloads)
				for end := time.Now().Add(2 * time.Minute); !hasMetric(t, address, line); time.Sleep(50 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("%s: no reload %d", what, reloads)
					}
				}
				t.Logf("%s: in use after %s", what, time.Since(began).Round(time.Millisecond))
			}
			use := func(when string) {
				t.Helper()
				if got := attached(t, d, id); !slices.Equal(got, []string{server}) {
					t.Errorf("%s: the volume is attached to %v", when, got)
				}
				newVolume(t, d, "ext4")
			}
			next := newAuthority(t, u.Hostname())
			put("old and new CA", ca+next.ca, 1)
			use("both CAs")
			f.serve(t, next.server, next.ca)
			use("the new certificate")
			put("the new CA alone", next.ca, 2)
			use("the new CA alone")

			// The wrong order: the cloud changes first. Nothing is lost, and the driver goes on when it has the CA.
			f.serve(t, served, ca)
			d.refused(t)
			put("the CA after the cloud changed", ca, 3)
			working(t, d, time.Minute)
			use("the CA after the cloud changed")
			testenv.Check(t, unpublish(t, d, id, server))
		})
	}
}

// refused waits until the driver does not trust the cloud any more: a connection that is open may still serve a request.
func (d *driver) refused(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := d.controller.ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 1})
		cancel()
		if err != nil {
			t.Logf("with a CA that did not sign: %v", err)
			return
		}
		if time.Now().After(end) {
			t.Fatal("the driver trusts a certificate of an unknown CA")
		}
	}
}
