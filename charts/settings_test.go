package charts_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const (
	settingsTemplate = "cinder-csi/templates/_settings.tpl"
	valuesFile       = "cinder-csi/values.yaml"
	readmeFile       = "cinder-csi/README.md"
)

// settingsText is the template with the variables of the settings.
func settingsText(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("{{- /* `make update` writes this file: the variables are those of v1alpha1.Settings, the sizes those of v1alpha1.ClusterSizes. */ -}}\n")
	for _, role := range []string{"", v1alpha1.ControllerRole, v1alpha1.NodeRole} {
		fmt.Fprintf(&b, "\n{{- define \"cinder-csi.settings.%s\" -}}\n", cmp.Or(role, "both"))
		rows := slices.Clone(v1alpha1.Settings)
		slices.SortFunc(rows, func(a, b v1alpha1.Setting) int { return strings.Compare(a.Variable, b.Variable) })
		for _, s := range rows {
			if s.Role == role {
				fmt.Fprintf(&b, "%s: {{ %s | quote }}\n", s.Variable, expression(s))
			}
		}
		b.WriteString("{{- end -}}\n")
	}
	fmt.Fprintf(&b, "\n{{- /* What v1alpha1.ClusterSizes has for the size of the cluster. */ -}}\n{{- define \"cinder-csi.size\" -}}\n")
	for i, s := range v1alpha1.ClusterSizes {
		branch := fmt.Sprintf("{{- if eq .Values.size %q }}", s.Name)
		if i > 0 {
			branch = strings.Replace(branch, "if", "else if", 1)
		}
		fmt.Fprintf(&b, "%s\nmemory: %s\nsettings: {ATTACHER_API_BURST: \"%d\", ATTACHER_API_QPS: \"%d\", ATTACHER_RECONCILE_SYNC: %s}\n",
			branch, jsonOf(t, s.Memory), s.Attacher.Burst, s.Attacher.QPS, s.Attacher.ReconcileSync)
	}
	b.WriteString("{{- end }}\n{{- end -}}\n")
	return b.String()
}

func expression(s v1alpha1.Setting) string {
	value := ".Values." + s.Key
	switch configured, _ := s.Of(v1alpha1.Spec{}); configured.(type) {
	case int: // Helm reads numbers of a file as floating-point numbers
		return value + " | int64"
	case map[string]string:
		return `include "cinder-csi.pairs" ` + value
	}
	return value
}

// chartDefault is the chart's default of a setting: what is decided where nothing is configured.
func chartDefault(s v1alpha1.Setting) any {
	if _, auto := s.Bounds.(v1alpha1.AutoSwitch); auto {
		return false
	}
	configured, _ := s.Of(v1alpha1.Distribution{}.WithDefaults())
	return configured
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// added is a file with a line for a new setting behind that of another key of the same object.
func added(t *testing.T, text, pattern, line string) string {
	t.Helper()
	places := regexp.MustCompile(pattern).FindAllStringIndex(text, -1)
	if places == nil {
		t.Fatalf("nothing matches %s, so that there is no place for %s", pattern, line)
	}
	end := places[len(places)-1][1]
	return text[:end] + line + text[end:]
}

// removed are the values and the reference without the lines of a key of driver: a setting that the table had.
func removed(values, reference, key string) (string, string) {
	lines := regexp.MustCompile(`(?m)^(  # .*\n)*  ` + key + `:.*\n(    .*\n)*`)
	rows := regexp.MustCompile(`(?m)^\| driver\.` + key + `[. ].*\n`)
	return lines.ReplaceAllString(values, ""), rows.ReplaceAllString(reference, "")
}

// former are the keys of driver that no row of a test is about and that no template names.
func former(values map[string]any, settings string) (keys []string) {
	templates := settings
	for _, f := range ourChart().Templates {
		if f.Name != "templates/"+filepath.Base(settingsTemplate) {
			templates += string(f.Data)
		}
	}
	for key := range values["driver"].(map[string]any) {
		named := regexp.MustCompile(`\.` + key + `\b`).MatchString(templates)
		if !named && !slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(r.leaf+".", "driver."+key+".") }) {
			keys = append(keys, key)
		}
	}
	return keys
}

// at is what a document has under a key with dots.
func at(document map[string]any, key string) any {
	var value any = document
	for part := range strings.SplitSeq(key, ".") {
		fields, _ := value.(map[string]any)
		value = fields[part]
	}
	return value
}

// TestTheChartHasTheSettingsOfTheTable holds the chart to v1alpha1.Settings. With -update it writes the template, adds a setting that the
// values or the reference lack, and removes one that the table has no more.
func TestTheChartHasTheSettingsOfTheTable(t *testing.T) {
	files := map[string]string{settingsTemplate: settingsText(t)}
	for _, name := range []string{valuesFile, readmeFile} {
		text := testfile.Text(t, name)
		files[name] = text
	}
	for _, s := range v1alpha1.Settings {
		object, key, _ := strings.Cut(s.Key, ".")
		byDefault := jsonOf(t, chartDefault(s))
		if *update && at(parse(t, files[valuesFile]), s.Key) == nil {
			files[valuesFile] = added(t, files[valuesFile], `(?m)^`+object+`:\n(  .*\n)+`, "  # -- "+s.Meaning+"\n  "+key+": "+byDefault+"\n")
			kind := map[bool]string{true: "string", false: fmt.Sprintf("%T", chartDefault(s))}[byDefault[0] == '"']
			files[readmeFile] = added(t, files[readmeFile], `(?m)^(\| `+object+`\..*\n)+`, fmt.Sprintf("| %s | %s | `%s` | %s |\n", s.Key, kind, byDefault, s.Meaning))
		}
		if got := jsonOf(t, at(parse(t, files[valuesFile]), s.Key)); got != byDefault {
			t.Errorf("%s: the default of %s is %s, want %s", valuesFile, s.Key, got, byDefault)
		}
	}
	if *update {
		for _, key := range former(parse(t, files[valuesFile]), files[settingsTemplate]) {
			files[valuesFile], files[readmeFile] = removed(files[valuesFile], files[readmeFile], key)
		}
	}
	for name, want := range files {
		if *update {
			testfile.Write(t, name, want, 0o644)
		}
		got := testfile.Read(t, name)
		if d := diff.Diff(want, string(got)); d != "" {
			t.Errorf("%s is not what the table says; `make update` writes it (-want +got):\n%s", name, d)
		}
	}
}

