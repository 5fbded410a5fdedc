package diagnosis_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

// advice is everything that a report tells somebody to do.
func advice(r diagnosis.Report) string {
	var all []string
	for _, s := range r.Steps {
		all = append(all, s.Do...)
	}
	return strings.Join(all, "\n")
}

// Nova and Cinder answer 404 for what is in another project. Who believes that the server is gone deletes a node that works.
func TestANodeThatIsReadyIsNeverCalledGone(t *testing.T) {
	gone := func(f *diagnosis.Readings) {
		for _, s := range f.Cloud.Servers {
			s.Missing = true
		}
	}
	hidden := func(f *diagnosis.Readings) {
		gone(f)
		f.Cloud.Missing, f.Cloud.Volume, f.Cloud.Attachments = true, nil, nil
	}
	notReady := func(f *diagnosis.Readings) {
		for _, n := range f.Nodes {
			n.Ready = false
		}
	}
	detaching := func(f *diagnosis.Readings) {
		at := metav1.NewTime(f.Now)
		f.Pods, f.Attachments[0].DeletionTimestamp = nil, &at
	}
	for _, test := range []struct {
		name, cause string
		change      []func(*diagnosis.Readings)
	}{
		{"another project", "volume.missing", []func(*diagnosis.Readings){hidden}},
		{"another project, node lost", "volume.missing", []func(*diagnosis.Readings){hidden, notReady}},
		{"another project, detach on a lost node", "node.not-ready", []func(*diagnosis.Readings){hidden, notReady, detaching}},
		{"another project, detach", "detach.stuck", []func(*diagnosis.Readings){hidden, detaching}},
		{"server in another project", "server.unknown", []func(*diagnosis.Readings){gone}},
		{"server in another project, volume unread", "none", []func(*diagnosis.Readings){gone, func(f *diagnosis.Readings) { f.Cloud.Volume = nil }}},
		{"server gone", "server.missing", []func(*diagnosis.Readings){gone, notReady}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := readingsOf(t, recordings(t)["nothing-hangs"])
			for _, change := range test.change {
				change(&f)
			}
			report := diagnosis.Diagnose(f)
			if report.Cause != test.cause {
				t.Errorf("want cause %s, got %s: %+v", test.cause, report.Cause, report.Steps)
			}
			if deletes := strings.Contains(advice(report), "delete node"); deletes != (test.cause == "server.missing") {
				t.Errorf("got %s", advice(report))
			}
			text, err := json.Marshal(report)
			if err != nil || !strings.Contains(string(text), "another project") {
				t.Errorf("want the wrong project as a possible cause, got %s, %v", text, err)
			}
		})
	}
}

func TestAClaimThatMayNotBeReadIsNotGone(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	namespace, name, _ := strings.Cut(r.Claim, "/")
	volume := readingsOf(t, r).Volume
	world := diagnosistest.Replay(maps.Clone(r.Cluster))
	claim := "GET /api/v1/namespaces/" + namespace + "/persistentvolumeclaims/" + name
	world["GET /api/v1/persistentvolumes/"+volume.Name] = answerOf(t, volume)
	for _, test := range []struct {
		status int
		phase  corev1.PersistentVolumePhase
		cause  string
	}{
		{http.StatusForbidden, corev1.VolumeBound, "claim.unreadable"},
		{http.StatusForbidden, corev1.VolumeReleased, "delete.waiting"},
		{http.StatusNotFound, corev1.VolumeReleased, "delete.waiting"},
		{http.StatusNotFound, corev1.VolumeFailed, "delete.waiting"},
		{http.StatusNotFound, corev1.VolumeBound, "none"},
		{http.StatusNotFound, corev1.VolumeAvailable, "none"},
	} {
		t.Run(http.StatusText(test.status)+" "+string(test.phase), func(t *testing.T) {
			world[claim] = diagnosistest.Answer{Status: test.status, Body: json.RawMessage(`{"message": "no"}`)}
			volume.Status.Phase = test.phase
			world["GET /api/v1/persistentvolumes/"+volume.Name] = answerOf(t, volume)
			readings, err := diagnosis.ReadSubject(t.Context(), sources(t, r, world), diagnosis.Subject{Kind: diagnosis.Volume, Name: volume.Name})
			if err != nil {
				t.Fatal(err)
			}
			readings.Attachments = nil
			if readings.Cloud != nil {
				readings.Cloud.Attachments = nil
			}
			report := diagnosis.Diagnose(readings)
			if report.Cause != test.cause {
				t.Errorf("want %s, got %s: %+v", test.cause, report.Cause, report.Steps)
			}
		})
	}
}

