package diagnosis_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

const otherServer = "00000000-0000-4000-8000-000000000001"

// contradictions are made to the readings of a claim that does not hang, by what somebody does behind Kubernetes. says is a part of the step
// that hangs.
var contradictions = []struct {
	name, cause, says string
	change            func(f *diagnosis.Readings)
}{
	{"detached in Cinder", "attach.lost", "available", func(f *diagnosis.Readings) {
		f.Cloud.Volume.Status, f.Cloud.Attachments = "available", nil
		for _, s := range f.Cloud.Servers {
			s.Has = false
		}
	}},
	{"attached to another server only", "attach.lost", "no attachment of the volume to server", func(f *diagnosis.Readings) { f.Cloud.Attachments[0].Server = otherServer }},
	{"detached in Nova", "attach.lost", "Nova does not list", func(f *diagnosis.Readings) {
		for _, s := range f.Cloud.Servers {
			s.Has = false
		}
	}},
	{"detached in Cinder while no pod uses it", "attach.lost", "available", func(f *diagnosis.Readings) {
		f.Pods, f.Cloud.Volume.Status, f.Cloud.Attachments = nil, "available", nil
	}},
	{"attached to a second server", "attach.unknown", otherServer, func(f *diagnosis.Readings) {
		f.Cloud.Attachments = append(slices.Clone(f.Cloud.Attachments), diagnosis.CloudAttachment{ID: otherServer, Server: otherServer, Status: "attached"})
	}},
	{"attached while Kubernetes has nothing", "attach.unknown", "no VolumeAttachment", func(f *diagnosis.Readings) { f.Pods, f.Attachments = nil, nil }},
	{"server gone from Nova while its node is ready", "server.unknown", "Nova has no server", func(f *diagnosis.Readings) {
		for _, s := range f.Cloud.Servers {
			s.Missing = true
		}
	}},
	{"smaller than Kubernetes says", "volume.size", "capacity 1Gi", func(f *diagnosis.Readings) { f.Cloud.Volume.Size = 0 }},
	{"volume of another cluster", "volume.other-cluster", `"blue"`, func(f *diagnosis.Readings) {
		f.Cloud.Volume.Metadata, f.ClusterID = map[string]string{"cinder.csi.openstack.org/cluster": "blue"}, "green"
	}},
	{"expanded in Cinder only", "none", "", func(f *diagnosis.Readings) { f.Cloud.Volume.Size = 5 }},
	{"attachments that Cinder does not show", "none", "", func(f *diagnosis.Readings) {
		f.Cloud.Attachments, f.Gaps = nil, []diagnosis.Gap{{What: "the attachments of the volume in Cinder"}}
	}},
	{"node whose server is unknown", "none", "", func(f *diagnosis.Readings) {
		for _, n := range f.Nodes {
			n.Driver, n.Seen = nil, false
		}
	}},
	{"volume without a mark", "none", "", func(f *diagnosis.Readings) { f.Cloud.Volume.Metadata, f.ClusterID = nil, "green" }},
}

func TestWhatContradictsKubernetesIsAFinding(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	for _, c := range contradictions {
		t.Run(c.name, func(t *testing.T) {
			f := readingsOf(t, r)
			c.change(&f)
			diagnosed(t, f, c.cause, c.says)
		})
	}
}

// diagnosed checks the cause, and a part of the step that hangs.
func diagnosed(t *testing.T, f diagnosis.Readings, cause, says string) diagnosis.Report {
	t.Helper()
	report := diagnosis.Diagnose(f)
	last := report.Steps[len(report.Steps)-1]
	if report.Cause != cause || !strings.Contains(last.What+" "+last.Why, says) {
		t.Errorf("want cause %s with %q, got %s: %+v", cause, says, report.Cause, last)
	}
	if cause != diagnosis.None && len(last.Do) == 0 {
		t.Error("nothing says what to do")
	}
	return report
}

// waits gives the first container of the pod a state.
func waits(reason string) func(*diagnosis.Readings) {
	return func(f *diagnosis.Readings) {
		f.Pods[0].Status.Conditions = nil
		f.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "because"}}}}
	}
}

