package charts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// commonTemplates are names that templates of other charts have.
var commonTemplates = []string{
	"args", "ca", "container", "env", "guards", "image", "labels", "nodeSettings", "pairs", "placement", "plane", "resources", "settings.both", "tolerations",
}

// Helm has one set of named templates for an umbrella chart and all its charts, and the last definition of a name counts.
func TestTheChartIsTheSameInAnUmbrellaChartWithChartsAndGlobalsOfOthers(t *testing.T) {
	ours, err := loader.LoadDir("cinder-csi")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range commonTemplates {
		fmt.Fprintf(&text, "{{- define %q }}{{ fail \"the template %s of another chart was taken\" }}{{ end }}\n", name, name)
	}
	helpers := []*chart.File{{Name: "templates/_helpers.tpl", Data: []byte(text.String())}}
	umbrella := &chart.Chart{Metadata: &chart.Metadata{Name: "umbrella", Version: "1.0.0", APIVersion: "v2"}, Templates: helpers}
	umbrella.AddDependency(ours, &chart.Chart{Metadata: &chart.Metadata{Name: "other", Version: "1.0.0", APIVersion: "v2"}, Templates: helpers})
	values := map[string]any{
		"global":     map[string]any{"imageRegistry": "mirror.example", "storageClass": "fast"},
		"cinder-csi": parse(t, ownImages),
	}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(umbrella, values, anyRelease, chartutil.DefaultCapabilities, false)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(umbrella, all)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]verify.Object{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		decoded, err := verify.Decode([]byte(files[file]), "")
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, o := range decoded {
			got[o.Kind()+"/"+o.Name()] = o
		}
	}
	if diff := changed(objects(t, nil), got); len(diff) != 0 {
		t.Errorf("in an umbrella chart these objects are others: %v", diff)
	}
}

// A parent chart switches a dependency by a key among its values, and Helm gives that key to the chart.
func TestAnUmbrellaChartMaySwitchTheChartByACondition(t *testing.T) {
	for _, alias := range []string{"cinder-csi", "storage"} {
		for _, enabled := range []bool{true, false} {
			ours, err := loader.LoadDir("cinder-csi")
			if err != nil {
				t.Fatal(err)
			}
			umbrella := &chart.Chart{Metadata: &chart.Metadata{
				Name: "platform", Version: "1.0.0", APIVersion: "v2",
				Dependencies: []*chart.Dependency{{Name: "cinder-csi", Alias: alias, Version: ours.Metadata.Version, Condition: alias + ".enabled"}},
			}}
			umbrella.AddDependency(ours)
			own := parse(t, ownImages)
			own["enabled"] = enabled
			values := map[string]any{alias: own}
			if err := chartutil.ProcessDependenciesWithMerge(umbrella, values); err != nil {
				t.Fatal(err)
			}
			all, err := chartutil.ToRenderValuesWithSchemaValidation(umbrella, values, anyRelease, chartutil.DefaultCapabilities, false)
			if err != nil {
				t.Fatalf("alias %s: %v", alias, err)
			}
			files, err := engine.Render(umbrella, all)
			if err != nil || (len(files) > 0) != enabled {
				t.Errorf("alias %s, enabled %t: %d files, %v", alias, enabled, len(files), err)
			}
		}
	}
}

func TestEveryTemplateHasTheNameOfTheChart(t *testing.T) {
	define := regexp.MustCompile(`(?:define|include|template|block) "([^"]+)"`)
	count := 0
	err := filepath.WalkDir("cinder-csi/templates", func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range define.FindAllStringSubmatch(string(text), -1) {
			count++
			if !strings.HasPrefix(m[1], "cinder-csi.") {
				t.Errorf("%s: template %q; begin its name with cinder-csi., or a template of another chart in an umbrella chart replaces it", file, m[1])
			}
		}
		return err
	})
	if err != nil || count < 50 {
		t.Errorf("%d names: %v; want all templates read", count, err)
	}
}

// A security context constraint admits only the users of the range of its namespace.
func TestByHandTheChartLeavesTheUserToOpenShift(t *testing.T) {
	for values, want := range map[string]any{
		"": 65532, "target: standalone": nil, "target: hypershift\nplane: management": nil,
		"target: hypershift\nplane: management\ncontroller: {runAsUser: 1000680000}": 1000680000, "controller: {runAsUser: null}": nil, "controller: {runAsUser: 7}": 7,
	} {
		pod := objects(t, parse(t, values))[deployment].Fields["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		context := pod["securityContext"].(map[string]any)
		for _, key := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
			got := context[key]
			if number, is := got.(float64); is { // as JSON has it
				got = int(number)
			}
			if got != want {
				t.Errorf("%q: %s: want %v, got %v", values, key, want, got)
			}
		}
		if context["runAsNonRoot"] != true {
			t.Errorf("%q: want runAsNonRoot, got %v", values, context)
		}
	}
}

// The pod of `helm test` runs as the controller does.
func TestThePodOfHelmTestHasTheUserOfTheController(t *testing.T) {
	for values, want := range map[string]any{aClass: 65532.0, aClass + "target: standalone": nil, aClass + "controller: {runAsUser: 7}": 7.0} {
		spec := objects(t, parse(t, values))[testPod].Fields["spec"].(map[string]any)
		if got := spec["securityContext"].(map[string]any)["runAsUser"]; got != want {
			t.Errorf("%q: want user %v, got %v", values, want, got)
		}
	}
}

// A template is read on two screens; what is longer is split by subject.
func TestEachTemplateIsReadOnTwoScreens(t *testing.T) {
	names, err := filepath.Glob("cinder-csi/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // a directory
		}
		if lines := strings.Count(string(text), "\n"); lines > 140 {
			t.Errorf("%s has %d lines, want at most 140: split it by subject", name, lines)
		}
	}
}
