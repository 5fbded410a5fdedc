package diagnosis_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

// readingsOf are those of a recording.
func readingsOf(t *testing.T, r *diagnosistest.Recording) diagnosis.Readings {
	t.Helper()
	namespace, name, _ := strings.Cut(r.Claim, "/")
	readings, err := diagnosis.Read(t.Context(), sources(t, r, diagnosistest.Replay(r.Cluster)), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return readings
}

// provisioning makes the claim of a running pod one that has no volume yet.
func provisioning(f *diagnosis.Readings, message string) {
	f.Claim.Status.Phase, f.Claim.Spec.VolumeName, f.Volume, f.Cloud.Volume = corev1.ClaimPending, "", nil, nil
	f.Events = []corev1.Event{{Reason: "ProvisioningFailed", Message: message, LastTimestamp: metav1.NewTime(f.Now)}}
}

func attachError(message string) *storagev1.VolumeError {
	return &storagev1.VolumeError{Message: message}
}

// undeletable is a deleted claim whose volume Cinder could not delete, in cluster blue.
func undeletable(f *diagnosis.Readings, mark string) {
	f.Pods, f.Attachments, f.Cloud.Attachments = nil, nil, nil
	f.Claim = nil
	f.Volume.Status.Phase, f.Volume.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
	f.ClusterID, f.Cloud.Volume.Status = "blue", "error_deleting"
	f.Cloud.Volume.Metadata = map[string]string{"cinder.csi.openstack.org/cluster": mark}
}

// attaching makes the VolumeAttachment of a running pod one that is not attached.
func attaching(f *diagnosis.Readings, message string) {
	f.Pods[0].Status.Conditions = nil
	f.Attachments[0].Status = storagev1.VolumeAttachmentStatus{}
	if message != "" {
		f.Attachments[0].Status.AttachError = attachError(message)
	}
}

// unreadable takes the right to read VolumeAttachments away; the pod has an event of the attach.
func unreadable(f *diagnosis.Readings, message string) {
	attaching(f, "")
	f.Attachments, f.Gaps = nil, []diagnosis.Gap{{What: "the VolumeAttachments", Why: "denied"}}
	f.Events = []corev1.Event{{Reason: "FailedAttachVolume", Message: message}}
}

// expanding makes the claim ask for more than it has.
func expanding(f *diagnosis.Readings) {
	f.Claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
}

// deleting deletes the claim; its PersistentVolume is Released, and detached.
func deleting(f *diagnosis.Readings) {
	f.Claim, f.Pods, f.Attachments, f.Cloud.Attachments = nil, nil, nil, nil
	f.Volume.Status.Phase = corev1.VolumeReleased
}

// changes are made to the readings of a claim that does not hang. says is a part of what the first step that hangs says.
var changes = []struct {
	name, cause, says string
	change            func(f *diagnosis.Readings)
}{
	{"wrong name", "claim.missing", "there is no claim", func(f *diagnosis.Readings) { *f = diagnosis.Readings{Namespace: "a", Name: "b", Now: f.Now} }},
	{"claim that may not be read", "claim.unreadable", "cannot be read", func(f *diagnosis.Readings) {
		*f = diagnosis.Readings{Namespace: "a", Name: "b", Now: f.Now, Gaps: []diagnosis.Gap{{What: "the claim"}}}
	}},
	{"PersistentVolume is gone", "claim.lost", "Lost", func(f *diagnosis.Readings) { f.Claim.Status.Phase, f.Volume = corev1.ClaimLost, nil }},
	{"no class and no default", "class.missing", "names no StorageClass", func(f *diagnosis.Readings) {
		provisioning(f, "")
		f.Claim.Spec.StorageClassName, f.Class = nil, nil
	}},
	{"pod without a node", "pod.unschedulable", "Insufficient cpu", func(f *diagnosis.Readings) {
		f.Pods[0].Spec.NodeName = ""
		f.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 Insufficient cpu."}}
	}},
	{"lease expired", "driver.no-leader", "cinder-csi/cinder-csi-openstack-org", func(f *diagnosis.Readings) {
		provisioning(f, "")
		f.Events, f.Leases = nil, []diagnosis.Lease{{Name: "cinder-csi/cinder-csi-openstack-org", Holder: "cinder-csi-controller-1", Until: f.Now.Add(-time.Minute)}}
	}},
	{"right is missing", "cloud.rights", "policy", func(f *diagnosis.Readings) {
		provisioning(f, "rpc error: code = PermissionDenied desc = create volume: Cinder answers HTTP 403: policy does not allow this [cloud.rights]")
	}},
	{"an access rule is missing, or a clock is wrong", "cloud.token-refused", "HTTP 401", func(f *diagnosis.Readings) {
		provisioning(f, "rpc error: code = PermissionDenied desc = create: volume pvc-1: Cinder answers HTTP 401: it refuses a token that Keystone has just issued. "+
			"Either the application credential lacks the access rule volumev3 POST /v3/*/volumes, or a clock of the cloud is wrong; cinder-csi-generator doctor says which [cloud.token-refused]")
	}},
	// The text that the driver gave on a real cluster, after a recovery with another cluster ID.
	{"the driver protects the other cluster", "volume.other-cluster", `mark of cluster "first"`, func(f *diagnosis.Readings) {
		provisioning(f, `rpc error: code = PermissionDenied desc = attach: volume f6a9fced-b0cd-4300-8430-1a1118541758 carries the mark of cluster "first", `+
			`and this driver serves cluster "second". With --protect-other-clusters the driver leaves the objects of other clusters alone [volume.other-cluster]`)
	}},
	{"refused", "request.invalid", "hint", func(f *diagnosis.Readings) {
		provisioning(f, "rpc error: code = InvalidArgument desc = create: a scheduler hint names a server [request.invalid]")
	}},
	{"error in Cinder without an event", "create.error", "out of order", func(f *diagnosis.Readings) {
		volume := *f.Cloud.Volume
		provisioning(f, "")
		f.Events, f.Cloud.Volume, f.Cloud.Message = nil, &volume, "the backend is out of order"
		volume.Status = "error"
	}},
	{"PersistentVolume of another claim", "bind.other-claim", "belongs to another claim: victim/data", func(f *diagnosis.Readings) {
		f.Volume.Spec.ClaimRef.Namespace, f.Volume.Spec.ClaimRef.Name = "victim", "data"
	}},
	{"not bound yet", "bind.waiting", "not bound", func(f *diagnosis.Readings) { f.Claim.Status.Phase = corev1.ClaimPending }},
	{"volume was deleted", "volume.missing", "Cinder has no volume", func(f *diagnosis.Readings) { f.Cloud.Missing, f.Cloud.Volume = true, nil }},
	{"volume was deleted, and no pod uses it", "volume.missing", "Cinder has no volume", func(f *diagnosis.Readings) {
		f.Pods, f.Attachments, f.Cloud.Attachments, f.Cloud.Missing, f.Cloud.Volume = nil, nil, nil, true, nil
	}},
	{"volume was deleted with its VolumeAttachment", "volume.missing", "Cinder has no volume", func(f *diagnosis.Readings) {
		f.Pods, f.Cloud.Attachments, f.Cloud.Missing, f.Cloud.Volume = nil, nil, true, nil
	}},
	{"volume in error, and no pod uses it", "volume.error", "is error", func(f *diagnosis.Readings) {
		f.Pods, f.Attachments, f.Cloud.Attachments = nil, nil, nil
		f.Cloud.Volume.Status = "error"
	}},
	{"volume in error", "volume.error", "is error", func(f *diagnosis.Readings) { f.Cloud.Volume.Status = "error" }},
	{"Cinder cannot delete the volume", "volume.delete-error", "error_deleting", func(f *diagnosis.Readings) { undeletable(f, "blue") }},
	{"Cinder cannot delete another cluster's volume", "volume.other-cluster", `mark of cluster "green"`, func(f *diagnosis.Readings) { undeletable(f, "green") }},
	{"attach fails", "attach.host", "FailedPrecondition", func(f *diagnosis.Readings) {
		attaching(f, "rpc error: code = FailedPrecondition desc = attach: the host failed to attach the volume [attach.host]")
	}},
	{"attach with a gone cloud", "cloud.unreachable", "503", func(f *diagnosis.Readings) {
		attaching(f, "rpc error: code = Unavailable desc = read volume: HTTP 503 [cloud.unreachable]")
	}},
	{"attach in progress", "attach.waiting", "the driver attaches", func(f *diagnosis.Readings) { attaching(f, "") }},
	{"attach without a VolumeAttachment", "attach.waiting", "no VolumeAttachment", func(f *diagnosis.Readings) {
		attaching(f, "")
		f.Attachments = nil
	}},
	{"attach without a driver", "driver.not-running", "no controller pod", func(f *diagnosis.Readings) {
		attaching(f, "")
		f.Controllers = nil
	}},
	{"detach without an attacher", "driver.no-leader", "external-attacher", func(f *diagnosis.Readings) {
		now := metav1.NewTime(f.Now)
		f.Pods, f.Attachments[0].DeletionTimestamp = nil, &now
		f.Leases = []diagnosis.Lease{{Name: "cinder-csi/external-attacher-leader-cinder-csi-openstack-org", Until: f.Now.Add(-time.Minute)}}
	}},
	{"attachments that may not be read", "attach.elsewhere", "another node", func(f *diagnosis.Readings) {
		unreadable(f, `Multi-Attach error for volume "pvc-u" Volume is already used by pod(s) app-0`)
	}},
	{"failed attachment that may not be read", "attach.limit", "maximum", func(f *diagnosis.Readings) {
		unreadable(f, "AttachVolume.Attach failed for volume \"pvc-u\" : rpc error: code = ResourceExhausted desc = attach volume: The maximum allowed number of disk devices")
	}},
	{"CSINode with the server of another node", "server.conflict", "names server", func(f *diagnosis.Readings) {
		for _, n := range f.Nodes {
			n.Provider = otherServer
		}
	}},
	{"node is gone", "node.not-ready", "does not exist in Kubernetes", func(f *diagnosis.Readings) {
		for _, n := range f.Nodes {
			n.Missing, n.Ready = true, false
		}
	}},
	{"pod starts", "mount.waiting", "does not run yet", func(f *diagnosis.Readings) {
		f.Pods[0].Status.Conditions = nil
		f.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	}},
	{"read-only after an error", "mount.read-only", "is read-only on node", func(f *diagnosis.Readings) {
		f.Nodes[f.Pods[0].Spec.NodeName].Finding = "FileSystemReadOnly"
	}},
	{"errors in the file system", "mount.unhealthy", "has errors on node", func(f *diagnosis.Readings) {
		f.Nodes[f.Pods[0].Spec.NodeName].Finding = "FileSystemErrors"
	}},
	{"a disk that hangs", "mount.unhealthy", "does not work on node", func(f *diagnosis.Readings) {
		f.Nodes[f.Pods[0].Spec.NodeName].Finding = "NotResponding"
	}},
	{"expand fails", "quota.exceeded", "quota", func(f *diagnosis.Readings) {
		expanding(f)
		f.Events = []corev1.Event{{Reason: "VolumeResizeFailed", Message: "rpc error: code = ResourceExhausted desc = extend volume: Quota exceeded [quota.exceeded]"}}
	}},
	{"expand in progress", "expand.waiting", "asks for 5Gi", expanding},
	{"deleted, but in use", "delete.in-use", "pods use the claim", func(f *diagnosis.Readings) {
		now := metav1.NewTime(f.Now)
		f.Claim.DeletionTimestamp = &now
	}},
	{"delete in progress", "delete.waiting", "the driver deletes", deleting},
	{"delete is refused", "volume.dependents", "snapshots", func(f *diagnosis.Readings) {
		deleting(f)
		f.Events = []corev1.Event{{Reason: "VolumeFailedDelete", Message: "rpc error: code = FailedPrecondition desc = delete: the volume has snapshots [volume.dependents]"}}
	}},
	{"kept", "none", "", func(f *diagnosis.Readings) {
		deleting(f)
		f.Volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}},
}

func TestEachChangeOfAHealthyClaimIsNamedWithItsCause(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			f := readingsOf(t, r)
			c.change(&f)
			report := diagnosis.Diagnose(f)
			if report.Cause != c.cause {
				t.Fatalf("want cause %s, got %s: %+v", c.cause, report.Cause, report.Steps)
			}
			last := report.Steps[len(report.Steps)-1]
			if text := last.What + " " + last.Why; c.cause != diagnosis.None && !strings.Contains(strings.ToLower(text), strings.ToLower(c.says)) {
				t.Errorf("want %q in %q", c.says, text)
			}
		})
	}
}

