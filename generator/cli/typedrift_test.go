package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

const typedHead = `apiVersion: generator.cinder-csi.io/v1alpha1
kind: Distribution
metadata: {name: depot}
spec:
  kubernetesVersion: "1.34"
  clusterID: depot
  images: {driver: {registry: registry.example.com, repository: cinder-csi/cinder-csi-driver, tag: v0.1.0}}
`

// recorded is a recorded inventory as text.
func recorded(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../examples/inventories/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// changed writes a bundle of one inventory and gives the arguments that make it of another one.
func changed(t *testing.T, spec, before, after string) (b *bed, args []string) {
	t.Helper()
	if before == after {
		t.Fatal("the edit changes nothing")
	}
	b = newBed(t)
	dir := filepath.Join(b.dir, "out")
	args = []string{"generate", "--target", "vanilla", "--format", "helm", "--output-dir", dir, "--config", b.file(t, "d.yaml", typedHead+spec), "--inventory"}
	b.ok(t, append(args, b.file(t, "before.yaml", before))...)
	return b, append(args, b.file(t, "after.yaml", after))
}

const (
	standardID = "1367c823-ff47-4736-9d51-b5b26643a3a1" // of the type standard in one-zone.yaml
	anotherID  = "99999999-ff47-4736-9d51-b5b26643a3a1"
)

// typeEvents are what a cloud may do to the volume type standard.
var typeEvents = map[string]func(string) string{
	"swapped":   strings.NewReplacer("name: standard\n", "name: shared\n", "name: shared\n", "name: standard\n").Replace,
	"recreated": func(s string) string { return strings.ReplaceAll(s, standardID, anotherID) },
	"renamed":   strings.NewReplacer("name: standard\n", "name: bronze\n", "\n  value: standard\n", "\n  value: bronze\n").Replace,
}

// typeFields are the fields of a Distribution that name a volume type by ID or name, each with what a line about it says.
var typeFields = []struct{ field, spec, names string }{
	{"spec.storageClasses.default", "  storageClasses: {default: %s}\n", "default"},
	{"spec.storageClasses.overrides", "  storageClasses: {overrides: {%s: {reclaimPolicy: Retain}}}\n", "StorageClass standard"},
	{"spec.storageClasses.extra[].type", "  storageClasses: {include: [sealed], default: none, extra: [{name: gold, type: %s}]}\n", "StorageClass gold"},
	{"spec.storageClasses.extra[].parameters", "  storageClasses: {include: [sealed], default: none, extra: [{name: gold, parameters: {type: %s}}]}\n", "StorageClass gold"},
	{"spec.attributesClasses.*.type", "  storageClasses: {include: [sealed], default: none}\n  attributesClasses: {quick: {type: %s}}\n", "VolumeAttributesClass quick"},
}

// An event at the cloud is drift with a line that names the field or its object, and never a mistake of the configuration. What generate refuses, the pin keeps.
func TestEachFieldWithAVolumeTypeFollowsTheType(t *testing.T) {
	before := recorded(t, "one-zone.yaml")
	for _, f := range typeFields {
		for _, named := range []string{"standard", standardID} {
			if testing.Short() && named == standardID && f.field != "spec.attributesClasses.*.type" {
				continue
			}
			for event, edit := range typeEvents {
				t.Run(f.field+" "+named+" "+event, func(t *testing.T) {
					b, args := changed(t, strings.ReplaceAll(f.spec, "%s", named), before, edit(before))
					stdout, stderr, code := b.run(t, append(args, "--check")...)
					if code != Different || !strings.Contains(stdout, f.names) {
						t.Fatalf("want exit %d and a line about %s, got %d:\n%s%s", Different, f.names, code, stdout, stderr)
					}
					if strings.Contains(stdout, `{"`) {
						t.Errorf("want no JSON in a line, got %s", stdout)
					}
					_, stderr, code = b.run(t, args...)
					if code == OK && f.field == "spec.attributesClasses.*.type" && named == "standard" {
						t.Error("generate writes a class that moves existing volumes to another type")
					}
					if code == OK {
						return
					}
					if code != Refused {
						t.Fatalf("generate: exit %d: %s", code, stderr)
					}
					config := b.file(t, "d.yaml", pinnedConfig(t, typedHead+strings.ReplaceAll(f.spec, "%s", named), stderr))
					if _, stderr, code := b.run(t, args...); code != OK && !lost(event, f.field, named) {
						content, _ := os.ReadFile(config)
						t.Errorf("with the pin: exit %d: %s\n%s", code, stderr, content)
					}
				})
			}
		}
	}
}

// lost is whether no configuration can keep what was: the type with this ID is gone, and nothing else means the same.
func lost(event, field, named string) bool {
	return event == "recreated" && (field == "spec.attributesClasses.*.type" || field == "spec.storageClasses.extra[].type" && named == standardID)
}

// pinnedConfig is a configuration as a person edits it after a refusal: without the keys to remove, and with the lines to add.
func pinnedConfig(t *testing.T, config, refusal string) string {
	t.Helper()
	if removed := regexp.MustCompile(`spec\.storageClasses\.extra\[0\]`); removed.MatchString(refusal) {
		config = regexp.MustCompile(`, extra: \[[^\]]*\]`).ReplaceAllString(config, "")
	}
	_, pin, found := strings.Cut(refusal, "add this to the configuration:\n")
	if !found {
		return config
	}
	var base, more map[string]any
	if err := errors.Join(yaml.Unmarshal([]byte(config), &base), yaml.Unmarshal([]byte(pin), &more)); err != nil {
		t.Fatalf("%v\n%s", err, pin)
	}
	text, err := v1alpha1.YAML(over(base, more))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// over is an object with another over it.
func over(base, more any) any {
	x, isObject := base.(map[string]any)
	y, bothObjects := more.(map[string]any)
	if !isObject || !bothObjects {
		return more
	}
	for key, value := range y {
		x[key] = over(x[key], value)
	}
	return x
}

// Each key that takes a volume type by ID or name has a row above.
func TestEachFieldWithAVolumeTypeHasARow(t *testing.T) {
	rows := map[string]bool{}
	for _, f := range typeFields {
		rows[f.field] = true
	}
	found := 0
	for _, key := range v1alpha1.Keys() {
		if text := strings.ToLower(key.Meaning); !strings.Contains(text, "type") || !strings.Contains(text, "id or name") {
			continue
		}
		if found++; !rows[key.Path] {
			t.Errorf("%s: %q has no row", key.Path, key.Meaning)
		}
	}
	if found < len(typeFields)-1 { // extra[].parameters has the words of the driver's parameters
		t.Errorf("found %d keys, want %d at least", found, len(typeFields)-1)
	}
}

// An edit of plan.yaml by hand makes generate refuse. A check refuses nothing: an event at the cloud stays drift beside the edit.
func TestAnEventAtTheCloudIsDriftBesideAnEditedPlan(t *testing.T) {
	inventory := recorded(t, "one-zone.yaml")
	b, args := changed(t, "  storageClasses: {default: standard}\n", inventory, typeEvents["renamed"](inventory))
	path := filepath.Join(b.dir, "out", "plan.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b.file(t, "out/plan.yaml", strings.Replace(string(text), "clusterID: depot", "clusterID: mine", 1))
	stdout, stderr, code := b.run(t, append(args, "--check")...)
	if code != Different || !strings.Contains(stdout, "plan.yaml was edited by hand") || !strings.Contains(stdout, "standard") {
		t.Errorf("want exit 2 with the edit and the type, got %d: %s%s", code, stdout, stderr)
	}
}
