package migrate

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// below are the files of a directory of testdata, as `import DIR` gives them.
func below(t testing.TB, dir string) iter.Seq2[File, error] {
	t.Helper()
	return func(yield func(File, error) bool) {
		err := fs.WalkDir(os.DirFS("testdata"), dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			content, err := os.ReadFile(filepath.Join("testdata", path))
			if !yield(File{Name: path, Directory: dir, Content: content}, err) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// named are files with their names before their contents.
func named(namesAndContents ...string) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) {
		for i := 0; i < len(namesAndContents); i += 2 {
			if !yield(File{Name: namesAndContents[i], Content: []byte(namesAndContents[i+1])}, nil) {
				return
			}
		}
	}
}

// text is a proposal as people see it: the Distribution, then the notes.
func text(t *testing.T, d v1alpha1.Distribution, notes []Note) string {
	t.Helper()
	out, err := v1alpha1.YAML(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v1alpha1.DecodeDistribution("proposal", out); err != nil {
		t.Errorf("the proposal is not strict: %v", err)
	}
	var lines strings.Builder
	lines.Write(out)
	for _, n := range notes {
		lines.WriteString(n.String() + "\n")
	}
	return lines.String()
}

// canaries are what the Secrets of testdata hold.
var canaries = []string{"hunter2", "Y2FuYXJ5LWh1bnRlcjI="}

func TestClustersOfOpenShiftBecomeADistributionAndNoValueOfASecretIsTold(t *testing.T) {
	for _, dir := range []string{"must-gather", "hosted"} {
		t.Run(dir, func(t *testing.T) {
			d, notes, err := Import(below(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			got := text(t, d, notes)
			for _, canary := range canaries {
				if strings.Contains(got, canary) {
					t.Errorf("%s is told:\n%s", canary, got)
				}
			}
			golden := filepath.Join("testdata", dir+".want")
			if *update {
				testfile.Write(t, golden, got, 0o644)
			}
			want := testfile.Read(t, golden)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoValueOfASecretIsKept(t *testing.T) {
	for _, content := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {x: hunter2}, labels: {y: hunter2}}, data: {k: hunter2}, stringData: {l: hunter2}, type: hunter2}",
		"{apiVersion: v1, kind: SecretList, items: [{metadata: {name: a}, data: {k: hunter2}}]}",
		"{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, data: {k: {deep: hunter2}}}]}]}",
		"{apiVersion: v1, kind: Secret, data: hunter2}",
		"{apiVersion: v1, kind: Secret, data: [hunter2]}",
	} {
		f := File{Name: "file", Content: []byte(content)}
		in, err := readAll(func(yield func(File, error) bool) { yield(f, nil) })
		if err != nil {
			t.Fatal(err)
		}
		if len(in.documents) != 1 || strings.Contains(cmp.Diff(in.documents[0].yaml, map[string]any{}), "hunter2") {
			t.Errorf("want the shape of one Secret, got %v", in.documents)
		}
		if strings.Contains(string(f.Content), "hunter2") {
			t.Error("the text of the file is still there")
		}
	}
}

func TestTwoFilesThatContradictEachOtherAreNamedBoth(t *testing.T) {
	for _, test := range []struct{ name, a, b, says string }{
		{
			"cluster IDs", "{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, status: {infrastructureName: hunter2}}", "clusterID: other",
			"b.yaml and a.yaml: Infrastructure cluster have different values for spec.clusterID; leave out the one that is not in use",
		},
		{
			"cloud.conf", "[BlockStorage]\nnode-volume-attach-limit=7\n", "[BlockStorage]\nnode-volume-attach-limit=8\n",
			"a.yaml and b.yaml have different values for spec.volumeAttachLimit",
		},
		{"one key of a map", "[Zone \"az1\"]\nvolume-zone=a\n", "[Zone \"az1\"]\nvolume-zone=b\n", "a.yaml and b.yaml have different values for spec.topology.zoneMap.az1"},
		{
			"hosted clusters", "{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {name: a, namespace: clusters}}",
			"{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {name: b, namespace: clusters}}",
			"a.yaml: HostedCluster clusters/a and b.yaml: HostedCluster clusters/b are of two hosted clusters, and a bundle is for one; give the files of one",
		},
		{
			"infrastructure ID of another cluster", "{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {name: a, namespace: clusters}, spec: {infraID: a-1}}",
			"{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, status: {infrastructureName: b-1}}",
			"b.yaml: Infrastructure cluster and a.yaml: HostedCluster clusters/a have different values for spec.hypershift.infraID",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, notes, err := Import(named("a.yaml", test.a, "b.yaml", test.b))
			if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter2") || notes != nil {
				t.Errorf("want an error with %q, got %v", test.says, err)
			}
		})
	}
}

func TestFilesThatAgreeAndFilesForOtherKeysAreMerged(t *testing.T) {
	d, _, err := Import(named("a", "[BlockStorage]\nnode-volume-attach-limit=7\n[Zone \"az1\"]\nvolume-zone=a\n", "b", "[BlockStorage]\nnode-volume-attach-limit=7\n[Zone \"az2\"]\nvolume-zone=b\n",
		"c", "clusterID: prod\n", "d", "logVerbosityLevel: 4\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Spec.VolumeAttachLimit != "7" || len(d.Spec.Topology.ZoneMap) != 2 || d.Spec.ClusterID != "prod" || *d.Spec.Driver.LogLevel != 4 {
		t.Errorf("want what all files say, got %+v", d.Spec)
	}
}

// object is an object of OpenShift as a file.
func object(group, kind, rest string) string {
	return "{apiVersion: " + group + "/v1, kind: " + kind + ", metadata: {name: cluster}, " + rest + "}"
}

func TestAValueThatOpenShiftDoesNotHaveIsRefusedAndNotTold(t *testing.T) {
	for _, test := range []struct{ content, says string }{
		{object(configGroup, "Infrastructure", "status: {controlPlaneTopology: hunter2}"), "status.controlPlaneTopology: it is none of SingleReplica, HighlyAvailable"},
		{object(configGroup, "Infrastructure", "status: {platformStatus: hunter2}"), "status.platformStatus: the value has another type"},
		{object(configGroup, "Proxy", "status: {httpProxy: [hunter2]}"), "status.httpProxy: the value has another type"},
		{object(configGroup, "Network", "status: {clusterNetwork: [hunter2]}"), "status.clusterNetwork: the value has another type"},
		{object(configGroup, "APIServer", "spec: {tlsSecurityProfile: {type: hunter2}}"), "the type is none of Old, Intermediate, Modern, Custom"},
		{object(configGroup, "APIServer", "spec: {tlsSecurityProfile: {type: Custom}}"), "type Custom needs custom"},
		{object(configGroup, "APIServer", "spec: {tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: hunter2}}}"), "minTLSVersion is none of"},
		{strings.Replace(object(operatorGroup, "ClusterCSIDriver", "spec: {logLevel: hunter2}"), "cluster", "cinder.csi.openstack.org", 1), "spec.logLevel: it is none of Normal, Debug"},
		{object(hyperShiftGroup, "HostedCluster", "spec: {controllerAvailabilityPolicy: hunter2}"), "spec.controllerAvailabilityPolicy: it is none of SingleReplica, HighlyAvailable"},
		{configMap(t, userConfig, map[string]string{"config": "# nothing\n", "enable_topology": "hunter2"}), "data enable_topology: the value has another type"},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: cloud-conf}, data: {cloud.conf: [hunter2]}}", "data cloud.conf: the value has another type"},
	} {
		_, _, err := Import(named("file", test.content))
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("want an error with %q and without the value, got %v", test.says, err)
		}
	}
}

func TestWhatEachProxyBecomes(t *testing.T) {
	for _, test := range []struct{ name, content, want, says string }{
		{"in the status", "status: {httpsProxy: 'http://p.example:1', noProxy: a}, spec: {httpsProxy: 'http://old.example:1'}", "http://p.example:1 a", "spec.httpsProxy: left out: status.httpsProxy has"},
		{"in the spec", "spec: {httpsProxy: 'http://p.example:1', noProxy: b}", "http://p.example:1 b", "spec.noProxy: is now"},
		{"none", "status: {noProxy: a}", " ", "status.noProxy: left out: there is no proxy"},
		{"with a password", "status: {httpsProxy: 'http://eve:hunter2@p.example:1'}", " ", "status.httpsProxy: left out: it may hold a password"},
		{"with a password that no URL has", "status: {httpsProxy: 'http://eve:hun%ter2@p.example:1'}", " ", "status.httpsProxy: left out: it may hold a password"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, notes, err := Import(named("file", object(configGroup, "Proxy", test.content)))
			if err != nil {
				t.Fatal(err)
			}
			p := d.Spec.Roles.Controller.Proxy
			if got := text(t, d, notes); p.HTTPS+" "+p.NoProxy != test.want || !strings.Contains(got, test.says) || strings.Contains(got, "ter2") {
				t.Errorf("want %q and %q, got %s", test.want, test.says, got)
			}
		})
	}
}

