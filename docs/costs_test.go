package docs

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// bundleOf are the objects of the bundle of a configuration, for a recorded cloud with four volume types.
func bundleOf(t *testing.T, target, distribution string) []verify.Object {
	t.Helper()
	objects, _ := generated(t, target, distribution)
	return objects
}

// generated are the objects of a bundle, and what generate said.
func generated(t *testing.T, target, distribution string) ([]verify.Object, string) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "distribution.yaml")
	testfile.Write(t, config, distribution, 0o600)
	var objects []verify.Object
	var messages bytes.Buffer
	world := cli.World{
		Stdin: &bytes.Buffer{}, Stdout: io.Discard, Stderr: &messages, Version: "test", ReadOnly: true, Env: func(string) string { return "" },
		Open: func(name string) (io.ReadCloser, error) { return os.Open(name) },
		Verify: func(dir string, base, tree map[string][]byte, target v1alpha1.Target, format v1alpha1.Format) (all []verify.Object, _ []verify.Finding, err error) {
			objects, err = verify.ObjectsAt(dir, base, tree, target, format)
			return objects, nil, err
		},
	}
	args := []string{
		"generate", "--inventory", "../examples/inventories/two-zones.yaml", "--config", config, "--target", target, "--format", "kustomize",
		"--output-dir", filepath.Join(t.TempDir(), "bundle"),
	}
	if code := cli.Run(t.Context(), world, args); code != cli.OK || len(objects) == 0 {
		t.Fatalf("%s\nexit %d, %d objects: %s", distribution, code, len(objects), messages.String())
	}
	return objects, messages.String()
}

// pods are the pod templates of a bundle by the kind of their workload. A bundle has one Deployment. Of DaemonSets the first counts.
func podsOf(t *testing.T, objects []verify.Object) map[string]corev1.PodSpec {
	t.Helper()
	pods := map[string]corev1.PodSpec{}
	for _, o := range objects {
		var deployment appsv1.Deployment
		var daemonSet appsv1.DaemonSet
		var cronJob batchv1.CronJob
		into := map[string]any{"Deployment": &deployment, "DaemonSet": &daemonSet, "CronJob": &cronJob}[o.Kind()]
		if into == nil || len(pods[o.Kind()].Containers) > 0 {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Fields, into); err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		switch o.Kind() {
		case "Deployment":
			pods[o.Kind()] = deployment.Spec.Template.Spec
		case "DaemonSet":
			pods[o.Kind()] = daemonSet.Spec.Template.Spec
		default:
			pods[o.Kind()] = cronJob.Spec.JobTemplate.Spec.Template.Spec
		}
	}
	return pods
}

// requestsOf says what a pod takes: its containers, those that stay and begin first too, and the sum of their requests.
func requestsOf(pod corev1.PodSpec) string {
	containers := slices.Clone(pod.Containers)
	for _, c := range pod.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	var cpu, memory resource.Quantity
	for _, c := range containers {
		cpu.Add(*c.Resources.Requests.Cpu())
		memory.Add(*c.Resources.Requests.Memory())
	}
	number := fmt.Sprint(len(containers)) + " containers"
	if len(containers) == 1 {
		number = "1 container"
	}
	return fmt.Sprintf("%s, %s CPU, %s", number, cpu.String(), memory.String())
}

// costRows are the options that change what a bundle has. The first is the base of the others.
var costRows = []struct{ option, target, spec string }{
	{"none, `vanilla`", "vanilla", ""},
	{"`size: small`", "vanilla", "size: small"},
	{"`size: large`", "vanilla", "size: large"},
	{"`snapshots.enabled: false`", "vanilla", "snapshots: {enabled: false}"},
	{"`driver.capacity: true`", "vanilla", "driver: {capacity: true}"},
	{"`driver.pvcAnnotations: true`", "vanilla", "driver: {pvcAnnotations: true}"},
	{"`monitoring.kind: PodMonitor`", "vanilla", "monitoring: {kind: PodMonitor}"},
	{"the same, and `alerts: true`", "vanilla", "monitoring: {kind: PodMonitor, alerts: true}"},
	{"`kind: PodMonitor`, and `dashboards: true`", "vanilla", "monitoring: {kind: PodMonitor, dashboards: true}"},
	{"`monitoring.kind: ServiceMonitor`", "vanilla", "monitoring: {kind: ServiceMonitor}"},
	{"`networkPolicy.enabled: true`", "vanilla", "networkPolicy: {enabled: true}"},
	{"`nodeLifecycle.startupTaint: true`", "vanilla", "nodeLifecycle: {startupTaint: true}"},
	{"`nodeLifecycle.drainHook: true`", "vanilla", "nodeLifecycle: {drainHook: true}"},
	{"`driftCheck.schedule`", "vanilla", "driftCheck: {schedule: '@daily'}"},
	{"a pool in `nodePools`", "vanilla", "nodePools: [{name: gpu, nodeSelector: {pool: gpu}}]"},
	{"`roles.controller.replicas: 1`", "vanilla", "roles: {controller: {replicas: 1}}"},
	{"none, `standalone`", "standalone", ""},
	{"none, `hypershift`", "hypershift", ""},
}

