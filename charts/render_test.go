package charts_test

import (
	"bytes"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// Rendering makes much garbage and keeps little: with the runtime's 100, a third of the processor time goes into collecting it.
func init() { debug.SetGCPercent(400) }

// anyRelease is a release whose name and namespace no object may have.
var anyRelease = chartutil.ReleaseOptions{Name: "any-name", Namespace: "any-namespace", Revision: 1, IsInstall: true}

// ownImages are the registries that the chart cannot know. Every test has them, but those of the refusal.
const ownImages = "images: {controller: {driver: {registry: registry.example}}, node: {driver: {registry: registry.example}}, driftcheck: {generator: {registry: registry.example}}}"

// render gives the files that the chart writes with these values and ownImages, as `helm template` does, or the error of Helm.
func render(t *testing.T, values map[string]any) (map[string]string, error) {
	t.Helper()
	return renderFor(t, anyRelease, values, false)
}

func renderFor(t *testing.T, release chartutil.ReleaseOptions, values map[string]any, skipSchema bool) (map[string]string, error) {
	t.Helper()
	return renderOnly(t, release, chartutil.CoalesceTables(chartutil.CoalesceTables(map[string]any{}, values), parse(t, ownImages)), skipSchema)
}

// renderOnly takes the values as they are.
func renderOnly(t *testing.T, release chartutil.ReleaseOptions, values map[string]any, skipSchema bool) (map[string]string, error) {
	t.Helper()
	c := *ourChart() // a copy: Helm may change what it renders
	c.Metadata = new(*c.Metadata)
	all, err := chartutil.ToRenderValuesWithSchemaValidation(&c, values, release, chartutil.DefaultCapabilities, skipSchema)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(&c, all)
	if err != nil {
		return nil, err
	}
	byName := map[string]string{}
	for name, text := range files {
		byName[strings.TrimPrefix(name, c.Name()+"/")] = text
	}
	return byName, nil
}

// ourChart is the chart, and valuesSchema the schema of its values. Helm compiles the schema for each rendering, which takes as long as the
// templates.
var (
	ourChart = sync.OnceValue(func() *chart.Chart {
		c, err := loader.LoadDir("cinder-csi")
		if err != nil {
			panic(err)
		}
		return c
	})
	valuesSchema = sync.OnceValue(func() *jsonschema.Schema {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(ourChart().Schema))
		if err != nil {
			panic(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("file:///values.schema.json", document); err != nil {
			panic(err)
		}
		return compiler.MustCompile("file:///values.schema.json")
	})
)

// objects gives the objects that the chart writes, by kind and name. It checks the values against the schema as Helm does.
func objects(t *testing.T, values map[string]any) map[string]verify.Object {
	t.Helper()
	files, err := renderFor(t, anyRelease, values, true)
	if err != nil {
		t.Fatal(err)
	}
	given := chartutil.CoalesceTables(chartutil.CoalesceTables(map[string]any{}, values), parse(t, ownImages))
	all, err := chartutil.CoalesceValues(ourChart(), given)
	if err == nil {
		err = valuesSchema().Validate(all.AsMap())
	}
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]verify.Object{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		decoded, err := verify.Decode([]byte(files[file]), "")
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, files[file])
		}
		for _, o := range decoded {
			id := o.Kind() + "/" + o.Name()
			if _, twice := byID[id]; twice {
				t.Errorf("%s is in the output twice", id)
			}
			byID[id] = o
		}
	}
	return byID
}

// parse reads values that a test writes as YAML.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return values
}

// changed names the objects that differ, or that only one side has.
func changed(before, after map[string]verify.Object) []string {
	all := maps.Clone(before)
	maps.Copy(all, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(id string) bool {
		return reflect.DeepEqual(before[id], after[id])
	})
}
