//go:build apiserver

package apiserver

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

var update = flag.Bool("update", false, "record what each scenario reads, for the tests without an API server")

var az1, az2 = openstacksim.Default().Servers[0].ID, openstacksim.Default().Servers[1].ID

const immediate, late = "Immediate", "WaitForFirstConsumer"

// bound is a claim with its volume.
func (l *life) bound() {
	l.class(immediate, nil)
	l.createClaim(nil)
	l.provision(nil, "")
}

// running is a claim whose volume is attached to node a, for pod app-0.
func (l *life) running() {
	l.bound()
	l.node("a", az1, "True", true)
	l.pod("app-0", "a", "")
	l.attach("a", false)
}

// moving is a running claim for which a second pod waits on node b.
func (l *life) moving() {
	l.running()
	l.node("b", az2, "True", true)
	l.pod("app-1", "b", "")
	l.event("Pod", "app-1", "FailedAttachVolume", "attachdetach-controller", `Multi-Attach error for volume "pvc-`+l.uid+`" Volume is already exclusively attached to one node and can't be attached to another`)
}

func (l *life) claimStatus(status object) {
	l.patch(l.path("persistentvolumeclaims/data/status"), object{"status": status})
}

// hangs are the ways to hang. Each is named for the recording, and must end with the cause.
var hangs = []struct {
	name, cause string
	make        func(l *life)
}{
	{"no-class", "class.missing", func(l *life) { l.createClaim(object{"storageClassName": "fsat"}) }},
	{"provisioner-not-running", "driver.not-running", func(l *life) {
		l.noPods = true
		l.controllerPod("False")
		l.class(immediate, nil)
		l.createClaim(nil)
	}},
	{"quota-full", "quota.gigabytes", func(l *life) {
		l.sim.SetQuota("demo", "gigabytes", 0)
		l.bound()
	}},
	{"type-gone", "create.type", func(l *life) {
		l.sim.RemoveVolumeType("fast")
		l.class(immediate, map[string]string{"type": "fast"})
		l.createClaim(nil)
		l.provision(map[string]string{"type": "fast"}, "")
	}},
	{"zone-without-backend", "create.no-backend", func(l *life) {
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true})
		l.class(late, nil)
		l.createClaim(nil)
		l.node("a", az1, "True", true)
		l.patch(l.path("persistentvolumeclaims/data"), object{"metadata": object{"annotations": object{"volume.kubernetes.io/selected-node": l.name("a")}}})
		l.provision(nil, "az1")
	}},
	{"create-error", "create.error", func(l *life) {
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Message: "the backend is out of order"})
		l.bound()
	}},
	{"create-slow", "create.waiting", func(l *life) {
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Slow: true, Delay: time.Hour})
		l.class(immediate, nil)
		l.createClaim(nil)
		l.background("CreateVolume", func(ctx context.Context) error {
			return csitest.Outcome(l.driver.CreateVolume(ctx, csitest.Claim("pvc-"+l.uid)))
		})
	}},
	{"credentials-refused", "cloud.credentials", func(l *life) {
		l.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/identity/v3/auth/tokens", Status: http.StatusUnauthorized})
		l.sim.RevokeTokens()
		l.bound()
	}},
	{"cloud-unreachable", "cloud.unreachable", func(l *life) {
		l.sim.SetFault(openstacksim.Fault{Path: "/**", Status: http.StatusServiceUnavailable})
		l.bound()
	}},
	{"attached-elsewhere", "attach.elsewhere", (*life).moving},
	{"attached-outside-kubernetes", "attach.elsewhere", func(l *life) {
		l.bound()
		l.sim.AddAttachment(l.volume, az2, "attached")
		l.sim.ResetStatus(l.volume, "in-use")
		l.node("a", az1, "True", true)
		l.pod("app-0", "a", "")
		l.attach("a", false)
	}},
	{"attach-limit", "attach.limit", func(l *life) {
		l.bound()
		l.sim.SetFault(openstacksim.Fault{Method: http.MethodPost, Path: "/compute/**", Contains: "volumeAttachment", Status: http.StatusForbidden, Message: "The maximum allowed number of disk devices (26) to attach to a single instance has been exceeded."})
		l.node("a", az1, "True", true)
		l.pod("app-0", "a", "")
		l.attach("a", false)
	}},
	{"attach-limit-of-scheduler", "pod.attach-limit", func(l *life) {
		l.bound()
		l.pod("app-0", "", "0/2 nodes are available: 2 node(s) exceed max volume count. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")
	}},
	{"driver-not-registered", "node.unregistered", func(l *life) {
		l.bound()
		l.node("a", az1, "True", false)
		l.pod("app-0", "a", "")
	}},
	{"attaching-stuck", "attach.stuck", func(l *life) {
		l.later = 5 * time.Minute
		l.bound()
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.Attach, Slow: true, Delay: time.Hour})
		l.node("a", az1, "True", true)
		l.pod("app-0", "a", "")
		l.attach("a", true)
	}},
	{"detaching-stuck", "detach.stuck", func(l *life) {
		l.later = 5 * time.Minute
		l.moving()
		l.delete(l.path("pods/app-0"))
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.Detach, Slow: true, Delay: time.Hour})
		l.detach("a", true)
	}},
	{"server-deleted", "server.missing", func(l *life) {
		l.bound()
		l.node("a", az1, "Unknown", true)
		l.pod("app-0", "a", "")
		l.attach("a", false)
		l.sim.RemoveServer(az1, true)
	}},
	{"server-locked", "server.locked", func(l *life) {
		l.bound()
		l.lock(az1)
		l.node("a", az1, "True", true)
		l.pod("app-0", "a", "")
		l.attach("a", false)
	}},
	{"server-in-error", "server.error", func(l *life) {
		l.bound()
		l.sim.SetServerStatus(az1, "ERROR", "")
		l.node("a", az1, "True", true)
		l.pod("app-0", "a", "")
		l.attach("a", false)
	}},
	{"expand-waits-for-node", "expand.node", func(l *life) {
		l.bound()
		l.patch("/apis/storage.k8s.io/v1/storageclasses/"+l.name("class"), object{"allowVolumeExpansion": true})
		l.patch(l.path("persistentvolumeclaims/data"), object{"spec": object{"resources": object{"requests": object{"storage": "2Gi"}}}})
		if _, err := l.driver.ControllerExpandVolume(l.t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: l.volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: csitest.Mounted("")}); err != nil {
			l.t.Fatal(err)
		}
		l.claimStatus(object{"conditions": []object{{"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}})
	}},
	{"snapshot-not-ready", "source.not-ready", func(l *life) {
		l.create("/apis/snapshot.storage.k8s.io/v1/namespaces/"+l.namespace+"/volumesnapshots", object{
			"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot",
			"metadata": object{"name": "yesterday"}, "spec": object{"source": object{"persistentVolumeClaimName": "other"}},
		})
		l.class(immediate, nil)
		l.createClaim(object{"dataSource": object{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "yesterday"}})
	}},
	{"no-pod", "pod.none", func(l *life) {
		l.class(late, nil)
		l.createClaim(nil)
	}},
	{"no-node-in-the-zone", "pod.zone", func(l *life) {
		l.bound()
		l.pod("app-0", "", "0/2 nodes are available: 2 node(s) had volume node affinity conflict.")
	}},
	{"node-lost", "node.not-ready", func(l *life) {
		l.bound()
		l.node("a", az1, "False", true)
		l.pod("app-0", "a", "")
		l.attach("a", false)
		l.node("b", az2, "True", true)
		l.pod("app-1", "b", "")
		l.event("Pod", "app-1", "FailedAttachVolume", "attachdetach-controller", `Multi-Attach error for volume "pvc-`+l.uid+`" Volume is already used by pod(s) app-0`)
		l.patch(l.path("pods/app-0/status"), object{"status": object{"conditions": []object{{"type": "Ready", "status": "False"}}}})
		l.patch(l.path("pods/app-0"), object{"metadata": object{"finalizers": []string{"example.org/kubelet-does-not-answer"}}})
		l.delete(l.path("pods/app-0"))
	}},
	{"error-deleting", "volume.delete-error", func(l *life) {
		l.bound()
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.DeleteVolume, Message: "the backend is out of order"})
		l.patch(l.path("persistentvolumeclaims/data"), object{"metadata": object{"finalizers": []string{}}})
		l.delete(l.path("persistentvolumeclaims/data"))
		l.patch("/api/v1/persistentvolumes/pvc-"+l.uid+"/status", object{"status": object{"phase": "Released"}})
		ctx, cancel := context.WithTimeout(l.t.Context(), 8*time.Second)
		defer cancel()
		if _, err := l.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: l.volume}); err == nil {
			l.t.Fatal("the volume was deleted")
		}
	}},
	{"mount-fails", "fs.needs-repair", func(l *life) {
		l.running()
		l.event("Pod", "app-0", "FailedMount", "kubelet", `MountVolume.MountDevice failed for volume "pvc-`+l.uid+`" : rpc error: code = FailedPrecondition desc = check the file system on disk /dev/vdb: a person must decide how to repair it [fs.needs-repair]`)
	}},
	{"nothing-hangs", "none", func(l *life) {
		l.running()
		l.patch(l.path("pods/app-0/status"), object{"status": object{"phase": "Running", "conditions": []object{{"type": "Ready", "status": "True"}}}})
	}},
}