// The reasons are kubelet's (pkg/kubelet/kuberuntime, pkg/kubelet/images); it mounts the volumes of a pod before it writes any of them.
func TestAnApplicationThatFailsIsNoStorageThatHangs(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	for _, reason := range []string{"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "CreateContainerConfigError", "RunContainerError"} {
		f := readingsOf(t, r)
		waits(reason)(&f)
		diagnosed(t, f, diagnosis.None, "does not run for another reason: container app: "+reason)
	}
	f := readingsOf(t, r)
	waits("PodInitializing")(&f)
	f.Pods[0].Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	diagnosed(t, f, diagnosis.None, "runs, and is not ready yet")
	f = readingsOf(t, r)
	waits("ContainerCreating")(&f)
	diagnosed(t, f, "mount.waiting", "does not run yet")
}

func TestAFailedMountOfAnotherVolumeIsNoFindingOfTheClaim(t *testing.T) {
	r := recordings(t)["mount-fails"]
	for message, cause := range map[string]string{
		`MountVolume.SetUp failed for volume "settings" : configmap "settings" not found`:                                                                  diagnosis.None,
		`Unable to attach or mount volumes: unmounted volumes=[settings], unattached volumes=[], failed to process volumes=[]: timed out waiting`:          diagnosis.None,
		`Unable to attach or mount volumes: unmounted volumes=[settings data], unattached volumes=[data], failed to process volumes=[]: timed out waiting`: "mount.error",
		"kubelet says something else": "mount.error",
	} {
		f := readingsOf(t, r)
		f.Events = []corev1.Event{{Reason: "FailedMount", Message: message, InvolvedObject: corev1.ObjectReference{Kind: "Pod"}}}
		diagnosed(t, f, cause, message)
	}
}

func TestTheLogOfTheNodePluginIsThatOfItsPodOnTheNode(t *testing.T) {
	for _, name := range []string{"mount-fails"} {
		r := recordings(t)[name]
		report := diagnose(t, r, sources(t, r, diagnosistest.Replay(r.Cluster)))
		want := "$ kubectl --namespace " + name + "-node logs cinder-csi-node-a --all-containers --since=1h"
		if do := report.Steps[len(report.Steps)-1].Do; !slices.Contains(do, want) {
			t.Errorf("want %q, got %q", want, do)
		}
	}
}

func growing(f *diagnosis.Readings) {
	expanding(f)
	f.Claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}}
}

func TestAFileSystemThatDoesNotGrowIsNamedWithTheErrorOfKubelet(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	f := readingsOf(t, r)
	growing(&f)
	diagnosed(t, f, "expand.node", "grows the file system within a few minutes")
	f.Events = []corev1.Event{{Reason: "VolumeResizeFailed", Message: "NodeExpandVolume failed: resize2fs: bad superblock", InvolvedObject: corev1.ObjectReference{Kind: "Pod"}}}
	diagnosed(t, f, "expand.node-error", "bad superblock")
}

func TestAChangeOfTheAttributesClassIsAStep(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	for _, c := range []struct {
		status corev1.PersistentVolumeClaimModifyVolumeStatus
		events []corev1.Event
		cause  string
		says   string
	}{
		{corev1.PersistentVolumeClaimModifyVolumeInfeasible, []corev1.Event{{Reason: "VolumeModifyFailed", Message: "rpc error: code = InvalidArgument desc = modify: no type fast"}}, "modify.error", "no type fast"},
		{corev1.PersistentVolumeClaimModifyVolumeInfeasible, nil, "modify.error", "infeasible"},
		{corev1.PersistentVolumeClaimModifyVolumeInProgress, nil, "modify.waiting", "VolumeAttributesClass gold"},
		{corev1.PersistentVolumeClaimModifyVolumePending, nil, "modify.waiting", "may not exist"},
	} {
		f := readingsOf(t, r)
		f.Claim.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "gold", Status: c.status}
		f.Events = c.events
		diagnosed(t, f, c.cause, c.says)
	}
}

