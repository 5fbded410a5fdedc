package verify_test

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// Rendering makes much garbage and keeps little: with the runtime's 100, a third of the processor time goes into collecting it.
func init() { debug.SetGCPercent(400) }

var targets = []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane}

// inventory is a cloud with two compute zones, and volume zones of the given names.
func inventory(volumeZones ...string) v1alpha1.Inventory {
	return v1alpha1.Inventory{
		Cloud: v1alpha1.Cloud{AuthURL: "https://keystone.example:5000/v3", Region: "RegionOne", ProjectID: "f00d"},
		Services: known(map[string]v1alpha1.Service{
			"identity":      {Present: true, Endpoint: "https://keystone.example:5000", Port: 5000},
			"compute":       {Present: true, MaxMicroversion: "2.93", Endpoint: "https://nova.example:8774", Port: 8774},
			"block-storage": {Present: true, MaxMicroversion: "3.70", Endpoint: "https://cinder.example:8776", Port: 8776},
		}),
		Zones: v1alpha1.Zones{Compute: known(zones("az 1", "az2")), Volume: known(zones(volumeZones...))},
		VolumeTypes: known([]v1alpha1.VolumeType{
			{ID: "t1", Name: "Fast SSD", Public: true, Zones: []string{"az 1"}},
			{ID: "t2", Name: "standard", Public: true},
		}),
		DefaultVolumeType: known("standard"),
	}
}

func known[T any](value T) v1alpha1.Fact[T] {
	return v1alpha1.Fact[T]{State: v1alpha1.Known, Value: value}
}

func zones(names ...string) []v1alpha1.Zone {
	var list []v1alpha1.Zone
	for _, n := range names {
		list = append(list, v1alpha1.Zone{Name: n, Available: true})
	}
	return list
}

// certificate is the certificate of a CA; its content does not matter. It is one for all tests, so that they share builds.
var certificate = sync.OnceValue(func() string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{SerialNumber: big.NewInt(1)}, public, private)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
})