func TestTheLinesOfAFormerSettingAreRemoved(t *testing.T) {
	const values = "driver:\n  # -- A.\n  a: 1\n%s  # -- Whether.\n  olds: false\n\n# -- ID.\nclusterID: old\n"
	const reference = "| driver.a | int | `1` | A. |\n%s| driver.olds | bool | `false` | Whether. |\n| old | x |\n"
	for was, row := range map[string]string{
		"  # -- Text of\n  # two lines.\n  old: \"\"\n":          "| driver.old | string | `\"\"` | Text. |\n",
		"  # Limits.\n  old:\n    # -- R.\n    r: 1\n    w: 2\n": "| driver.old.r | int | `1` | R. |\n| driver.old.w | int | `2` | W. |\n",
	} {
		gotValues, gotReference := removed(fmt.Sprintf(values, was), fmt.Sprintf(reference, row), "old")
		if d := diff.Diff([]string{fmt.Sprintf(values, ""), fmt.Sprintf(reference, "")}, []string{gotValues, gotReference}); d != "" {
			t.Errorf("%s(-want +got):\n%s", was, d)
		}
	}
}

// settingRows are the values of the settings that nothing but the environment of the pods depends on.
func settingRows() []row {
	var rows []row
	for _, s := range v1alpha1.Settings {
		if slices.Contains([]string{"driver.capacity", "driver.kubeletDir"}, s.Key) {
			continue
		}
		r := row{leaf: s.Key, objects: []string{controllerSettings, nodeSettings, deployment, daemonSet}}
		switch s.Role {
		case v1alpha1.ControllerRole:
			r.objects = []string{controllerSettings, deployment}
		case v1alpha1.NodeRole:
			r.objects = []string{nodeSettings, daemonSet}
		}
		r.value = anotherValue(s)
		rows = append(rows, r)
	}
	return rows
}

// anotherValue is a value of a setting that is not its default, as YAML.
func anotherValue(s v1alpha1.Setting) string {
	switch b := s.Bounds.(type) {
	case v1alpha1.OneOf:
		return b[len(b)-1]
	case v1alpha1.Duration:
		return "10s"
	}
	switch value := chartDefault(s).(type) {
	case int:
		return fmt.Sprint(value + 1)
	case bool:
		return fmt.Sprint(!value)
	case map[string]string:
		return "{team: storage}"
	default:
		return fmt.Sprint(value, "x")
	}
}

// besideTheChart are flags of the driver that the chart does not set, with the reason. controller.extraArgs and node.extraArgs pass each of them.
var besideTheChart = map[string]string{
	"additional-topology": "it is of single nodes", "cloud-name": "the chart serves one cloud", "default-fs-type": "the sidecars and classes say it",
	"kubeconfig": "the pod has its token", "master": "the pod has its token", "pprof": "it is for developers",
}

// TestEverySettingReachesItsFlag: a value of the table is in the settings of its role, and the driver there has it as its flag.
func TestEverySettingReachesItsFlag(t *testing.T) {
	unset, args := objects(t, nil), containers(t, "")
	for _, s := range v1alpha1.Settings {
		other := objects(t, set(map[string]any{}, s.Key, parse(t, "value: "+anotherValue(s))["value"]))
		for role, name := range map[string]string{v1alpha1.ControllerRole: controllerSettings, v1alpha1.NodeRole: nodeSettings} {
			if s.Role != "" && s.Role != role {
				continue
			}
			was, is := as[corev1.ConfigMap](t, unset[name]).Data[s.Variable], as[corev1.ConfigMap](t, other[name]).Data[s.Variable]
			if is == "" || is == was {
				t.Errorf("%s: %s of %s is %q by default, and %q with %s", s.Key, s.Variable, name, was, is, anotherValue(s))
			}
			if want := "--" + s.Flag + "=$(" + s.Variable + ")"; s.Flag != "" && !slices.Contains(args[role+".driver"].Args, want) {
				t.Errorf("%s: the driver of the %s has no argument %s", s.Key, role, want)
			}
		}
	}
}

func TestTheChartSetsEachFlagOfTheDriverOrSaysWhyNot(t *testing.T) {
	containers := containers(t, "")
	given := strings.Join(slices.Concat(containers["controller.driver"].Args, containers["node.driver"].Args), "\n") + "\n"
	var c config.Config
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Bind(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		set := regexp.MustCompile(`(?m)^--` + f.Name + `(=|$)`).MatchString(given)
		reason, beside := besideTheChart[f.Name]
		none := f.Hidden || f.Deprecated != "" || strings.HasPrefix(f.Usage, "no effect")
		if set == (beside || none) {
			t.Errorf("--%s: the chart sets it: %t; a reason not to: %q, without effect or hidden: %t", f.Name, set, reason, none)
		}
	})
}
