//go:build apiserver

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const driftDistribution = `
spec:
  credentials: {cloud: sim-demo}
  driftCheck: {schedule: "@daily"}
  images:
    driver: {registry: registry.example.com, repository: cinder-csi-driver, tag: v1}
    generator: {registry: registry.example.com, repository: cinder-csi-generator, tag: v1}
`

// inPod runs a command where the files of a pod's service account are: $1 is the directory with them. The mounts are of this process alone.
const inPod = `mount -t tmpfs tmpfs /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount && cp "$1"/* /run/secrets/kubernetes.io/serviceaccount && shift && exec "$@"`

// TestTheDriftCheckWritesItsResultWithItsOwnRights applies each form of a bundle and runs the command of its CronJob with the token of its
// account, as in a pod. Root makes the mounts.
func TestTheDriftCheckWritesItsResultWithItsOwnRights(t *testing.T) {
	testenv.NeedRoot(t)
	s := startServer(t)
	s.run(t, "kubectl", "create", "namespace", "clusters-example")
	s.run(t, "kubectl", "create", "secret", "generic", "example-cloud-credentials", "--namespace=clusters-example", "--from-file=clouds.yaml=driver-clouds.yaml")
	s.run(t, "kubectl", "create", "namespace", "openshift-cloud-credential-operator")
	for n, b := range []struct{ target, format, helm string }{
		{"vanilla", "kustomize", ""},
		{"vanilla", "helm", "helm"},
		{"vanilla", "helm", "helm4"},
		{"standalone", "kustomize", ""},
		{"hypershift", "kustomize", ""},
		{"hypershift", "helm", "helm"},
	} {
		t.Run(strings.TrimSpace(b.target+" "+b.format+" "+b.helm), func(t *testing.T) {
			j := newDriftJob(t, s, fmt.Sprintf("drift-%d", n), b.target, b.format)
			s.helm(t, b.helm)
			before := s.state(t)
			j.bundle.install(t)
			j.read(t)
			if status := j.status(t); len(status) != 0 {
				t.Errorf("want no data before the first run, got %v", status)
			}
			j.check(t, 0, "in-sync")
			j.objectsAreThere(t)
			j.bundle.applied = true
			j.bundle.follow(t, "Apply, and look at what would change")
			j.bundle.applied = false
			if got := j.status(t)["result"]; got != "in-sync" {
				t.Errorf("want the result to stay when the bundle is applied again, got %q", got)
			}
			j.sim.AddVolumeType(openstacksim.VolumeType{Name: "archive"})
			j.check(t, 2, "drift")
			if got := j.status(t)["differences"]; !strings.Contains(got, `volume type "archive" is new`) {
				t.Errorf("want the difference, got %q", got)
			}
			j.sim.RemoveVolumeType("archive")
			j.check(t, 0, "in-sync")
			if got, there := j.status(t)["differences"]; there {
				t.Errorf("want no difference any more, got %q", got)
			}
			j.mayDoNothingElse(t)
			j.bundle.remove(t, before)
		})
	}
}

// driftJob is the CronJob of a bundle that is applied.
type driftJob struct {
	*server
	bundle          installation
	sim             *openstacksim.Sim
	clouds, account string
	namespace       string
	args            []string
}

func newDriftJob(t *testing.T, s *server, name, target, format string) *driftJob {
	t.Helper()
	j := &driftJob{server: s, sim: openstacksim.New(openstacksim.Default())}
	j.sim.SetAllLatency(0)
	cloud := httptest.NewServer(j.sim.Handler())
	t.Cleanup(cloud.Close)
	s.Write(t, name+".clouds", string(j.sim.CloudsYAML(cloud.URL)))
	s.Write(t, name+".yaml", driftDistribution)
	j.clouds = s.Path(name + ".clouds")
	dir := s.Path(name)
	// It warns of a cloud without TLS, and of what a test does not set.
	_, messages, err := s.Try("env", "OS_CLIENT_CONFIG_FILE="+j.clouds, "cinder-csi-generator", "generate", "--os-cloud", "sim-demo", "--target", target, "--format", format,
		"--config", s.Path(name+".yaml"), "--output-dir", dir)
	if err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	text := testfile.Text(t, filepath.Join(dir, "README.md"))
	j.bundle = installation{server: s, dir: dir, readme: text}
	return j
}

func (j *driftJob) object(t *testing.T, kind, name string) object {
	t.Helper()
	o := object{}
	testenv.Must(t, json.Unmarshal([]byte(j.run(t, "kubectl", "get", kind, name, "--namespace", j.namespace, "-o", "json")), &o))
	return o
}

// data is that of a ConfigMap.
func (j *driftJob) data(t *testing.T, name string) map[string]string {
	t.Helper()
	data := map[string]string{}
	fields, _ := j.object(t, "configmap", name)["data"].(object)
	for key, value := range fields {
		data[key] = value.(string)
	}
	return data
}

func (j *driftJob) status(t *testing.T) map[string]string {
	t.Helper()
	return j.data(t, "cinder-csi-drift-check-status")
}