// After a reboot of its node a pod has the statuses of before, and kubelet mounts its volumes again.
func TestAPodThatRanBeforeAndDoesNotMountNowHangs(t *testing.T) {
	before := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Unknown", StartedAt: before, FinishedAt: before}}
	creating := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: before}}
	for _, test := range []struct {
		name   string
		status corev1.ContainerStatus
		event  time.Duration // from the start before; 0: none
		cause  string
	}{
		{"restarted", corev1.ContainerStatus{RestartCount: 1, State: creating}, 0, "mount.waiting"},
		{"ended before", corev1.ContainerStatus{LastTerminationState: ended, State: creating}, 0, "mount.waiting"},
		{"restarted, with an error", corev1.ContainerStatus{RestartCount: 1, LastTerminationState: ended, State: creating}, time.Hour, "mount.error"},
		{"status of before, with an error", corev1.ContainerStatus{RestartCount: 1, State: ended}, time.Hour, "mount.error"},
		{"runs by its status, with an error", corev1.ContainerStatus{State: running}, time.Hour, "mount.error"},
		{"error before the start", corev1.ContainerStatus{State: running}, -time.Hour, "none"},
		{"error before the end", corev1.ContainerStatus{State: ended}, -time.Hour, "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := readingsOf(t, recordings(t)["nothing-hangs"])
			f.Pods[0].Status.Conditions, f.Pods[0].Status.ContainerStatuses = nil, []corev1.ContainerStatus{test.status}
			f.Events = nil
			if test.event != 0 {
				other := corev1.Event{Reason: "FailedMount", Message: `MountVolume.SetUp failed for volume "settings" : not found`, LastTimestamp: metav1.NewTime(before.Add(2 * time.Hour))}
				own := corev1.Event{Reason: "FailedMount", Message: `MountVolume.MountDevice failed for volume "` + f.Volume.Name + `" : fsck`, LastTimestamp: metav1.NewTime(before.Add(test.event))}
				f.Events = []corev1.Event{other, own}
			}
			report := diagnosis.Diagnose(f)
			if report.Cause != test.cause {
				t.Errorf("want %s, got %s: %+v", test.cause, report.Cause, report.Steps)
			}
		})
	}
}

// viaVolume diagnoses a recording that begins at its PersistentVolume, after changes to both objects.
func viaVolume(t *testing.T, name string, change func(*corev1.PersistentVolume, *corev1.PersistentVolumeClaim)) (diagnosis.Readings, diagnosis.Report) {
	t.Helper()
	r := recordings(t)[name]
	readings := readingsOf(t, r)
	volume, claim := readings.Volume.DeepCopy(), readings.Claim.DeepCopy()
	change(volume, claim)
	world := diagnosistest.Replay(maps.Clone(r.Cluster))
	world["GET /api/v1/persistentvolumes/"+volume.Name] = answerOf(t, volume)
	world["GET /api/v1/namespaces/"+claim.Namespace+"/persistentvolumeclaims/"+claim.Name] = answerOf(t, claim)
	readings, err := diagnosis.ReadSubject(t.Context(), sources(t, r, world), diagnosis.Subject{Kind: diagnosis.Volume, Name: volume.Name})
	if err != nil {
		t.Fatal(err)
	}
	return readings, diagnosis.Diagnose(readings)
}

