package verify

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/cinder-csi/cinder-csi/charts"
)

const chartDir = "cinder-csi"

// ChartLabels are the labels that Helm's side may have that Kustomize's lacks.
var ChartLabels = []string{"helm.sh/chart", "app.kubernetes.io/managed-by"}

// helmTemplate is what `helm template` prints of this program's own chart with the plane's values, after the Namespace objects
// beside them.
func helmTemplate(tree map[string][]byte, p plane) ([]byte, error) {
	text, ok := tree[path.Join(p.dir, "values.yaml")]
	if !ok {
		return nil, fmt.Errorf("%s is missing", path.Join(p.dir, "values.yaml"))
	}
	given, err := chartutil.ReadValues(text)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	files, err := Chart(given, true)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Write(tree[path.Join(p.dir, "namespace.yaml")])
	for _, name := range slices.Sorted(maps.Keys(files)) {
		// Helm keeps the objects of tests apart: they run with `helm test` only.
		if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/templates/tests/") {
			out.WriteString("\n---\n" + files[name])
		}
	}
	return out.Bytes(), nil
}

// Chart renders this program's own chart with values, which the schema checks if strict; with names of templates only these. The release's name and
// namespace are odd on purpose: nothing may depend on them.
func Chart(given map[string]any, strict bool, only ...string) (map[string]string, error) {
	loaded, err := loadChart()
	if err != nil {
		return nil, err
	}
	c := *loaded // rendering changes the values of the chart that it gets
	c.Values = deepCopy(c.Values).(map[string]any)
	if len(only) > 0 {
		c.Templates = withHelpers(c.Templates, only)
	}
	release := chartutil.ReleaseOptions{Name: "any-name", Namespace: "any-namespace", Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValuesWithSchemaValidation(&c, given, release, chartutil.DefaultCapabilities, true)
	if err == nil && strict && !allowed(values["Values"]) { // for the message that Helm prints
		_, err = chartutil.ToRenderValues(&c, given, release, chartutil.DefaultCapabilities)
	}
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	if len(only) > 0 {
		return run(&c, values)
	}
	return rendered.of(values["Values"], func() (map[string]string, error) { return run(&c, values) })
}

// withHelpers are the templates of these names, and the files of the helpers that they include. To parse all helpers takes longer than to render most
// templates, and what decided a value takes hundreds of renderings of single ones.
func withHelpers(all []*chart.File, names []string) []*chart.File {
	chosen := slices.DeleteFunc(slices.Clone(all), func(f *chart.File) bool { return !slices.Contains(names, path.Base(f.Name)) })
	for i := 0; i < len(chosen); i++ {
		for _, f := range helpersOf()[chosen[i]] {
			if !slices.Contains(chosen, f) {
				chosen = append(chosen, f)
			}
		}
	}
	return chosen
}

var (
	definition = regexp.MustCompile(`define +"([^"]+)"`)
	inclusion  = regexp.MustCompile(`(?:include|template) +"([^"]+)"`)
)

// helpersOf are the files whose helpers each template of the chart includes. The chart builds no name of a helper.
var helpersOf = sync.OnceValue(func() map[*chart.File][]*chart.File {
	files, in := map[*chart.File][]*chart.File{}, map[string]*chart.File{}
	c, err := loadChart()
	if err != nil {
		return files // Chart has returned it
	}
	for _, f := range c.Templates {
		for _, d := range definition.FindAllSubmatch(f.Data, -1) {
			in[string(d[1])] = f
		}
	}
	for _, f := range c.Templates {
		for _, i := range inclusion.FindAllSubmatch(f.Data, -1) {
			if helper := in[string(i[1])]; helper != nil && !slices.Contains(files[f], helper) {
				files[f] = append(files[f], helper)
			}
		}
	}
	return files
})

func run(c *chart.Chart, values chartutil.Values) (map[string]string, error) {
	files, err := engine.Render(c, values)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	return files, nil
}

// allowed is whether the schema of the chart allows values. To compile the schema takes as long as a rendering, so it happens once.
func allowed(values any) bool {
	schema, err := chartSchema()
	all, isValues := values.(chartutil.Values)
	return err == nil && isValues && schema.Validate(all.AsMap()) == nil
}

var chartSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	loaded, err := loadChart()
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(loaded.Schema))
	if err != nil {
		return nil, err
	}
	const name = "values.schema.json"
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
})

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, value := range v {
			m[key] = deepCopy(value)
		}
		return m
	case []any:
		l := make([]any, len(v))
		for i, value := range v {
			l[i] = deepCopy(value)
		}
		return l
	}
	return v
}

// loadChart loads the embedded chart once.
var loadChart = sync.OnceValues(func() (*chart.Chart, error) {
	var files []*loader.BufferedFile
	err := fs.WalkDir(charts.Files, chartDir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := charts.Files.ReadFile(name)
		if err != nil {
			return err
		}
		files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(name, chartDir+"/"), Data: text})
		return nil
	})
	if err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(files)
	if err == nil { // the notes and the tests of a release are no part of a bundle
		c.Templates = slices.DeleteFunc(c.Templates, func(f *chart.File) bool {
			return strings.HasSuffix(f.Name, "NOTES.txt") || strings.Contains(f.Name, "templates/tests/")
		})
	}
	return c, err
})