// DNS, proxy and firewall are not what is wrong then.
func TestACertificateOfAnUnknownCAHasItsOwnAdvice(t *testing.T) {
	for _, text := range []string{
		"rpc error: code = Unavailable desc = cloud of cloud.conf: cannot reach Keystone at https://k/v3: tls: failed to verify certificate: x509: certificate signed by unknown authority [cloud.certificate]",
		"rpc error: code = Unavailable desc = cloud of cloud.conf: CA file: open /etc/ca.pem: no such file or directory [cloud.settings]",
	} {
		f := readingsOf(t, recordings(t)["nothing-hangs"])
		attaching(&f, text)
		steps := diagnosis.Diagnose(f).Steps
		if do := strings.Join(steps[len(steps)-1].Do, " "); !strings.Contains(do, "Replace the credentials of the driver") || strings.Contains(do, "firewall") {
			t.Errorf("%s: advice %q", text, do)
		}
	}
}

func TestEachCauseThatTheDiagnosisFindsHasACase(t *testing.T) {
	covered := map[string]bool{}
	for _, r := range recordings(t) {
		covered[r.Cause] = true
	}
	for _, c := range changes {
		covered[c.cause] = true
	}
	for _, c := range contradictions {
		covered[c.cause] = true
	}
	for _, c := range olderErrors {
		covered[c.want] = true
	}
	for _, c := range []string{"driver.unseen", "expand.node-error", "modify.error", "modify.waiting"} {
		covered[c] = true // tests of their own
	}
	for _, c := range cause.All() {
		if !covered[string(c.ID)] && !c.Driver() {
			t.Errorf("no test has cause %s", c.ID)
		}
	}
}

