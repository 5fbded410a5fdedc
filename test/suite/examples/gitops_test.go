//go:build crds

package examples

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// sources are the modules whose archives hold the definitions of custom resources, and the files there. Nothing of them is built.
var sources = map[string][]string{
	"github.com/argoproj/argo-cd/v3@v3.5.7":         {"manifests/crds/application-crd.yaml", "manifests/crds/applicationset-crd.yaml"},
	"github.com/fluxcd/source-controller@v1.9.6":    {"config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml"},
	"github.com/fluxcd/kustomize-controller@v1.9.6": {"config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
}

// definition is what a CustomResourceDefinition says about the form of its objects.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct{ OpenAPIV3Schema map[string]any }
		}
	}
}

// schemas gives the schema of each kind, by apiVersion and kind.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	all := map[string]*jsonschema.Schema{}
	for module, files := range sources {
		out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module).Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", module, err, out)
		}
		var downloaded struct{ Dir string }
		if err := json.Unmarshal(out, &downloaded); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			var d definition
			if err := yaml.Unmarshal(read(t, filepath.Join(downloaded.Dir, file)), &d); err != nil {
				t.Fatal(err)
			}
			for _, version := range d.Spec.Versions {
				all[d.Spec.Group+"/"+version.Name+" "+d.Spec.Names.Kind] = compile(t, version.Schema.OpenAPIV3Schema)
			}
		}
	}
	return all
}

// compile makes a schema strict: the API server drops unknown fields silently, and here they are errors.
func compile(t *testing.T, schema map[string]any) *jsonschema.Schema {
	t.Helper()
	strict(schema)
	schema["properties"].(map[string]any)["metadata"] = map[string]any{"type": "object"}
	content, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("crd.json", value); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("crd.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func strict(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		_, fields := s["properties"].(map[string]any)
		if s["x-kubernetes-preserve-unknown-fields"] != true && fields && s["type"] == "object" && s["additionalProperties"] == nil {
			s["additionalProperties"] = false
		}
		if s["x-kubernetes-int-or-string"] == true {
			delete(s, "type")
		}
		for _, inner := range s {
			strict(inner)
		}
	case []any:
		for _, inner := range s {
			strict(inner)
		}
	}
}

func TestArgoCDAndFluxTakeTheExamples(t *testing.T) {
	known := schemas(t)
	validate := func(text string) (string, error) {
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(text), &head); err != nil {
			return "", err
		}
		kind := head.APIVersion + " " + head.Kind
		schema := known[kind]
		if schema == nil {
			t.Fatalf("no definition of %s", kind)
		}
		return kind, schema.Validate(document(t, []byte(text)))
	}
	checked := 0
	for _, file := range []string{"argocd/application.yaml", "argocd/applicationset.yaml", "argocd/hypershift.yaml", "flux/cinder-csi.yaml"} {
		for _, text := range strings.Split(string(read(t, root+"gitops/"+file)), "\n---\n") {
			checked++
			kind, err := validate(text)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if _, err := validate(strings.Replace(text, "\nspec:\n", "\nspec:\n  typing: error\n", 1)); err == nil {
				t.Errorf("%s: want an unknown field of a %s to be found", file, kind)
			}
		}
	}
	if checked != 6 {
		t.Errorf("want six objects, got %d", checked)
	}
}
