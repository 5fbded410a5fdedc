package charts_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the files that the tests compare with")

const schemaFile = "cinder-csi/values.schema.json"

// kubernetesTypes are the types of Kubernetes that values hold as they are.
var kubernetesTypes = []any{
	corev1.Affinity{},
	corev1.TopologySpreadConstraint{},
	corev1.PodDNSConfig{},
	corev1.HostAlias{},
	corev1.Container{},
	corev1.Volume{},
	corev1.VolumeMount{},
	corev1.EnvVar{},
	rbacv1.PolicyRule{},
	appsv1.DeploymentStrategy{},
	appsv1.DaemonSetUpdateStrategy{},
}

// definitions describes Go types of Kubernetes as JSON schema. An unknown key is refused at every level.
type definitions map[string]any

func (d definitions) of(t reflect.Type) map[string]any {
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		return map[string]any{"type": []string{"integer", "string"}}
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": []string{"number", "string"}}
	case reflect.TypeFor[metav1.Time]():
		return map[string]any{"type": "string"}
	case reflect.TypeFor[metav1.FieldsV1]():
		return map[string]any{"type": "object"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.of(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": d.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.of(t.Elem())}
	case reflect.Struct:
		name := "k8s." + t.Name()
		if _, known := d[name]; !known {
			d[name] = nil // a type may contain itself
			d[name] = d.object(t)
		}
		return map[string]any{"$ref": "#/definitions/" + name}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	panic("no schema for " + t.String())
}

func (d definitions) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for f := range d.fields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		properties[name] = d.of(f.Type)
		if !strings.Contains(options, "omit") && f.Type.Kind() != reflect.Pointer {
			required = append(required, name)
		}
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		schema["required"] = required
	}
	return schema
}

// fields yields the fields of a struct, and those of the structs that it embeds.
func (d definitions) fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == "" || name == "-" {
				continue
			}
			if !yield(f) {
				return
			}
		}
	}
}

// kubernetes are the definitions of Kubernetes types, in the order of their names.
func kubernetes() object {
	d := definitions{}
	for _, value := range kubernetesTypes {
		d.of(reflect.TypeOf(value))
	}
	var all object
	for _, name := range slices.Sorted(maps.Keys(d)) {
		all = append(all, field{name, d[name]})
	}
	return all
}

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	text := testfile.Read(t, schemaFile)
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// openObjects are the objects of the schema whose keys the chart does not know. They are complete Kubernetes objects, and a field that
// only the API server writes.
var openObjects = []string{
	"/properties/extraObjects/items", "/properties/extraObjects/items/properties/metadata", "/definitions/k8s.ManagedFieldsEntry/properties/fieldsV1",
}

func TestSchemaRefusesUnknownKeysAtEveryLevel(t *testing.T) {
	var objects int
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch n := node.(type) {
		case map[string]any:
			if n["type"] == "object" {
				objects++
				if _, closed := n["additionalProperties"]; !closed && !slices.Contains(openObjects, path) {
					t.Errorf("%s accepts any key", path)
				}
			}
			for key, child := range n {
				walk(path+"/"+key, child)
			}
		case []any:
			for i, child := range n {
				walk(fmt.Sprintf("%s/%d", path, i), child)
			}
		}
	}
	walk("", readSchema(t))
	if objects < 50 {
		t.Errorf("want at least 50 objects in the schema, found %d", objects)
	}
}
