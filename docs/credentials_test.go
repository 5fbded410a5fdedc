package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// Objects of programs that write Secrets, with the fields that a page uses.
type (
	externalSecret struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			RefreshInterval metav1.Duration             `json:"refreshInterval"`
			SecretStoreRef  struct{ Kind, Name string } `json:"secretStoreRef"`
			Data            []struct {
				SecretKey string                         `json:"secretKey"`
				RemoteRef struct{ Key, Property string } `json:"remoteRef"`
			} `json:"data"`
			Target struct {
				Name     string `json:"name"`
				Template struct {
					Data map[string]string `json:"data"`
				} `json:"template"`
			} `json:"target"`
		} `json:"spec"`
	}
	vaultStaticSecret struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			Mount, Type, Path string
			RefreshAfter      metav1.Duration `json:"refreshAfter"`
			Destination       struct {
				Name           string
				Create         bool
				Transformation struct {
					ExcludeRaw bool                             `json:"excludeRaw"`
					Templates  map[string]struct{ Text string } `json:"templates"`
				}
			}
		} `json:"spec"`
	}
)

// Each program fills its template with Go's text/template.
func TestTheStoresOfThePageWriteWhatTheDriverReads(t *testing.T) {
	values := map[string]any{"id": "0123456789abcdef0123456789abcdef", "secret": "a-b_c"} // Keystone makes secrets of letters, digits, hyphens and underscores
	seen := 0
	for _, document := range yamlDocuments(testfile.Text(t, "how-to/credentials-from-a-store.md")) {
		var text, name, namespace string
		var given map[string]any
		switch {
		case strings.Contains(document, "\nkind: ExternalSecret\n"):
			var o externalSecret
			if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			text, name, namespace, given = o.Spec.Target.Template.Data["clouds.yaml"], o.Spec.Target.Name, o.Namespace, map[string]any{}
			for _, d := range o.Spec.Data {
				given[d.SecretKey] = values[d.RemoteRef.Property]
			}
		case strings.Contains(document, "\nkind: VaultStaticSecret\n"):
			var o vaultStaticSecret
			if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			text, name, namespace = o.Spec.Destination.Transformation.Templates["clouds.yaml"].Text, o.Spec.Destination.Name, o.Namespace
			given = map[string]any{"Secrets": values}
		default:
			continue
		}
		seen++
		file := filepath.Join(t.TempDir(), "clouds.yaml")
		var b strings.Builder
		filled, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{"get": func(of map[string]any, key string) any { return of[key] }}).Parse(text)
		if err == nil {
			err = filled.Execute(&b, given)
		}
		if err == nil {
			err = os.WriteFile(file, []byte(b.String()), 0o600)
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		got, err := cloud.FromSource(cloud.Source{CloudName: "openstack", CloudsFile: file, Env: func(string) string { return "" }})
		if err != nil || got.ApplicationCredentialID != values["id"] || string(got.ApplicationCredentialSecret) != values["secret"] || got.Region != "RegionOne" {
			t.Errorf("want the credential of the store, got %v from\n%s", err, b.String())
		}
		if name != "cinder-csi-credentials" || namespace != "cinder-csi" {
			t.Errorf("want the Secret that the driver mounts, got %s/%s", namespace, name)
		}
	}
	if seen != 2 {
		t.Errorf("want two programs, saw %d", seen)
	}
}
