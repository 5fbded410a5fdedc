package verify

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

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
// beside them. The release's name and namespace are odd on purpose: nothing may depend on them.
func helmTemplate(tree map[string][]byte, p plane) ([]byte, error) {
	text, ok := tree[path.Join(p.dir, "values.yaml")]
	if !ok {
		return nil, fmt.Errorf("%s is missing", path.Join(p.dir, "values.yaml"))
	}
	given, err := chartutil.ReadValues(text)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	c, err := loadChart()
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "any-name", Namespace: "any-namespace", Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	files, err := engine.Render(c, values)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
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

// loadChart loads the embedded chart on every call, because rendering changes the chart that it gets.
func loadChart() (*chart.Chart, error) {
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
	return loader.LoadFiles(files)
}