// olderErrors are those of a driver that names no cause.
var olderErrors = []struct {
	text, want string
	change     func(f *diagnosis.Readings, text string)
}{
	{"rpc error: code = ResourceExhausted desc = Quota exceeded", "quota.exceeded", provisioning},
	{"rpc error: code = Internal desc = CreateVolume failed with error Bad request", "create.refused", provisioning},
	{"rpc error: code = Unauthenticated desc = no", "cloud.credentials", provisioning},
	{"rpc error: code = PermissionDenied desc = no", "cloud.rights", provisioning},
	{"rpc error: code = Unavailable desc = no", "cloud.unreachable", attaching},
	{"rpc error: code = Internal desc = [ControllerPublishVolume] Attach Volume failed", "attach.error", attaching},
	{"rpc error: code = Internal desc = expand failed", "expand.error", func(f *diagnosis.Readings, text string) {
		expanding(f)
		f.Events = []corev1.Event{{Reason: "VolumeResizeFailed", Message: text}}
	}},
	{"rpc error: code = Internal desc = delete failed", "delete.error", func(f *diagnosis.Readings, text string) {
		deleting(f)
		f.Events = []corev1.Event{{Reason: "VolumeFailedDelete", Message: text}}
	}},
	{"rpc error: code = Internal desc = mount failed", "mount.error", func(f *diagnosis.Readings, text string) {
		f.Pods[0].Status.Conditions, f.Pods[0].Status.ContainerStatuses = nil, nil
		f.Events = []corev1.Event{{Reason: "FailedMount", Message: text, InvolvedObject: corev1.ObjectReference{Kind: "Pod"}, LastTimestamp: metav1.NewTime(f.Now)}}
	}},
}