// waitForStep waits until an operation in progress has a step, and the driver has read its object.
func (l *life) waitForStep(method string) {
	l.t.Helper()
	var page struct{ Operations []diagnosis.Operation }
	for range 100 {
		if response, err := http.Get("http://" + l.http + "/debug/operations"); err == nil {
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if json.Unmarshal(text, &page) == nil && len(page.Operations) > 0 && page.Operations[0].Method == method && page.Operations[0].Step != "" && page.Operations[0].State != "" {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	l.t.Fatalf("the driver lists no step and state of %s: %+v", method, page)
}

// lock locks a server, as an operator of the cloud does.
func (l *life) lock(server string) {
	l.t.Helper()
	c := l.login("sim-demo", nil)
	client, err := c.ClientContext(l.t.Context(), "compute", "")
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := client.Post(l.t.Context(), client.Endpoint+"servers/"+server+"/action", map[string]any{"lock": nil}, nil, nil); err != nil && !strings.Contains(err.Error(), "EOF") {
		l.t.Fatal(err)
	}
}

func (l *life) login(name string, wrap func(http.RoundTripper) http.RoundTripper) *cloud.Cloud {
	l.t.Helper()
	c, err := l.tryLogin(name, wrap)
	if err != nil {
		l.t.Fatal(err)
	}
	return c
}

func (l *life) tryLogin(name string, wrap func(http.RoundTripper) http.RoundTripper) (*cloud.Cloud, error) {
	settings, err := cloud.FromSource(cloud.Source{CloudName: name, CloudsFile: l.cloudsFile(), Env: func(string) string { return "" }})
	if err != nil {
		return nil, err
	}
	return cloud.Connect(l.t.Context(), settings, cloud.Options{Wrap: wrap})
}

func (l *life) cloudsFile() string {
	file := filepath.Join(l.t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, l.sim.CloudsYAML(l.cloud.URL), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return file
}

func TestVolumeThatHangsIsNamedWithItsCause(t *testing.T) {
	s := startServer(t)
	kubelet := startKubelet(t)
	for _, h := range hangs {
		t.Run(h.name, func(t *testing.T) {
			l := &life{rest: newREST(t, s), server: s, namespace: h.name, kubelet: kubelet, nodes: map[string]string{}}
			l.create("/api/v1/namespaces", object{"metadata": object{"name": h.name}})
			l.startDriver()
			h.make(l)
			if !l.noPods {
				l.controllerPod("True")
			}
			l.check(h.cause)
		})
	}
}

// check diagnoses in this process, which records, and with the plugin as a process.
func (l *life) check(cause string) {
	l.t.Helper()
	r := &diagnosistest.Recording{
		Claim: l.namespace + "/data", Namespace: l.namespace, Cause: cause, Now: time.Now().UTC().Add(l.later),
		Cluster: map[string]diagnosistest.Answer{}, Cloud: map[string]diagnosistest.Answer{}, Pages: map[string]diagnosistest.Answer{},
	}
	real, err := cluster.Connect(cluster.Source{Kubeconfig: l.server.Path("kubeconfig")})
	if err != nil {
		l.t.Fatal(err)
	}
	from := diagnosis.Clients{Cluster: l.cluster(&diagnosistest.Recorder{Next: l.rest.http.Transport, Into: r.Cluster}), Namespace: l.namespace, Page: r.RecordPage(real.PodPage), Now: r.Now}
	from.Cloud, err = l.tryLogin("sim-demo", func(next http.RoundTripper) http.RoundTripper {
		return &diagnosistest.Recorder{Next: next, Into: r.Cloud}
	})
	if err != nil {
		r.NoCloud, from.NoCloud = true, diagnosis.Gap{What: "the cloud", Why: err.Error()}
	}
	facts, err := diagnosis.Read(l.t.Context(), from, l.namespace, "data")
	if err != nil {
		l.t.Fatal(err)
	}
	report := diagnosis.Diagnose(facts)
	var story strings.Builder
	if err := diagnosis.Print(&story, report, 110); err != nil {
		l.t.Fatal(err)
	}
	l.t.Log("\n" + story.String())
	if report.Cause != cause {
		l.t.Errorf("want cause %s, got %s", cause, report.Cause)
	}
	for _, g := range facts.Gaps {
		if strings.Contains(g.What, "operations") {
			l.t.Errorf("want the operations of the driver, got %+v", g)
		}
	}
	if *update {
		if err := r.Save(filepath.Join(l.server.Repo, "internal/diagnosis/testdata", l.namespace+".json")); err != nil {
			l.t.Error(err)
		}
	}
	if l.later == 0 {
		l.checkPlugin(cause)
	}
	if cause == diagnosis.None {
		l.checkEntries()
	}
}

// checkEntries names the volume by each of its objects.
func (l *life) checkEntries() {
	l.t.Helper()
	for _, args := range [][]string{
		{"data", "-n", l.namespace}, {"pod/app-0", "-n", l.namespace}, {"pv/pvc-" + l.uid}, {"volumeattachment", l.attachment("a")}, {l.volume}, {"data", "-n", l.namespace, "--as", "root", "-o", "yaml"},
	} {
		cmd := exec.Command(filepath.Join(l.server.Repo, "bin/kubectl-cinder"), append([]string{"volume", "--driver-namespace", l.namespace, "--os-cloud", "sim-demo"}, args...)...)
		cmd.Env = append(l.server.Env, "OS_CLIENT_CONFIG_FILE="+l.cloudsFile())
		out, err := cmd.CombinedOutput()
		if asked := "--as"; slices.Contains(args, asked) {
			if !strings.Contains(string(out), `User \"root\" cannot`) && !strings.Contains(string(out), `User "root" cannot`) {
				l.t.Errorf("%q: want that the user root lacks a right, got %s", args, out)
			}
			continue
		}
		if args[0] == l.volume && strings.Contains(string(out), "Claim "+l.namespace+"/data") {
			continue // the simulated cloud of each scenario has a volume of this ID, so that there are several reports
		}
		if err != nil || !strings.Contains(string(out), "Claim "+l.namespace+"/data") || strings.Contains(string(out), "Not seen") {
			l.t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	out, err := exec.Command(filepath.Join(l.server.Repo, "bin/kubectl-cinder"), "__complete", "volume", "--kubeconfig", l.server.Path("kubeconfig"), l.namespace+"/").Output()
	if err != nil || !strings.Contains(string(out), l.namespace+"/data\n") {
		l.t.Errorf("completion: %v: %s", err, out)
	}
}

func (l *life) checkPlugin(cause string) {
	l.t.Helper()
	cmd := exec.Command(filepath.Join(l.server.Repo, "bin/kubectl-cinder"), "volume", l.namespace+"/data", "--driver-namespace", l.namespace, "--os-cloud", "sim-demo", "-o", "json")
	cmd.Env = append(l.server.Env, "OS_CLIENT_CONFIG_FILE="+l.cloudsFile())
	out, err := cmd.Output()
	var report diagnosis.Report
	if jsonErr := json.Unmarshal(out, &report); jsonErr != nil {
		l.t.Fatalf("%v: %v: %s", err, jsonErr, out)
	}
	if code := cmd.ProcessState.ExitCode(); report.Cause != cause || (code == 1) != report.Hangs() || code > 1 {
		l.t.Errorf("kubectl-cinder: want cause %s, got %s with exit code %d", cause, report.Cause, code)
	}
}