func kindsOf(objects []verify.Object) map[string]int {
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.Kind()]++
	}
	return kinds
}

// moreKinds lists the kinds of which one bundle has more or fewer objects than another.
func moreKinds(base, with map[string]int) string {
	var all []string
	kinds := slices.Sorted(maps.Keys(base))
	for kind := range with {
		if _, is := base[kind]; !is {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		if n := with[kind] - base[kind]; n != 0 {
			all = append(all, fmt.Sprintf("%+d %s", n, kind))
		}
	}
	return strings.Join(all, ", ")
}

// costs has a row for each option, with what differs from the first one. A target has its own sums.
func costs(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| option | objects | of which | a controller pod requests | a node pod requests |\n| --- | ---: | --- | --- | --- |\n")
	var base []verify.Object
	var basePods map[string]corev1.PodSpec
	for _, row := range costRows {
		objects := bundleOf(t, row.target, "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nmetadata: {name: demo}\nspec:\n  images: {registry: registry.example.com}\n  "+row.spec+"\n")
		pods := podsOf(t, objects)
		controller, node := requestsOf(pods["Deployment"]), requestsOf(pods["DaemonSet"])
		number, more := fmt.Sprint(len(objects)), ""
		if base == nil {
			base, basePods = objects, pods
		} else if row.target == "vanilla" {
			more = moreKinds(kindsOf(base), kindsOf(objects))
			if controller == requestsOf(basePods["Deployment"]) {
				controller = ""
			}
			if node == requestsOf(basePods["DaemonSet"]) {
				node = ""
			}
		}
		if job, is := pods["CronJob"]; is {
			more += "; a run: " + requestsOf(job)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.option, number, strings.TrimPrefix(more, "; "), controller, node)
	}
	return b.String()
}

func TestTheReferenceSaysWhatEachOptionCosts(t *testing.T) {
	page.Hold(t, "reference/costs.md", map[string]string{"costs": costs(t)}, *update, "go test ./docs -update")
}

// An image of another registry would not be there, where nodes reach only the mirror.
func TestABundleForAMirrorNamesNoOtherRegistry(t *testing.T) {
	documents := yamlDocuments(testfile.Text(t, "how-to/install-without-internet.md"))
	i := slices.IndexFunc(documents, func(text string) bool { return strings.Contains(text, "\nkind: Distribution\n") })
	if i < 0 {
		t.Fatal("the page has no configuration")
	}
	with := strings.NewReplacer("  roles:\n", "  driftCheck: {schedule: \"0 6 * * *\"}\n  roles:\n",
		"    driver:", "    generator: {repository: cinder-csi/cinder-csi-generator, tag: v0.1.0}\n    driver:").Replace(documents[i])
	seen := 0
	for name, pod := range podsOf(t, bundleOf(t, "vanilla", with)) {
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			seen++
			if !strings.HasPrefix(c.Image, "registry.example.com/") {
				t.Errorf("%s, container %s: want an image of the mirror, got %s", name, c.Name, c.Image)
			}
		}
		if len(pod.ImagePullSecrets) != 1 {
			t.Errorf("%s: want the pull secret of the page, got %v", name, pod.ImagePullSecrets)
		}
	}
	if seen < 10 {
		t.Errorf("want the containers of all workloads, saw %d", seen)
	}
}