func TestAnErrorWithoutAnIDGetsTheCauseOfItsStepAndCode(t *testing.T) {
	for _, c := range olderErrors {
		f := readingsOf(t, recordings(t)["nothing-hangs"])
		c.change(&f, c.text)
		if report := diagnosis.Diagnose(f); report.Cause != c.want {
			t.Errorf("%s: want %s, got %s", c.text, c.want, report.Cause)
		}
	}
}

// word is a word of a sentence: no code, no ID of a cause, no field of Kubernetes.
var word = regexp.MustCompile(`[A-Za-z]{2,}`)

// otherWords replaces every English word of the message of a driver error. It keeps code, numbers, and the ID of the cause.
func otherWords(text string) string {
	before, message, isError := strings.Cut(text, " desc = ")
	at := strings.LastIndex(message, " [")
	if !isError || at < 0 {
		return text
	}
	return before + " desc = " + word.ReplaceAllString(message[:at], "Wort") + message[at:]
}

// A better sentence in the driver must not break a diagnosis.
func TestTheWordsOfAnErrorOfTheDriverDecideNothing(t *testing.T) {
	changed := 0
	reworded := func(f *diagnosis.Readings) {
		count := func(text string) string {
			other := otherWords(text)
			if other != text {
				changed++
			}
			return other
		}
		for i := range f.Events {
			f.Events[i].Message = count(f.Events[i].Message)
		}
		for _, a := range f.Attachments {
			for _, e := range []*storagev1.VolumeError{a.Status.AttachError, a.Status.DetachError} {
				if e != nil {
					e.Message = count(e.Message)
				}
			}
		}
		for i := range f.Operations {
			f.Operations[i].LastError = strings.TrimPrefix(count(" desc = "+f.Operations[i].LastError), " desc = ")
		}
	}
	for name, r := range recordings(t) {
		f := readingsOf(t, r)
		reworded(&f)
		if report := diagnosis.Diagnose(f); report.Cause != r.Cause {
			t.Errorf("%s: want %s with other words, got %s", name, r.Cause, report.Cause)
		}
	}
	for _, c := range changes {
		f := readingsOf(t, recordings(t)["nothing-hangs"])
		c.change(&f)
		reworded(&f)
		if report := diagnosis.Diagnose(f); report.Cause != c.cause {
			t.Errorf("%s: want %s with other words, got %s", c.name, c.cause, report.Cause)
		}
	}
	if changed < 20 {
		t.Errorf("only %d messages have words", changed)
	}
}

