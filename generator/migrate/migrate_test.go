package migrate

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func Import(files iter.Seq2[File, error]) (v1alpha1.Distribution, []Note, error) {
	return new(Importer).Import(files)
}

var update = flag.Bool("update", false, "write the proposals into testdata")

// keys reads a list of upstream's keys.
func keys(t *testing.T, name string) []string {
	t.Helper()
	text := testfile.Text(t, "testdata/"+name)
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

func TestEveryKeyOfUpstreamsChartHasARow(t *testing.T) {
	upstream := keys(t, "chart-keys.txt")
	has := map[string]bool{}
	for _, r := range chartRules {
		if has[r.key] {
			t.Errorf("%s has two rows", r.key)
		}
		has[r.key] = true
		if !slices.ContainsFunc(upstream, func(key string) bool { return key == r.key || strings.HasPrefix(key, r.key+".") }) {
			t.Errorf("%s is no key of upstream's chart", r.key)
		}
		if (r.set == nil) != (r.to == "") || r.to == "" && r.why == "" {
			t.Errorf("%s: want either a key of the Distribution and a way to set it, or a reason", r.key)
		}
	}
	for _, key := range upstream {
		if !slices.ContainsFunc(chartRules, func(r rule) bool { return key == r.key || strings.HasPrefix(key, r.key+".") }) {
			t.Errorf("%s has no row", key)
		}
	}
}

func TestEveryKeyOfCloudConfHasARow(t *testing.T) {
	all := keys(t, "cloudconf-keys.txt")
	for _, o := range config.Options {
		all = append(all, o.Section+" "+o.Key)
	}
	for _, key := range cloud.ConfKeys() {
		all = append(all, "Global "+key)
	}
	for _, key := range all {
		section, name, _ := strings.Cut(key, " ")
		if r, found := confRule(section, name); !found || r.to == "" && r.why == "" {
			t.Errorf("%s has no row", key)
		}
	}
	for _, r := range confRules {
		if !slices.Contains(all, r.key) {
			t.Errorf("%s is no key of cloud.conf", r.key)
		}
	}
}

// files are one file with this content.
func files(content string) iter.Seq2[File, error] {
	return func(yield func(File, error) bool) { yield(File{Name: "file", Content: []byte(content)}, nil) }
}

// imported imports one file and gives its Distribution as YAML and its notes as text.
func imported(t *testing.T, content string) (spec, notes string) {
	t.Helper()
	d, all, err := Import(files(content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := v1alpha1.YAML(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v1alpha1.DecodeDistribution("proposal", text); err != nil {
		t.Errorf("the proposal is not strict: %v", err)
	}
	var lines []string
	for _, n := range all {
		lines = append(lines, n.String())
	}
	_, spec, _ = strings.Cut(string(text), "spec:\n")
	return spec, strings.Join(lines, "\n")
}

const conf = `
# comment
[Global]
auth-url=https://keystone.example/v3
username=cinder
password="hunter2;#"
region=RegionOne
ca-file=/etc/cacert/ca.pem
cloud=mycloud
[BlockStorage]
node-volume-attach-limit=300
rescan-on-resize=true
ignore-volume-az
[Metadata]
search-order=metadataService, configDrive
[Zone "az1"]
volume-zone=nova
[LoadBalancer]
lb-provider=octavia
`

func TestCloudConfBecomesADistributionAndNoSecretIsTold(t *testing.T) {
	spec, notes := imported(t, conf)
	want := `  driver:
    metadata:
      - metadataService
      - configDrive
  credentials:
    cloud: mycloud
  topology:
    mode: enabled
    zoneMap:
      az1: nova
  volumeAttachLimit: "256"
`
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{
		"file: [Global] password: left out: it is part of the credentials: write it into clouds.yaml (key auth.password)",
		"all files: credentials: left out: import never prints them. Put them into driver-clouds.yaml and create the Secret: kubectl create secret generic",
		"file: [Global] cloud: is now spec.credentials.cloud",
		"file: [Global] ca-file: left out: put the PEM",
		"file: [BlockStorage] ignore-volume-az: is now spec.topology.mode: existing PersistentVolumes name zones",
		"file: [LoadBalancer] lb-provider: left out: it is for the cloud controller manager",
	} {
		if !strings.Contains(notes, line) {
			t.Errorf("want %q in:\n%s", line, notes)
		}
	}
	for _, secret := range []string{"hunter2", "keystone.example", "RegionOne"} {
		if strings.Contains(spec+notes, secret) {
			t.Errorf("%s is told:\n%s%s", secret, spec, notes)
		}
	}
	if n := strings.Count(notes, "\n") + 1; n != 13 {
		t.Errorf("want a note for each of the 12 keys and one for the credentials, got %d:\n%s", n, notes)
	}
}

const values = `
csi:
  provisioner:
    topology: "false"
    image: {repository: mirror.example:5000/sig/csi-provisioner, tag: v1, pullPolicy: Always}
    resources: {requests: {cpu: 20m}}
  attacher:
    image: {repository: registry.k8s.io/sig-storage/csi-attacher}
  livenessprobe:
    resources: {limits: {memory: 64Mi}}
  plugin:
    image: {tag: null}
    extraEnv:
    - {name: HTTPS_PROXY, value: "http://proxy.example:3128"}
    - {name: http_proxy, value: "http://eve:hunter2@proxy.example:3128"}
    - {name: OS_PASSWORD, value: hunter2}
    - {name: TZ, value: UTC}
    extraArgs: |-
      - --pprof
    podMonitor: {enabled: true}
    nodePlugin:
      kubeletDir: /var/lib/k0s/kubelet
      tolerations: [{operator: Exists}]
      podLabels: {a: b}
    controllerPlugin:
      replicas: 3
      nodeSelector: {node-role.kubernetes.io/control-plane: ""}
      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: k, operator: Exists}]}]}}}
logVerbosityLevel: 4
pvcAnnotations: true
storageClass: {delete: {isDefault: true}, retain: {isDefault: false}, custom: "x"}
imagePullSecrets: [{name: pull}]
commonAnnotations: {team: storage}
secret:
  enabled: true
  data:
    cloud.conf: |-
      [Global]
      password=hunter2
      [BlockStorage]
      node-volume-attach-limit=20
`

func TestValuesOfUpstreamsChartBecomeADistribution(t *testing.T) {
	spec, notes := imported(t, values)
	if *update {
		testfile.Write(t, "testdata/values.want", spec, 0o644)
	}
	want := testfile.Read(t, "testdata/values.want")
	if diff := cmp.Diff(string(want), spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{
		"file: clusterID: is now spec.clusterID: it is not in the file, and the default of the chart is kubernetes",
		"file: csi.attacher.image.repository: left out: the bundle takes it from there by default",
		"file: csi.provisioner.image.tag: left out: the bundle names the version",
		"file: csi.plugin.image.tag: left out: it is empty",
		"file: csi.plugin.extraEnv http_proxy: left out: it may hold a secret",
		"file: csi.plugin.extraEnv OS_PASSWORD: left out: it may hold a secret",
		"file: storageClass.retain.isDefault: left out: the generator chooses",
		"file secret.data cloud.conf: [Global] password: left out",
		"file secret.data cloud.conf: [BlockStorage] node-volume-attach-limit: is now spec.volumeAttachLimit",
	} {
		if !strings.Contains(notes, line) {
			t.Errorf("want %q in:\n%s", line, notes)
		}
	}
	if strings.Contains(spec+notes, "hunter2") {
		t.Errorf("a secret is told:\n%s%s", spec, notes)
	}
}

func TestWhatIsNotKnownIsRefusedWithoutAValue(t *testing.T) {
	for _, test := range []struct{ name, content, says string }{
		{"key of cloud.conf", "[Global]\npasword=hunter2\n", "line 2: there is no key pasword in section [Global] of cloud.conf; did you mean password?"},
		{"section of cloud.conf", "[Block]\nx=hunter2\n", "there is no key x in section [Block]"},
		{"type", "clusterID: [hunter2]", "clusterID: the value has another type than files of this kind have"},
		{"map", "csi: hunter2", "csi: the value has another type"},
		{"field", "csi: {plugin: {nodePlugin: {tolerations: [{hunter2: x}]}}}", "tolerations"},
		{"number", "[BlockStorage]\nnode-volume-attach-limit=hunter2", "node-volume-attach-limit: the value has another type"},
		{"neither", "hunter2", "it is neither cloud.conf"},
		{"twice", "clusterID: hunter2\nclusterID: b", "without repeated keys (line 2)"},
		{"object", "{apiVersion: v1, kind: Pod, data: {clusterID: hunter2}}", "it has Pod, and no setting of a Cinder driver. Import reads cloud.conf, the values of the chart openstack-cinder-csi"},
		{"broken cloud.conf", "[Global]\npassword=\"hunter2\n", "line 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, notes, err := Import(files(test.content))
			if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "file: ") || notes != nil {
				t.Fatalf("want an error with %q, got %v, %v", test.says, err, d)
			}
			if test.name != "field" && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a value is told: %v", err)
			}
		})
	}
}

func TestSeveralCloudsAreLeftOutWithTheWayThatServesThem(t *testing.T) {
	spec, notes := imported(t, "[Global \"east\"]\nauth-url=x\ncloud=a\n")
	if spec != "" || strings.Count(notes, "a bundle serves one cloud; replace only the image") != 2 {
		t.Errorf("want two notes and nothing else, got %s\n%s", spec, notes)
	}
}

func FuzzImport(f *testing.F) {
	f.Add(conf)
	f.Add(values)
	f.Add("csi: {plugin: {extraArgs: '{{ x }}', extraEnv: [{name: a}], volumes: 1}}")
	f.Add("secret: {data: {a: '[Global]', b: 1}}")
	for _, dir := range []string{"must-gather", "hosted", "manifests"} {
		for file, err := range below(f, dir) {
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(file.Content))
		}
	}
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: openstack-cloud-credentials, annotations: {a: canary-7}}, data: {clouds.yaml: canary-7}}"
	f.Fuzz(func(t *testing.T, content string) {
		d, notes, err := Import(named("file", content, "secret", secret))
		if told := fmt.Sprint(d, notes, err); strings.Contains(told, "canary-7") && !strings.Contains(content, "canary-7") {
			t.Errorf("the value of a Secret is told: %s", told)
		}
		if err != nil {
			if !errors.Is(err, ErrFile) && !errors.Is(err, ErrZones) || notes != nil {
				t.Errorf("%v, %v", err, notes)
			}
			return
		}
		text, err := v1alpha1.YAML(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v1alpha1.DecodeDistribution("proposal", text); err != nil {
			t.Errorf("the proposal cannot be read back: %v\n%s", err, text)
		}
	})
}

