package v1alpha1

import (
	"reflect"
	"strings"
	"testing"
)

func TestEveryKeyOfADistributionIsDescribed(t *testing.T) {
	described := map[string]bool{}
	describedBelow(t, "", reflect.TypeFor[Distribution](), described)
	for key := range abouts {
		if !described[key] {
			t.Errorf("%s is described and is no key of a Distribution", key)
		}
	}
	schema, err := Schema(KindDistribution)
	if err != nil {
		t.Fatal(err)
	}
	withDescriptions(t, KindDistribution, schema)
}

// describedBelow holds each key to: a sentence of meaning; a default unless it only holds others; and a full stop where the schema
// puts one.
func describedBelow(t *testing.T, path string, typ reflect.Type, described map[string]bool) {
	t.Helper()
	for _, f := range reflect.VisibleFields(typ) {
		name := jsonKey(f)
		if name == "" {
			continue
		}
		key := owner(typ, f) + "." + name
		described[key] = true
		a := abouts[key]
		if !strings.HasSuffix(a.Meaning, ".") || strings.HasSuffix(a.Default, ".") || strings.HasSuffix(a.Refused, ".") {
			t.Errorf("%s.%s (%s): want a sentence of meaning, default and refusals without a full stop, got %+v", path, name, key, a)
		}
		inner, _ := element(f.Type)
		if holder := inner == f.Type && inner.Kind() == reflect.Struct; holder != (a.Default == "") {
			t.Errorf("%s.%s (%s): want a default unless it only holds other keys, got %q", path, name, key, a.Default)
		}
		if inner.Kind() == reflect.Struct {
			describedBelow(t, path+"."+name, inner, described)
		}
	}
}

func withDescriptions(t *testing.T, path string, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for name, value := range properties {
		s := value.(map[string]any)
		if s["description"] == nil {
			t.Errorf("%s.%s: the schema does not describe it", path, name)
		}
		withDescriptions(t, path+"."+name, s)
		for _, inner := range []string{"items", "additionalProperties"} {
			if element, ok := s[inner].(map[string]any); ok {
				withDescriptions(t, path+"."+name+"."+inner, element)
			}
		}
	}
}

func TestDefaultsAreDescribedAsTheyAre(t *testing.T) {
	s := Distribution{}.WithDefaults()
	for key, want := range map[string]string{
		"Spec.kubernetesVersion":      s.KubernetesVersion,
		"OpenShift.coexistence":       s.OpenShift.Coexistence,
		"Credentials.key":             s.Credentials.Key,
		"Credentials.cloud":           s.Credentials.Cloud,
		"Topology.mode":               s.Topology.Mode,
		"StorageClasses.include":      `["` + strings.Join(s.StorageClasses.Include, `", "`) + `"]`,
		"StorageClasses.default":      s.StorageClasses.Default,
		"Spec.volumeAttachLimit":      string(s.VolumeAttachLimit),
		"Monitoring.kind":             s.Monitoring.Kind,
		"HyperShift.kubeconfigSecret": s.HyperShift.KubeconfigSecret,
	} {
		if got := abouts[key].Default; got != want && !strings.HasPrefix(got, want+";") {
			t.Errorf("%s: want default %s, got %s", key, want, got)
		}
	}
	if abouts["Driver.logLevel"].Default != "2" || *s.Driver.LogLevel != 2 || abouts["Snapshots.enabled"].Default != "true" || !*s.Snapshots.Enabled {
		t.Error("want the defaults of driver.logLevel and snapshots.enabled as they are")
	}
}

func TestKeysAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if seen[k.Path] || k.Meaning == "" || k.Type == "" {
			t.Errorf("want each key once, with type and meaning, got %+v", k)
		}
		seen[k.Path] = true
	}
	for _, want := range []string{"apiVersion", "metadata.name", "spec.images.*.tag", "spec.storageClasses.extra[].name", "spec.planes.controller.tolerations[].key", "spec.planes.node"} {
		if !seen[want] {
			t.Errorf("want %s among the keys", want)
		}
	}
	if seen["spec.planes.node.replicas"] {
		t.Error("want what controller and node share listed for the controller alone")
	}
}
