package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// oddTexts are what a person may write where a name, a path, a quantity or a sentence is wanted.
var oddTexts = []string{
	"", " ", "a b", " a", "a ", "1", "123", "1e3", "0x1f", "1.5", "null", "~", "true", "yes", "2026-01-02", "<<", "=", "a: b", "#a", "a #b", "'", `"`, `\`, "{a", "[a]", "*a",
	"&a", "!a", "|", ">", "%a", "@a", "-", "- a", "?", "a,b", "a=b", "a;b", "a/b", "/a", "a//b", "..", ".a", "a.", "A", "A/B", "é", "日本", "a\nb", "\ta", "a\r\nb",
	"\u0085", "\u2028", "\ufeffa", "\x7f", "\x01", "$", "${A}", "$(A)", "$$(A)", "{{ .Values.a }}", "{{", "<a&b>", "-----BEGIN RSA PRIVATE KEY-----",
	"registry.example", "registry.example:5000", "registry.example:5000/a", "localhost", "sha256:1", "http://a", "http://a:0", "http://a:99999", "http://$(A)/",
	"100m", "-1", "1Ki", "99999999999999999999", "Exists", "Equal", "NoExecute", "NoSchedule", "app", "cpu", "hugepages-2Mi", "example.com/a", "kubernetes.io/a", "192.0.2.0/24",
	"kube-system", "default", "openshift-x", "storageclass.kubernetes.io/is-default-class", "helm.sh/resource-policy",
	strings.Repeat("a", 64), strings.Repeat("a", 254),
}

// oddKeys put a text into one key of a configuration each.
var oddKeys = map[string]func(s *v1alpha1.Spec, text string){
	"clusterID":              func(s *v1alpha1.Spec, x string) { s.ClusterID = x },
	"namespaces.controller":  func(s *v1alpha1.Spec, x string) { s.Namespaces.Controller = x },
	"namespaces.node":        func(s *v1alpha1.Spec, x string) { s.Namespaces.Node = x },
	"driver.name":            func(s *v1alpha1.Spec, x string) { s.Driver.Name = x },
	"credentials.secretName": func(s *v1alpha1.Spec, x string) { s.Credentials.SecretName = x },
	"credentials.key":        func(s *v1alpha1.Spec, x string) { s.Credentials.Key = x },
	"credentials.cloud":      func(s *v1alpha1.Spec, x string) { s.Credentials.Cloud = x },
	"credentials.caBundle":   func(s *v1alpha1.Spec, x string) { s.Credentials.CABundle = x },
	"topology.zoneMap's keys": func(s *v1alpha1.Spec, x string) {
		s.Topology = v1alpha1.Topology{Mode: "enabled", ZoneMap: with(s.Topology.ZoneMap, x, "az2")}
	},
	"topology.zoneMap": func(s *v1alpha1.Spec, x string) {
		s.Topology = v1alpha1.Topology{Mode: "enabled", ZoneMap: with(s.Topology.ZoneMap, "az2", x)}
	},
	"storageClasses.namePrefix":       func(s *v1alpha1.Spec, x string) { s.StorageClasses.NamePrefix = x },
	"storageClasses.include":          func(s *v1alpha1.Spec, x string) { s.StorageClasses.Include = []string{x} },
	"overrides.name":                  override(func(o *v1alpha1.ClassOverride, x string) { o.Name = x }),
	"overrides.fsType":                override(func(o *v1alpha1.ClassOverride, x string) { o.FSType = x }),
	"overrides.mountOptions":          override(func(o *v1alpha1.ClassOverride, x string) { o.MountOptions = []string{x} }),
	"overrides.parameters":            override(func(o *v1alpha1.ClassOverride, x string) { o.Parameters = with(o.Parameters, "availability", x) }),
	"overrides.annotations":           override(func(o *v1alpha1.ClassOverride, x string) { o.Annotations = with(o.Annotations, "a", x) }),
	"overrides.annotations' keys":     override(func(o *v1alpha1.ClassOverride, x string) { o.Annotations = with(o.Annotations, x, "true") }),
	"volumeAttachLimit":               func(s *v1alpha1.Spec, x string) { s.VolumeAttachLimit = v1alpha1.IntOrAuto(x) },
	"networkPolicy.openstackCIDRs":    func(s *v1alpha1.Spec, x string) { s.NetworkPolicy.OpenStackCIDRs = []string{x} },
	"networkPolicy.apiServerCIDRs":    func(s *v1alpha1.Spec, x string) { s.NetworkPolicy.APIServerCIDRs = []string{x} },
	"networkPolicy.metricsNamespaces": func(s *v1alpha1.Spec, x string) { s.NetworkPolicy.MetricsNamespaces = []string{x} },
	"images.registry":                 image(func(i *v1alpha1.Image, x string) { i.Registry = x }),
	"images.repository":               image(func(i *v1alpha1.Image, x string) { i.Repository = x }),
	"images.tag":                      image(func(i *v1alpha1.Image, x string) { i.Tag = x }),
	"images.digest":                   image(func(i *v1alpha1.Image, x string) { i.Digest = x }),
	"hypershift.kubeconfigSecret":     func(s *v1alpha1.Spec, x string) { s.HyperShift.KubeconfigSecret = x },
	"hypershift.infraID":              func(s *v1alpha1.Spec, x string) { s.HyperShift.InfraID = x },
	"roles.proxy.http":                bothRoles(func(p *v1alpha1.RolePods, x string) { p.Proxy.HTTP = x }),
	"roles.proxy.noProxy":             bothRoles(func(p *v1alpha1.RolePods, x string) { p.Proxy.NoProxy = x }),
	"roles.nodeSelector":              bothRoles(func(p *v1alpha1.RolePods, x string) { p.NodeSelector = with(p.NodeSelector, "a", x) }),
	"roles.nodeSelector's keys":       bothRoles(func(p *v1alpha1.RolePods, x string) { p.NodeSelector = with(p.NodeSelector, x, "a") }),
	"roles.podLabels":                 bothRoles(func(p *v1alpha1.RolePods, x string) { p.PodLabels = with(p.PodLabels, "a", x) }),
	"roles.podLabels' keys":           bothRoles(func(p *v1alpha1.RolePods, x string) { p.PodLabels = with(p.PodLabels, x, "a") }),
	"roles.imagePullSecrets":          bothRoles(func(p *v1alpha1.RolePods, x string) { p.ImagePullSecrets = append(slices.Clone(p.ImagePullSecrets), x) }),
	"roles.tolerations.key":           toleration(func(t *v1alpha1.Toleration, x string) { t.Key = x }),
	"roles.tolerations.operator":      toleration(func(t *v1alpha1.Toleration, x string) { t.Operator = x }),
	"roles.tolerations.value":         toleration(func(t *v1alpha1.Toleration, x string) { t.Value = x }),
	"roles.tolerations.effect":        toleration(func(t *v1alpha1.Toleration, x string) { t.Effect = x }),
	"roles.resources.requests":        resources(func(r *v1alpha1.Resources, x string) { r.Requests = with(r.Requests, "cpu", x) }),
	"roles.resources.limits":          resources(func(r *v1alpha1.Resources, x string) { r.Limits = with(r.Limits, "memory", x) }),
	"roles.resources' keys": resources(func(r *v1alpha1.Resources, x string) {
		r.Requests = with(r.Requests, x, "1")
		r.Limits = with(r.Limits, x, "1")
	}),
}

func override(set func(*v1alpha1.ClassOverride, string)) func(*v1alpha1.Spec, string) {
	return func(s *v1alpha1.Spec, text string) {
		o := s.StorageClasses.Overrides["t1"]
		set(&o, text)
		s.StorageClasses.Overrides = with(s.StorageClasses.Overrides, "t1", o)
	}
}

func image(set func(*v1alpha1.Image, string)) func(*v1alpha1.Spec, string) {
	return func(s *v1alpha1.Spec, text string) { set(&s.Images.Driver, text) }
}

func bothRoles(set func(*v1alpha1.RolePods, string)) func(*v1alpha1.Spec, string) {
	return func(s *v1alpha1.Spec, text string) {
		set(&s.Roles.Controller, text)
		set(&s.Roles.Node, text)
	}
}

func toleration(set func(*v1alpha1.Toleration, string)) func(*v1alpha1.Spec, string) {
	return bothRoles(func(p *v1alpha1.RolePods, text string) {
		t := v1alpha1.Toleration{Key: "key"}
		set(&t, text)
		p.Tolerations = append(slices.Clone(p.Tolerations), t)
	})
}

func resources(set func(*v1alpha1.Resources, string)) func(*v1alpha1.Spec, string) {
	return bothRoles(func(p *v1alpha1.RolePods, text string) {
		r := p.Resources["driver"]
		set(&r, text)
		p.Resources = with(p.Resources, "driver", r)
	})
}

// with is a copy of a map with one more entry.
func with[T any](m map[string]T, key string, value T) map[string]T {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]T{}
	}
	m[key] = value
	return m
}

// TestWhatIsAcceptedStandsVerification: the generator refuses a configuration that cannot work before it renders anything. It never
// writes a bundle that does not build, or that the driver or the API server would refuse. Each round puts another text into each
// key and keeps what is accepted. There are as many rounds as texts, so every key gets every text.
func TestWhatIsAcceptedStandsVerification(t *testing.T) {
	inv := inventory("az 1", "az2")
	keys := slices.Sorted(maps.Keys(oddKeys))
	for round := range oddTexts {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			target := targets[round%len(targets)]
			spec := v1alpha1.Spec{KubernetesVersion: "1.35", NetworkPolicy: v1alpha1.NetworkPolicy{Enabled: true}}
			var config []string
			for i, key := range keys {
				text := oddTexts[(round+i)%len(oddTexts)]
				more := spec
				oddKeys[key](&more, text)
				if accepted(t, inv, more, target) {
					spec, config = more, append(config, fmt.Sprintf("%s: %q", key, text))
				}
			}
			r := decide(t, spec, inv, target)
			helm := build(t, r, v1alpha1.Helm)
			if round%kustomizeEvery == 0 {
				for _, difference := range differences(build(t, r, v1alpha1.Kustomize), helm) {
					t.Error(difference)
				}
			}
			if t.Failed() {
				t.Logf("%s:\n%s", target, strings.Join(config, "\n"))
			}
		})
	}
}

// kustomizeEvery thins out what takes a second each: that both formats stand for the same is another test's promise.
const kustomizeEvery = 6

func accepted(t *testing.T, inv v1alpha1.Inventory, spec v1alpha1.Spec, target v1alpha1.Target) bool {
	t.Helper()
	_, err := plan.Decide(inv, v1alpha1.Distribution{Metadata: v1alpha1.Metadata{Name: "prod"}, Spec: spec}, target, v1alpha1.Helm, "v0.0.0-test")
	if refused := (*plan.ConfigError)(nil); err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if err != nil && strings.Contains(err.Error(), "BEGIN RSA") {
		t.Errorf("a key is repeated: %v", err)
	}
	return err == nil
}

func TestAnnotationsOfAClassThatAreTheGeneratorsOwnAreRefused(t *testing.T) {
	seen := 0
	for _, o := range build(t, decide(t, v1alpha1.Spec{}, inventory("nova"), v1alpha1.Vanilla), v1alpha1.Helm) {
		if o.Kind() != "StorageClass" {
			continue
		}
		metadata, _ := o.Fields["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		for key := range annotations {
			seen++
			var spec v1alpha1.Spec
			override(func(o *v1alpha1.ClassOverride, text string) { o.Annotations = map[string]string{key: text} })(&spec, "x")
			if accepted(t, inventory("nova"), spec, v1alpha1.Vanilla) {
				t.Errorf("annotation %s is emitted, and yet a person may set it", key)
			}
		}
	}
	if seen < 3 {
		t.Errorf("want the default class's mark and two guards, saw %d annotations", seen)
	}
}

// TestALimitMayBeWhatAContainerAsksForAndNoLess: the requests that plan knows are those of manifests/.
func TestALimitMayBeWhatAContainerAsksForAndNoLess(t *testing.T) {
	seen := 0
	for _, o := range build(t, decide(t, v1alpha1.Spec{}, inventory("nova"), v1alpha1.Vanilla), v1alpha1.Kustomize) {
		plane, isPod := map[string]string{"Deployment": "controller", "DaemonSet": "node"}[o.Kind()]
		if !isPod {
			continue
		}
		text, _ := json.Marshal(o.Fields["spec"])
		var workload struct {
			Template struct{ Spec corev1.PodSpec }
		}
		if err := json.Unmarshal(text, &workload); err != nil {
			t.Fatal(err)
		}
		for _, c := range workload.Template.Spec.Containers {
			for name, request := range c.Resources.Requests {
				seen++
				less := request.DeepCopy()
				less.Sub(resource.MustParse("1m"))
				for limit, want := range map[string]bool{request.String(): true, less.String(): false} {
					p := v1alpha1.RolePods{Resources: map[string]v1alpha1.Resources{c.Name: {Limits: map[string]string{string(name): limit}}}}
					spec := v1alpha1.Spec{Roles: v1alpha1.Roles{Controller: p}}
					if plane == "node" {
						spec = v1alpha1.Spec{Roles: v1alpha1.Roles{Node: p}}
					}
					if got := accepted(t, inventory("nova"), spec, v1alpha1.Vanilla); got != want {
						t.Errorf("%s, %s: the container asks for %s of %s; limit %s: want accepted %t, got %t", plane, c.Name, request.String(), name, limit, want, got)
					}
				}
			}
		}
	}
	if seen != 18 {
		t.Errorf("want two requests of each of nine containers, saw %d", seen)
	}
}