// specs are configurations that between them use every key a bundle depends on.
func specs() map[string]v1alpha1.Spec {
	ca := certificate()
	off, level, limit, seconds := false, 6, 20, int64(1_500_000)
	user, replicas, zero := int64(1000680000), 3, 0
	return map[string]v1alpha1.Spec{
		"defaults": {},
		"one namespace of the cluster's": {
			Namespaces: v1alpha1.Namespaces{Controller: "kube-system", Node: "kube-system"},
			Snapshots:  v1alpha1.Snapshots{Enabled: &off},
		},
		"drained nodes": {Driver: v1alpha1.Driver{SELinux: v1alpha1.Enabled}, NodeLifecycle: v1alpha1.NodeLifecycle{DrainHook: true}, Roles: v1alpha1.Roles{Node: v1alpha1.RolePods{
			Proxy: v1alpha1.Proxy{NoProxy: "169.254.169.254"}, Resources: map[string]v1alpha1.Resources{"registrar": {Requests: map[string]string{"memory": "32Mi"}}},
		}}},
		"adopt": {OpenShift: v1alpha1.OpenShift{Coexistence: v1alpha1.Adopt}, HyperShift: v1alpha1.HyperShift{Platform: "None", KubeconfigSecret: "another"}},
		"CA without snapshots and limits asked for again": {
			KubernetesVersion: "1.35",
			Credentials:       v1alpha1.Credentials{CABundle: ca},
			Snapshots:         v1alpha1.Snapshots{Enabled: &off},
		},
		"names that YAML could read as something else": {
			Namespaces: v1alpha1.Namespaces{Controller: "1e3", Node: "0x1f"},
			ClusterID:  "1e3",
			Driver:     v1alpha1.Driver{Name: "1e3"},
			HyperShift: v1alpha1.HyperShift{KubeconfigSecret: "1.5"},
			Credentials: v1alpha1.Credentials{
				SecretName: "123", Key: "1e3", Cloud: "null", CABundle: ca,
			},
			NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true, OpenStackCIDRs: []string{"::/0"}},
			StorageClasses: v1alpha1.StorageClasses{Overrides: map[string]v1alpha1.ClassOverride{"standard": {
				Name: "1e3", MountOptions: []string{"1e3", "null"}, Annotations: map[string]string{"yes": "null"}, Parameters: map[string]string{"availability": "1e3"},
			}}},
			Images: v1alpha1.Images{Driver: v1alpha1.Image{Registry: "[fd00::1]:5000", Repository: "1/2", Tag: "1e3"}, Registrar: v1alpha1.Image{Registry: "10.0.0.1:5000/mirror"}},
			Roles: v1alpha1.Roles{
				Controller: v1alpha1.RolePods{
					NodeSelector: map[string]string{"1e3": "true"}, PodLabels: map[string]string{"yes": "no"}, ImagePullSecrets: []string{"123", "true", "0x1f"},
					Tolerations: []v1alpha1.Toleration{{Key: "1e3", Value: "null"}},
					Resources:   map[string]v1alpha1.Resources{"driver": {Requests: map[string]string{"cpu": "1", "memory": "1e9"}}},
				},
				Node: v1alpha1.RolePods{ImagePullSecrets: []string{"1e3"}},
			},
		},
		"settings of driver and pods": {
			Driver: v1alpha1.Driver{
				LogFormat: v1alpha1.LogJSON, KubeletDir: "/var/lib/k0s/kubelet", Capacity: true, Metadata: []string{"dmi", "configDrive"}, DrainTimeout: "9s",
				ProtectOtherClusters: v1alpha1.Enabled, SELinux: v1alpha1.Enabled, VolumeMetadata: map[string]string{"team": "storage", "cost-centre": "1e3"}, ServerMetadata: map[string]string{"role": "k8s-node"},
				RequestsPerSecond: v1alpha1.RequestsPerSecond{Reads: &replicas, Writes: &zero},
				ExtraArgs:         v1alpha1.ExtraArgs{Controller: []string{"--user-agent=a b", "--default-fs-type=xfs"}, Node: []string{"--additional-topology=a=b"}},
			},
			Credentials: v1alpha1.Credentials{CAConfigMap: "ours/ca.crt"},
			HyperShift:  v1alpha1.HyperShift{GuestAccess: v1alpha1.AdminKubeconfig},
			Monitoring:  v1alpha1.Monitoring{Kind: v1alpha1.PodMonitor, Alerts: true},
			DriftCheck:  v1alpha1.DriftCheck{Schedule: "@daily"},
			Images:      v1alpha1.Images{Registry: "mirror.example/all", Resizer: v1alpha1.Image{Registry: "other.example", PullPolicy: "Never"}},
			Roles: v1alpha1.Roles{
				Controller: v1alpha1.RolePods{
					Affinity:                  nodesWith("storage"),
					TopologySpreadConstraints: []v1alpha1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule", LabelSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"app": "cinder-csi-controller"}}}},
					PodAnnotations:            map[string]string{"example.org/team": "1e3"},
					Env:                       map[string]string{"GODEBUG": "netdns=go"},
					UpdateStrategy:            v1alpha1.UpdateStrategy{Type: "Recreate"},
				},
				Node: v1alpha1.RolePods{
					Images:         v1alpha1.Images{Registry: "nodes.example", Driver: v1alpha1.Image{PullPolicy: "Always"}},
					Affinity:       nodesWith("disks"),
					PodAnnotations: map[string]string{"example.org/team": "storage"},
					Env:            map[string]string{"A": "$(B) yes"},
					UpdateStrategy: v1alpha1.UpdateStrategy{RollingUpdate: v1alpha1.RollingUpdate{MaxUnavailable: "3"}},
				},
			},
		},
		"services for metrics without snapshots": {
			Driver:     v1alpha1.Driver{Capacity: true},
			Monitoring: v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor},
			Snapshots:  v1alpha1.Snapshots{Enabled: &off},
			Roles: v1alpha1.Roles{
				Controller: v1alpha1.RolePods{UpdateStrategy: v1alpha1.UpdateStrategy{RollingUpdate: v1alpha1.RollingUpdate{MaxUnavailable: "0", MaxSurge: "25%"}}},
				Node:       v1alpha1.RolePods{UpdateStrategy: v1alpha1.UpdateStrategy{Type: "OnDelete"}},
			},
		},
		"everything": {
			Monitoring: v1alpha1.Monitoring{
				Kind: v1alpha1.ServiceMonitor, Alerts: true, Dashboards: true, NodePorts: "9701", RunbookBase: "https://git.example.com/cinder-csi/blob/v1",
				Labels: map[string]string{"release": "prometheus", "example.org/team": "1e3"},
			},
			DriftCheck: v1alpha1.DriftCheck{Schedule: "0 6 * * *"},
			Snapshots: v1alpha1.Snapshots{Backup: v1alpha1.Enabled, Classes: map[string]v1alpha1.SnapshotClass{
				"weekly": {DeletionPolicy: "Retain", Default: true, Parameters: map[string]string{"type": "backup"}, Annotations: map[string]string{"example.org/owner": "storage: team"}},
				"plain":  {},
			}},
			AttributesClasses: map[string]v1alpha1.AttributesClass{"gold": {Type: "t2", Policy: "on-demand", Metadata: map[string]string{"tier": "gold"}}},
			NodePools: []v1alpha1.NodePool{
				{Name: "gpu", NodeSelector: map[string]string{"pool": "gpu"}, Tolerations: []v1alpha1.Toleration{}, VolumeAttachLimit: &limit, KubeletDir: "/var/lib/k0s/kubelet"},
			},
			KubernetesVersion: "1.34",
			Namespaces:        v1alpha1.Namespaces{Controller: "storage", Node: "storage-node"},
			ClusterID:         "prod: \"one\" <&>",
			Driver:            v1alpha1.Driver{Name: "cinder.example.org", LogLevel: &level, PVCAnnotations: &off},
			Credentials:       v1alpha1.Credentials{SecretName: "cloud", Key: "other.yaml", Cloud: "prod", CABundle: ca},
			VolumeAttachLimit: "20",
			NetworkPolicy:     v1alpha1.NetworkPolicy{Enabled: true, OpenStackCIDRs: []string{"192.0.2.0/24", "2001:db8::/32"}, APIServerCIDRs: []string{"198.51.100.0/24"}, MetricsNamespaces: []string{"monitoring", "1e3"}},
			StorageClasses: v1alpha1.StorageClasses{
				NamePrefix: "os-",
				Overrides: map[string]v1alpha1.ClassOverride{"standard": {
					ReclaimPolicy: "Retain", FSType: "xfs", MountOptions: []string{"noatime", "discard"},
					Annotations: map[string]string{"example.org/owner": "storage: team"}, Parameters: map[string]string{"availability": "az2"},
				}},
				Extra: []v1alpha1.ExtraClass{{Type: "t2", ClassOverride: v1alpha1.ClassOverride{Name: "twin"}}},
			},
			Images: v1alpha1.Images{
				Driver:        v1alpha1.Image{Registry: "registry.example:5000", Tag: "v9"},
				LivenessProbe: v1alpha1.Image{Digest: "sha256:" + strings.Repeat("ab", 32)},
				Generator:     v1alpha1.Image{Registry: "registry.example:5000", PullPolicy: "Always"},
			},
			Roles: v1alpha1.Roles{
				Controller: v1alpha1.RolePods{
					Images:           v1alpha1.Images{Attacher: v1alpha1.Image{Repository: "mirror/attacher"}},
					Proxy:            v1alpha1.Proxy{HTTP: "http://proxy.example:3128", HTTPS: "http://proxy.example:3128", NoProxy: "10.0.0.0/8,.svc"},
					NodeSelector:     map[string]string{"role": "storage", "zone": "1"},
					Tolerations:      []v1alpha1.Toleration{{Key: "storage", Operator: "Equal", Value: "yes", Effect: "NoExecute", TolerationSeconds: &seconds}},
					PodLabels:        map[string]string{"team": "storage"},
					ImagePullSecrets: []string{"pull-a", "pull-b"},
					RunAsUser:        &user,
					Replicas:         &replicas,
					Resources: map[string]v1alpha1.Resources{
						"driver":      {Requests: map[string]string{"cpu": "100m"}, Limits: map[string]string{"memory": "1Gi"}},
						"snapshotter": {Limits: map[string]string{"memory": "500Mi"}},
					},
				},
				Node: v1alpha1.RolePods{
					Proxy:            v1alpha1.Proxy{NoProxy: "169.254.169.254"},
					NodeSelector:     map[string]string{"kubernetes.io/os": "linux", "storage": "true"},
					Tolerations:      []v1alpha1.Toleration{},
					PodLabels:        map[string]string{"team": "storage"},
					ImagePullSecrets: []string{"pull-c"},
					Resources:        map[string]v1alpha1.Resources{"registrar": {Requests: map[string]string{"memory": "32Mi"}}},
				},
			},
		},
	}
}