// read makes the command line and the files of the pod, as kubelet would.
func (j *driftJob) read(t *testing.T) {
	t.Helper()
	j.namespace = strings.TrimSpace(j.run(t, "kubectl", "get", "cronjobs", "--all-namespaces", "-o", "jsonpath={.items[*].metadata.namespace}"))
	// The README's removal deletes it.
	j.run(t, "kubectl", "create", "secret", "generic", "cinder-csi-drift-check", "--namespace", j.namespace, "--from-literal=clouds.yaml=")
	dir := t.TempDir()
	replace := []string{}
	for name, text := range j.data(t, "cinder-csi-drift-check") {
		file := filepath.Join(dir, name)
		testfile.Write(t, file, text, 0o600)
		replace = append(replace, "/etc/cinder-csi/drift-check/"+name, file)
	}
	for name, text := range j.data(t, "cinder-csi-drift-check-settings") {
		replace = append(replace, "$("+name+")", text)
	}
	var cronJob struct {
		Spec struct {
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct {
							ServiceAccountName string
							Containers         []struct{ Args []string }
						}
					}
				}
			}
		}
	}
	testenv.Must(t, json.Unmarshal([]byte(j.run(t, "kubectl", "get", "cronjob", "cinder-csi-drift-check", "--namespace", j.namespace, "-o", "json")), &cronJob))
	pod := cronJob.Spec.JobTemplate.Spec.Template.Spec
	j.args = nil
	for _, arg := range pod.Containers[0].Args {
		j.args = append(j.args, strings.NewReplacer(replace...).Replace(arg))
	}
	j.account = filepath.Join(dir, "account")
	testenv.Must(t, os.Mkdir(j.account, 0o700))
	for name, text := range map[string]string{
		"token":     strings.TrimSpace(j.run(t, "kubectl", "create", "token", pod.ServiceAccountName, "--namespace", j.namespace)),
		"ca.crt":    j.data(t, "kube-root-ca.crt")["ca.crt"],
		"namespace": j.namespace,
	} {
		testfile.Write(t, filepath.Join(j.account, name), text, 0o600)
	}
}

// start runs the generator in the pod, and gives its exit code and its messages.
func (j *driftJob) start(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", inPod, "sh", j.account, filepath.Join(j.Repo, "bin/cinder-csi-generator")}, args...)...)
	// The proxy is that of OpenStack: the API server must be asked without it.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "OS_CLIENT_CONFIG_FILE=" + j.clouds, "KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=" + j.Plane.Port,
		"HTTPS_PROXY=http://127.0.0.1:1",
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (j *driftJob) check(t *testing.T, code int, result string) {
	t.Helper()
	got, messages := j.start(t, j.args...)
	status := j.status(t)
	if got != code || strings.Contains(messages, "status-configmap") || status["result"] != result || status["exitCode"] != fmt.Sprint(code) {
		t.Errorf("want exit code %d and %q, got %d and %v: %s", code, result, got, status, messages)
	}
}

// objectsAreThere reads each object that the result lists.
func (j *driftJob) objectsAreThere(t *testing.T) {
	t.Helper()
	var objects []struct{ Group, Resource, Namespace, Name string }
	if err := json.Unmarshal([]byte(j.status(t)["relatedObjects"]), &objects); err != nil || len(objects) < 10 {
		t.Fatalf("want the objects of the bundle, got %d: %v", len(objects), err)
	}
	for _, o := range objects {
		args := []string{"kubectl", "get", strings.TrimSuffix(o.Resource+"."+o.Group, "."), o.Name}
		if o.Namespace != "" {
			args = append(args, "--namespace", o.Namespace)
		}
		if _, messages, err := j.Try(args...); err != nil {
			t.Errorf("%+v: %s", o, messages)
		}
	}
	t.Logf("measured: %d objects", len(objects))
}

// mayDoNothingElse: the account may write no other ConfigMap, and read nothing.
func (j *driftJob) mayDoNothingElse(t *testing.T) {
	t.Helper()
	before := j.data(t, "cinder-csi-drift-check")
	args := slices.Clone(j.args)
	for i, arg := range args {
		if strings.HasPrefix(arg, "--status-configmap=") {
			args[i] = "--status-configmap=cinder-csi-drift-check"
		}
	}
	code, messages := j.start(t, args...)
	if code != 0 || !strings.Contains(messages, "the result was not written") || !strings.Contains(messages, "HTTP 403") {
		t.Errorf("want exit code 0 and a warning, got %d: %s", code, messages)
	}
	if diff := cmp.Diff(before, j.data(t, "cinder-csi-drift-check")); diff != "" {
		t.Errorf("the ConfigMap with the plan was changed: %s", diff)
	}
	user := "--as=system:serviceaccount:" + j.namespace + ":cinder-csi-drift-check"
	for _, what := range []string{"get configmaps", "get configmaps/cinder-csi-drift-check-status", "patch configmaps", "create configmaps", "get secrets", "patch cronjobs.batch"} {
		may, _, _ := j.Try(append(append([]string{"kubectl", "auth", "can-i"}, strings.Fields(what)...), user, "--namespace", j.namespace)...)
		if strings.TrimSpace(may) != "no" {
			t.Errorf("the account may %s: %q", what, may)
		}
	}
}