// A controller in another cluster cannot be seen here, but its events can.
func TestAFreshEventOfTheProvisionerProvesThatItRunsSomewhere(t *testing.T) {
	f := readingsOf(t, recordings(t)["nothing-hangs"])
	provisioning(&f, "rpc error: code = ResourceExhausted desc = create volume: Quota exceeded [quota.gigabytes]")
	f.Controllers = nil
	if report := diagnosis.Diagnose(f); report.Cause != "quota.gigabytes" {
		t.Errorf("want quota.gigabytes, got %s", report.Cause)
	}
}

// A reset lets the driver delete the volume, so it is printed for a volume that shows whose it is.
func TestAStatusIsResetForAVolumeOfThisClusterOnly(t *testing.T) {
	for _, test := range []struct {
		id, mark string
		command  bool
	}{{"blue", "blue", true}, {"blue", "", false}, {"", "blue", false}, {"", "", false}} {
		f := readingsOf(t, recordings(t)["nothing-hangs"])
		undeletable(&f, test.mark)
		f.ClusterID = test.id
		steps := diagnosis.Diagnose(f).Steps
		do := strings.Join(steps[len(steps)-1].Do, "\n")
		if got := strings.Contains(do, "openstack volume set --state"); got != test.command || !test.command && !strings.Contains(do, "find out whose it is") {
			t.Errorf("cluster %q, mark %q: %s", test.id, test.mark, do)
		}
	}
}