// nodesWith is an affinity to nodes with a label.
func nodesWith(label string) *v1alpha1.Affinity {
	return &v1alpha1.Affinity{NodeAffinity: &v1alpha1.NodeAffinity{Required: &v1alpha1.NodeSelector{
		NodeSelectorTerms: []v1alpha1.NodeSelectorTerm{{MatchExpressions: []v1alpha1.NodeRequirement{{Key: label, Operator: "In", Values: []string{"true", "1"}}}}},
	}}}
}

// forTarget replaces values of specs that OpenShift refuses.
func forTarget(spec v1alpha1.Spec, target v1alpha1.Target) v1alpha1.Spec {
	if n := &spec.Namespaces; target != v1alpha1.Vanilla && n.Node == "kube-system" {
		n.Controller, n.Node = "openshift-storage", "openshift-storage"
	}
	if target == v1alpha1.Standalone {
		spec.Roles.Controller.RunAsUser = nil
	}
	return spec
}

// decide plans for a target.
func decide(t *testing.T, spec v1alpha1.Spec, inv v1alpha1.Inventory, target v1alpha1.Target) plan.Result {
	t.Helper()
	spec = forTarget(spec, target)
	r, err := plan.Decide(inv, v1alpha1.Distribution{Metadata: v1alpha1.Metadata{Name: "prod"}, Spec: spec}, target, v1alpha1.Kustomize, "v0.0.0-test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// render renders a bundle, for all tests with the same decisions once. The tree is a copy.
func render(t *testing.T, r plan.Result, format v1alpha1.Format) bundle.Tree {
	t.Helper()
	r.Format = format
	kept, _ := trees.LoadOrStore(contentOf(r), sync.OnceValues(func() (bundle.Tree, error) { return bundle.Render(r, verify.Chart, bundle.Options{}) }))
	tree, err := kept.(func() (bundle.Tree, error))()
	if err != nil {
		t.Fatal(err)
	}
	copied := bundle.Tree{}
	for name, text := range tree {
		copied[name] = slices.Clone(text)
	}
	return copied
}

// uncommented is the chart for bundles whose patches do without comments. The chart renders single templates to find what decided an operation. That
// takes half the time of a rendering, and kustomize drops comments.
func uncommented(values map[string]any, strict bool, only ...string) (map[string]string, error) {
	if len(only) > 0 {
		return nil, errors.New("no comments")
	}
	return verify.Chart(values, strict)
}

// built is what becomes of the decisions of a test.
type built struct {
	objects  []verify.Object
	findings []verify.Finding
	err      error
}

// Functions that return what becomes of decisions, by the hash of these.
var trees, builds sync.Map

// build renders, builds and checks a bundle, for all tests with the same decisions once. The objects are copies. Comments change none of them, which
// TestAPlanHoldsAllThatItsBundleIsMadeOf proves.
func build(t *testing.T, r plan.Result, format v1alpha1.Format) []verify.Object {
	t.Helper()
	r.Format = format
	kept, _ := builds.LoadOrStore(contentOf(r), sync.OnceValue(func() built { return buildNew(r, uncommented) }))
	b := kept.(func() built)()
	b.objects = slices.Clone(b.objects)
	for i, o := range b.objects {
		b.objects[i].Fields = runtime.DeepCopyJSON(o.Fields)
	}
	return b.check(t, format)
}

// buildAlone is build for decisions that no other test has.
func buildAlone(t *testing.T, r plan.Result, format v1alpha1.Format, chart bundle.Chart) []verify.Object {
	t.Helper()
	r.Format = format
	return buildNew(r, chart).check(t, format)
}

func buildNew(r plan.Result, chart bundle.Chart) (b built) {
	tree, err := bundle.Render(r, chart, bundle.Options{})
	if err != nil {
		return built{err: err}
	}
	b.objects, b.findings, b.err = verify.Bundle(tree, r.Target, r.Format)
	return b
}

func (b built) check(t *testing.T, format v1alpha1.Format) []verify.Object {
	t.Helper()
	if b.err != nil {
		t.Fatal(b.err)
	}
	for _, f := range b.findings {
		t.Errorf("%s: %s", format, f)
	}
	return b.objects
}

// contentOf is the hash of decisions.
func contentOf(r plan.Result) string {
	hash := sha256.New()
	writeContent(hash, reflect.ValueOf(r))
	return string(hash.Sum(nil))
}

// writeContent writes a value without the addresses of what it points to.
func writeContent(to io.Writer, v reflect.Value) {
	switch kind := v.Kind(); {
	case (kind == reflect.Pointer || kind == reflect.Interface || kind == reflect.Map || kind == reflect.Slice) && v.IsNil():
		fmt.Fprint(to, "nil;")
	case kind == reflect.Pointer:
		writeContent(to, v.Elem())
	case kind == reflect.Interface:
		fmt.Fprint(to, v.Elem().Type())
		writeContent(to, v.Elem())
	case kind == reflect.Struct:
		for i := range v.NumField() {
			writeContent(to, v.Field(i))
		}
	case kind == reflect.Map:
		fmt.Fprintf(to, "%d:", v.Len())
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }) {
			fmt.Fprintf(to, "%q;", key.String())
			writeContent(to, v.MapIndex(key))
		}
	case kind == reflect.Slice:
		fmt.Fprintf(to, "%d:", v.Len())
		for i := range v.Len() {
			writeContent(to, v.Index(i))
		}
	default:
		fmt.Fprintf(to, "%q;", fmt.Sprint(v))
	}
}