func TestTheTrustedCAOfTheClusterGivesWayToThatOfOpenStack(t *testing.T) {
	proxy := object(configGroup, "Proxy", "spec: {trustedCA: {name: user-ca-bundle}}")
	d, _, err := Import(named("a", proxy))
	if err != nil || !d.Spec.TrustedCA {
		t.Errorf("want the CA of the cluster, got %v", err)
	}
	ca := testfile.Text(t, "testdata/ca.pem")
	const key = "-----BEGIN EC PRIVATE KEY-----\naHVudGVyMg==\n-----END EC PRIVATE KEY-----\n"
	d, _, err = Import(named("a", proxy, "b", configMap(t, providerConfig, map[string]string{caKey: "# hunter2\n" + key + ca})))
	if err != nil || d.Spec.TrustedCA || d.Spec.Credentials.CABundle != ca {
		t.Errorf("want the certificate alone, got %v, %+v", err, d.Spec)
	}
}

func TestTLSProfilesOfOpenShift(t *testing.T) {
	for profile, want := range map[string]v1alpha1.TLS{
		"{type: Old, old: {}}":                   {},
		"{type: Intermediate, intermediate: {}}": {},
		"{type: Modern, modern: {}}":             {MinVersion: "VersionTLS13"},
		"{type: Custom, custom: {minTLSVersion: VersionTLS12, ciphers: [ECDHE-RSA-AES128-GCM-SHA256, ECDHE-ECDSA-CHACHA20-POLY1305, TLS_AES_128_GCM_SHA256, DES-CBC3-SHA]}}": {
			MinVersion: "VersionTLS12", CipherSuites: []string{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"},
		},
		"{type: Custom, custom: {minTLSVersion: VersionTLS10, ciphers: [AES128-SHA]}}": {},
	} {
		d, _, err := Import(named("file", object(configGroup, "APIServer", "spec: {tlsSecurityProfile: "+profile+"}")))
		if diff := cmp.Diff(want, d.Spec.Monitoring.TLS); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", profile, err, diff)
		}
	}
}