func TestAnInTreeVolumeHasTheStoryOfTheDriver(t *testing.T) {
	id := ""
	readings, report := viaVolume(t, "nothing-hangs", func(v *corev1.PersistentVolume, _ *corev1.PersistentVolumeClaim) {
		id = v.Spec.CSI.VolumeHandle
		v.Spec.CSI, v.Spec.Cinder = nil, &corev1.CinderPersistentVolumeSource{VolumeID: id}
	})
	if readings.Driver != "cinder.csi.openstack.org" || report.Cause != diagnosis.None {
		t.Errorf("driver %s, cause %s: %+v", readings.Driver, report.Cause, report.Steps)
	}
	text, err := json.Marshal(report.Steps)
	if err != nil || !strings.Contains(string(text), "Cinder volume "+id+" is in-use") || strings.Contains(string(text), "there is no volume yet") {
		t.Errorf("%v: %s", err, text)
	}
}

func TestAClaimThatIsNotBoundYetBelongsToThePersistentVolumeThatNamesIt(t *testing.T) {
	for _, test := range []struct {
		uid, volumeName string
		want            bool
		cause           string
	}{
		{"", "", true, "bind.waiting"},
		{"same", "", true, "bind.waiting"},
		{"other", "", false, "none"},
		{"", "other", false, "none"},
	} {
		readings, report := viaVolume(t, "nothing-hangs", func(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) {
			v.Status.Phase, v.Spec.ClaimRef.UID, v.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeAvailable, "", corev1.PersistentVolumeReclaimRetain
			c.Status.Phase, c.Spec.VolumeName = corev1.ClaimPending, test.volumeName
			switch test.uid {
			case "same":
				v.Spec.ClaimRef.UID = c.UID
			case "other":
				v.Spec.ClaimRef.UID = "other"
			}
		})
		readings.Attachments, readings.Cloud.Attachments = nil, nil
		if test.cause == diagnosis.None {
			report = diagnosis.Diagnose(readings)
		}
		if (readings.Claim != nil) != test.want || report.Cause != test.cause {
			t.Errorf("%+v: claim %v, cause %s: %+v", test, readings.Claim != nil, report.Cause, report.Steps)
		}
	}
}

func TestOnlyTheControllersOfTheDriverSayItsClusterID(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	world := diagnosistest.Replay(maps.Clone(r.Cluster))
	pod := func(name, driver, id string) string {
		return `{"metadata": {"namespace": "` + r.Namespace + `", "name": "` + name + `"}, "spec": {"containers": [{"name": "driver", "image": "cinder-csi-driver", "args": ["--driver-name=` + driver + `", "--cluster=` + id + `"]}]}}`
	}
	world["GET /api/v1/namespaces/"+r.Namespace+"/"+controllerPods] = diagnosistest.Answer{
		Status: http.StatusOK, Body: json.RawMessage(`{"items": [` + pod("a", "other.example.org", "green") + `,` + pod("b", "cinder.csi.openstack.org", "blue") + `]}`),
	}
	changed := *r
	changed.Cloud = maps.Clone(r.Cloud)
	for request, a := range r.Cloud {
		if _, id, found := strings.Cut(request, "/volumes/"); found && !strings.ContainsAny(id, "/?") {
			var one struct{ Volume map[string]any }
			if err := json.Unmarshal(a.Body, &one); err != nil {
				t.Fatal(err)
			}
			one.Volume["metadata"] = map[string]string{"cinder.csi.openstack.org/cluster": "blue"}
			changed.Cloud[request] = answerOf(t, map[string]any{"volume": one.Volume})
		}
	}
	namespace, name, _ := strings.Cut(r.Claim, "/")
	readings, err := diagnosis.Read(t.Context(), sources(t, &changed, world), namespace, name)
	if err != nil || readings.ClusterID != "blue" {
		t.Errorf("want blue, got %q, %v", readings.ClusterID, err)
	}
}
