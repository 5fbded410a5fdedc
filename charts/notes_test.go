package charts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func notes(t *testing.T, values string) string {
	t.Helper()
	files, err := render(t, parse(t, values))
	if err != nil {
		t.Fatal(err)
	}
	return files["templates/NOTES.txt"]
}

func TestNotesSayWhatIsMissing(t *testing.T) {
	const (
		secret    = "kubectl create secret generic cinder-csi-credentials -n cinder-csi --from-file=clouds.yaml=driver-clouds.yaml"
		clusterID = `clusterID is still "kubernetes".`
		ca        = "cloudConf.controller does not name the certificates of caBundle."
		crds      = "kubectl get crd volumesnapshots.snapshot.storage.k8s.io"
		class     = "There is no StorageClass."
		test      = "helm test any-name -n any-namespace"
	)
	for name, c := range map[string]struct {
		values string
		want   []string
	}{
		"the defaults":       {"", []string{secret, clusterID, crds, class}},
		"a cluster ID":       {"clusterID: prod", []string{secret, crds, class}},
		"no snapshots":       {"snapshots: {enabled: false}", []string{secret, clusterID, class}},
		"a class":            {aClass, []string{secret, clusterID, crds, test}},
		"no test":            {aClass + "helmTest: {enabled: false}", []string{secret, clusterID, crds}},
		"unused certificate": {"caBundle: '-----BEGIN CERTIFICATE-----'", []string{secret, clusterID, ca, crds, class}},
		"used certificate": {
			"caBundle: '-----BEGIN CERTIFICATE-----'\ncloudConf: {controller: 'ca-file = /etc/cinder-csi/ca/ca.pem'}", []string{secret, clusterID, crds, class},
		},
		"the management cluster": {hypershift, []string{secret, clusterID}},
		"the guest cluster":      {"target: hypershift\nplane: guest", []string{crds, class}},
	} {
		t.Run(name, func(t *testing.T) {
			text := notes(t, c.values)
			var got []string
			for _, note := range []string{secret, clusterID, ca, crds, class, test} {
				if strings.Contains(text, note) {
					got = append(got, note)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}

// The notes name the objects that the chart writes, and no others.
func TestNotesNameTheObjectsOfTheChart(t *testing.T) {
	values := aClass + pools + "snapshots: {extraClasses: [{name: b, deletionPolicy: Delete}]}"
	all := objects(t, parse(t, values))
	kinds := map[string]string{
		"storageclass": "StorageClass", "volumesnapshotclass": "VolumeSnapshotClass", "csidriver": "CSIDriver", "deployment": "Deployment", "daemonset": "DaemonSet",
	}
	var named int
	for _, match := range regexp.MustCompile(`kubectl (?:delete|rollout status) ([a-z]+)[ /](\S+)`).FindAllStringSubmatch(notes(t, values), -1) {
		named++
		if id := kinds[match[1]] + "/" + match[2]; all[id].Fields == nil {
			t.Errorf("%s: the chart has no %s", match[0], id)
		}
	}
	if want := 8; named != want {
		t.Errorf("want %d objects in the notes, got %d:\n%s", want, named, notes(t, values))
	}
}

// A template that asks the cluster, the clock or a random number gives other objects in a pipeline than in an installation.
func TestObjectsDependOnValuesAlone(t *testing.T) {
	files, err := filepath.Glob("cinder-csi/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob("cinder-csi/templates/tests/*")
	if err != nil {
		t.Fatal(err)
	}
	impure := regexp.MustCompile(`\.Capabilities|\blookup\b|\brand\w+|\bnow\b|\bdate\w*\b|\buuidv4\b|\bgen\w+Cert|\bgenPrivateKey\b|\.Release\b|\bgetHostByName\b|\btpl\b`)
	action := regexp.MustCompile(`(?s){{.*?}}`)
	comment := regexp.MustCompile(`(?s)^{{-? ?/\*`)
	for _, file := range slices.Concat(files, tests) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a directory
		}
		if filepath.Base(file) == "NOTES.txt" {
			text = regexp.MustCompile(`\.Release\.Name(space)?\b`).ReplaceAll(text, nil) // for the commands that it shows
		}
		for _, a := range action.FindAll(text, -1) {
			if found := impure.Find(a); found != nil && !comment.Match(a) {
				t.Errorf("%s uses %s", file, found)
			}
		}
	}
}

func TestChartNamesTheImagesOfItsValues(t *testing.T) {
	read := func(file string, into any) {
		text := testfile.Read(t, "cinder-csi/"+file)
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	var chart struct {
		Version     string
		Annotations map[string]string
	}
	var values struct {
		ChartVersion string
		Images       map[string]any
	}
	read("Chart.yaml", &chart)
	read("values.yaml", &values)
	if chart.Version != values.ChartVersion {
		t.Errorf("the chart has version %s, values.yaml is for %s", chart.Version, values.ChartVersion)
	}
	want := map[string]string{}
	for _, role := range []string{"controller", "node"} {
		for container, image := range values.Images[role].(map[string]any) {
			i := image.(map[string]any)
			if i["registry"] == "" {
				continue // of this project: a person says where it is
			}
			want[container] = i["registry"].(string) + "/" + i["repository"].(string) + ":" + i["tag"].(string)
		}
	}
	var listed []struct{ Name, Image string }
	if err := yaml.Unmarshal([]byte(chart.Annotations["artifacthub.io/images"]), &listed); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, i := range listed {
		got[i.Name] = i.Image
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotation artifacthub.io/images:\n%s", diff)
	}
}