func TestAControllerOfAnotherClusterIsNotCalledDown(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	f := readingsOf(t, r)
	attaching(&f, "rpc error: code = FailedPrecondition desc = attach: volume x is attached to server y; detach it there first [attach.elsewhere]")
	f.Controllers, f.ControllerNamed = nil, false
	report := diagnosed(t, f, "attach.elsewhere", "detach it there first")
	if len(report.Unseen) == 0 || !strings.Contains(report.Unseen[len(report.Unseen)-1].Do, "--controller-kubeconfig") {
		t.Errorf("want that the controller was not seen, got %+v", report.Unseen)
	}
	f.Attachments[0].Status.AttachError = nil
	diagnosed(t, f, "driver.unseen", "it runs in another cluster")
	now := metav1.NewTime(f.Now)
	f.Attachments[0].DeletionTimestamp, f.Pods = &now, nil
	f.Attachments[0].Status.DetachError = attachError("rpc error: code = Internal desc = Nova refuses")
	diagnosed(t, f, "detach.stuck", "Nova refuses")
	f = readingsOf(t, r)
	expanding(&f)
	f.Controllers, f.ControllerNamed = nil, false
	f.Events = []corev1.Event{{Reason: "VolumeResizeFailed", Message: "rpc error: code = Internal desc = Cinder refuses", LastTimestamp: metav1.NewTime(f.Now.Add(-time.Hour))}}
	diagnosed(t, f, "expand.error", "Cinder refuses")
}

func TestAClaimForAPersistentVolumeNeedsNoClass(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	f := readingsOf(t, r)
	none := ""
	f.Claim.Status.Phase, f.Claim.Spec.StorageClassName, f.Class = corev1.ClaimPending, &none, nil
	diagnosed(t, f, "bind.waiting", "not bound")
	f.Volume = nil
	diagnosed(t, f, "bind.waiting", "does not exist")
	f.Claim.Spec.VolumeName = ""
	diagnosed(t, f, "class.missing", "asks for no class")
}

// moving answers the second list of VolumeAttachments with what has happened since the first.
type moving struct {
	diagnosistest.Replay
	lists int
	later diagnosistest.Replay
}

func (m *moving) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/volumeattachments") {
		m.lists++
	}
	if m.lists > 1 {
		for path := range m.later {
			if strings.HasSuffix(path, r.URL.Path) || strings.Contains(path, r.URL.Path+"?") {
				return m.later.RoundTrip(r)
			}
		}
	}
	return m.Replay.RoundTrip(r)
}

// The cloud is read after Kubernetes: a pod that ends between the two looks like a volume that somebody detached.
func TestAPodThatEndsWhileItIsReadAccusesNobody(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	for path, answer := range r.Cloud {
		text := string(answer.Body)
		text = strings.ReplaceAll(text, `"status":"in-use"`, `"status":"available"`)
		if strings.Contains(path, "/attachments/detail") {
			text = `{"attachments":[]}`
		}
		if strings.Contains(path, "os-volume_attachments") {
			text = `{"volumeAttachments":[]}`
		}
		answer.Body = []byte(text)
		r.Cloud[path] = answer
	}
	none := diagnosistest.Answer{Status: http.StatusOK, Body: []byte(`{"items": []}`)}
	gone := diagnosistest.Replay{}
	for path := range r.Cluster {
		if strings.Contains(path, "/volumeattachments") || strings.HasSuffix(path, "/pods?limit=500") {
			gone[path] = none
		}
	}
	for cause, later := range map[string]diagnosistest.Replay{"attach.lost": diagnosistest.Replay(r.Cluster), diagnosis.None: gone} {
		through := &moving{Replay: diagnosistest.Replay(r.Cluster), later: later}
		if report := diagnose(t, r, sources(t, r, through)); report.Cause != cause || through.lists != 2 {
			t.Errorf("want cause %s after two lists, got %s after %d: %+v", cause, report.Cause, through.lists, report.Steps)
		}
	}
}