// Zones in existing PersistentVolumes need nodes with zones. So topology that was on is never left to the names of the zones.
func TestTopologyThatWasOnStaysOn(t *testing.T) {
	const both = "csi: {provisioner: {topology: %s}}\nsecret: {data: {cloud.conf: \"[BlockStorage]\\nignore-volume-az=%s\\n\"}}\n"
	for _, c := range []struct{ name, file, want string }{
		{"both settings where the names of zones differ", fmt.Sprintf(both, `"true"`, "true"), "mode: enabled"},
		{"a truth value", fmt.Sprintf(both, "true", "false"), "mode: enabled"},
		{"the default of the chart", "clusterID: c\n", "mode: enabled"},
		{"cloud.conf alone", "[BlockStorage]\nignore-volume-az=true\n", "mode: enabled"},
		{"turned off", fmt.Sprintf(both, `"false"`, "true"), "mode: disabled"},
		{"cloud.conf that does not say it", "[BlockStorage]\nignore-volume-az=false\n", ""},
	} {
		spec, notes := imported(t, c.file)
		if got := strings.Contains(spec, "mode: enabled"); got != (c.want == "mode: enabled") || !strings.Contains(spec, c.want) {
			t.Errorf("%s: want %q, got:\n%s%s", c.name, c.want, spec, notes)
		}
		if c.want == "mode: enabled" && !strings.Contains(notes, "spec.topology.zoneMap") {
			t.Errorf("%s: want a note about the map of zones, got:\n%s", c.name, notes)
		}
	}
}

func TestTheStrategyOfTheControllerIsKept(t *testing.T) {
	const plugin = "csi: {plugin: {controllerPlugin: {strategy: {type: %s, rollingUpdate: {maxSurge: 2, maxUnavailable: 1}}}}}\n"
	spec, notes := imported(t, fmt.Sprintf(plugin, "RollingUpdate"))
	if !strings.Contains(spec, `maxUnavailable: "1"`) || !strings.Contains(spec, `maxSurge: "2"`) {
		t.Errorf("want both numbers, got:\n%s%s", spec, notes)
	}
	if spec, notes = imported(t, fmt.Sprintf(plugin, "Recreate")); strings.Contains(spec, "maxSurge") || strings.Count(notes, "left out: the strategy is another one") != 2 {
		t.Errorf("want no number beside Recreate, got:\n%s%s", spec, notes)
	}
}