func TestASecretOfAHostedClusterMustHaveItsKey(t *testing.T) {
	cluster := "{apiVersion: hypershift.openshift.io/v1beta1, kind: HostedCluster, metadata: {name: a, namespace: clusters}, spec: {platform: {type: OpenStack, openstack: {identityRef: {name: cloud}}}}}"
	for name, says := range map[string]string{"cloud": "it lacks the key clouds.yaml", "service-network-admin-kubeconfig": "it lacks the key kubeconfig"} {
		_, _, err := Import(named("a", cluster, "b", "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}, data: {other: hunter2}}"))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("want an error with %q, got %v", says, err)
		}
	}
}

func TestOtherKindsAreNamedAndNothingToReadIsAnError(t *testing.T) {
	_, notes, err := Import(named("file", infrastructureOf("x")+"\n---\n{kind: Pod}\n---\n{kind: Pod}\n--- # empty\n---\n{a: b}\n"))
	if err != nil || len(notes) != 3 || notes[0].String() != "file: Pod (2): left out: it has no setting of the driver" || notes[1].Key != "a document without a kind" {
		t.Errorf("want Pod and a document without a kind named, got %v, %v", notes, err)
	}
	for content, says := range map[string]string{"{kind: Pod}": "it has Pod", "": "it has nothing", "# nothing\n---\n": "it has nothing", infrastructureOf("x") + "\n---\nhunter2: [": "(line 3)"} {
		if _, _, err := Import(named("file", content)); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: want an error with %q, got %v", content, says, err)
		}
	}
}
