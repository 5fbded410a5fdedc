package plan

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func TestADecisionWithoutAnIDEndsTheProgram(t *testing.T) {
	for name, v := range map[string]any{
		"no id":          &struct{ Driver Decision[string] }{},
		"no id, several": &struct{ Classes []Decision[StorageClass] }{},
		"no id, a role":  &struct{ Node Workload }{},
		"an id, no decision": &struct { //nolint:govet // the tag is what is tested
			Driver string `id:"driver.name"`
		}{},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: want a panic", name)
				}
			}()
			eachOf(reflect.ValueOf(v).Elem(), "", true, func(string, entry) {})
		}()
	}
}

func TestEveryIDIsThereOnce(t *testing.T) {
	var ids []string
	r := IDs
	r.each(false, func(id string, e entry) {
		if got := e.document().ID; got != id {
			t.Errorf("IDs has %q for %q", got, id)
		}
		ids = append(ids, id)
	})
	slices.Sort(ids)
	if len(ids) < 80 || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("want at least 80 ids, each once: %q", ids)
	}
}

func TestADocumentHoldsWhatWasDecided(t *testing.T) {
	was := decide(t, cloudOf("standard", "Fast SSD"), "spec: {attributesClasses: {gold: {type: standard}}, roles: {node: {images: {driver: {tag: v2}}}}, kubernetesVersion: '1.34'}", v1alpha1.Standalone)
	was.Notices = nil
	document := was.Document(nil)
	is, err := FromDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(document, is.Document(nil)); diff != "" {
		t.Errorf("the document of what was read from it (-was +is):\n%s", diff)
	}
	if is.StorageClasses[0].Value.Name == "" || is.AttributesClasses[0].Value.Name != "gold" || is.Node.Images["driver"].Value != was.Node.Images["driver"].Value {
		t.Errorf("want the names that are in ids, got %v, %v and %v", is.StorageClasses, is.AttributesClasses, is.Node.Images)
	}
}
