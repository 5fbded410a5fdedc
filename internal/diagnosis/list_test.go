package diagnosis_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

// listOf lists a cluster with the objects of a recording. The lists are made of the recorded objects; the project has one page of Cinder.
func listOf(t *testing.T, r *diagnosistest.Recording) diagnosis.ListReadings {
	t.Helper()
	f := listIn(t, r, func(diagnosistest.Replay) {})
	if len(f.Gaps) > 0 || !f.CinderRead {
		t.Fatalf("%+v", f.Gaps)
	}
	return f
}

// listIn is listOf for a cluster that has changed.
func listIn(t *testing.T, r *diagnosistest.Recording, change func(world diagnosistest.Replay)) diagnosis.ListReadings {
	t.Helper()
	readings := readingsOf(t, r)
	world, cloud := diagnosistest.Replay(maps.Clone(r.Cluster)), maps.Clone(r.Cloud)
	lists := map[string]any{
		"/api/v1/persistentvolumes": []any{readings.Volume}, "/api/v1/persistentvolumeclaims": []any{readings.Claim}, "/api/v1/pods": readings.Pods, "/apis/storage.k8s.io/v1/volumeattachments": readings.Attachments,
	}
	var nodes []storagev1.CSINode
	for name, n := range readings.Nodes {
		nodes = append(nodes, storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{*n.Driver}}})
	}
	lists["/apis/storage.k8s.io/v1/csinodes"] = nodes
	lists["/api/v1/nodes"] = []any{}
	for path, items := range lists {
		world["GET "+path+"?limit=500"] = answerOf(t, map[string]any{"items": items})
	}
	world["GET /apis/storage.k8s.io/v1/csidrivers?labelSelector=app.kubernetes.io%2Fname%3Dcinder-csi&limit=500"] = answerOf(t, map[string]any{"items": []any{}})
	for request, a := range r.Cloud {
		path, id, found := strings.Cut(request, "/volumes/")
		if found && !strings.ContainsAny(id, "/?") {
			var one struct{ Volume json.RawMessage }
			if err := json.Unmarshal(a.Body, &one); err != nil {
				t.Fatal(err)
			}
			cloud[path+"/volumes/detail?limit=1000"] = answerOf(t, map[string]any{"volumes": []any{one.Volume}})
		}
	}
	changed := *r
	changed.Cloud = cloud
	change(world)
	f, err := diagnosis.ReadList(t.Context(), sources(t, &changed, world))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func answerOf(t *testing.T, value any) diagnosistest.Answer {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return diagnosistest.Answer{Status: http.StatusOK, Body: text}
}

func TestTheListNamesWhatKubernetesAndCinderSayDifferently(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	id := ""
	cinder := func(change func(*diagnosis.ListedVolume)) func(*diagnosis.ListReadings) {
		return func(f *diagnosis.ListReadings) {
			v := f.Cinder[id]
			v.Attachments = slices.Clone(v.Attachments)
			change(&v)
			f.Cinder[id] = v
		}
	}
	for _, test := range []struct {
		name, want string // empty: no finding
		change     func(*diagnosis.ListReadings)
	}{
		{"as it should be", "", func(*diagnosis.ListReadings) {}},
		{"without Cinder", "", func(f *diagnosis.ListReadings) { f.Cinder, f.CinderRead = nil, false }},
		{"ID in upper case", "", func(f *diagnosis.ListReadings) {
			f.Volumes[0].Spec.CSI.VolumeHandle = strings.ToUpper(f.Volumes[0].Spec.CSI.VolumeHandle)
		}},
		{"in-tree", "", func(f *diagnosis.ListReadings) {
			s := &f.Volumes[0].Spec
			s.Cinder, s.CSI = &corev1.CinderPersistentVolumeSource{VolumeID: s.CSI.VolumeHandle}, nil
		}},
		{"lost", "not in this project: lost, or of another project or cloud", func(f *diagnosis.ListReadings) { f.Cinder = nil }},
		{"error", "status error_extending", cinder(func(v *diagnosis.ListedVolume) { v.Status = "error_extending" })},
		{"smaller", "Cinder has 1 GiB, the PersistentVolume says 2Gi", func(f *diagnosis.ListReadings) {
			f.Volumes[0].Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
		}},
		{"detached in Cinder", "Cinder does not", cinder(func(v *diagnosis.ListedVolume) { v.Attachments = nil })},
		{"attached behind Kubernetes", otherServer, cinder(func(v *diagnosis.ListedVolume) {
			v.Attachments = append(v.Attachments, v.Attachments[0])
			v.Attachments[1].Server = otherServer
		})},
		{"attachments unread", "", func(f *diagnosis.ListReadings) {
			f.Attachments, f.Gaps = nil, []diagnosis.Gap{{What: "the VolumeAttachments"}}
		}},
		{"node whose server is unknown", "", func(f *diagnosis.ListReadings) { f.Servers = nil }},
		{"attach fails", "attach to node nothing-hangs-a fails: Internal: broken", func(f *diagnosis.ListReadings) {
			f.Attachments[0].Status = storagev1.VolumeAttachmentStatus{AttachError: attachError("rpc error: code = Internal desc = broken")}
		}},
		{"attach takes long", "attach to node nothing-hangs-a takes", func(f *diagnosis.ListReadings) {
			f.Attachments[0].Status.Attached, f.Now = false, f.Now.Add(time.Hour)
		}},
		{"detach takes long", "detach from node nothing-hangs-a takes", func(f *diagnosis.ListReadings) {
			at := metav1.NewTime(f.Now.Add(-time.Hour))
			f.Attachments[0].DeletionTimestamp = &at
		}},
		{"detach fails", "detach from node nothing-hangs-a fails: broken", func(f *diagnosis.ListReadings) {
			at := metav1.NewTime(f.Now)
			f.Attachments[0].DeletionTimestamp, f.Attachments[0].Status.DetachError = &at, attachError("broken")
		}},
		{"failed", "is Failed: cannot delete", func(f *diagnosis.ListReadings) {
			f.Volumes[0].Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeFailed, Message: "cannot delete"}
		}},
		{"two of one volume", "PersistentVolume second names the same volume", func(f *diagnosis.ListReadings) {
			second := f.Volumes[0].DeepCopy()
			second.Name, second.Spec.ClaimRef = "second", nil
			f.Volumes = append(f.Volumes, *second)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := listOf(t, r)
			id = f.Volumes[0].Spec.CSI.VolumeHandle
			test.change(&f)
			l := diagnosis.List(f)
			found := ""
			for _, v := range l.Volumes {
				if v.Claim == r.Claim {
					found = strings.Join(v.Findings, "; ")
				}
			}
			if (found == "") != (test.want == "") || !strings.Contains(found, test.want) {
				t.Errorf("want %q, got %q", test.want, found)
			}
			var text strings.Builder
			if err := diagnosis.PrintList(&text, l, nil, 200); err != nil || !strings.Contains(text.String(), test.want) {
				t.Errorf("%v: %s", err, text.String())
			}
		})
	}
}

func TestVolumesOfOtherDriversAreNotListed(t *testing.T) {
	f := listOf(t, recordings(t)["nothing-hangs"])
	f.Volumes[0].Spec.CSI.Driver = "nfs.csi.k8s.io"
	if l := diagnosis.List(f); len(l.Volumes) != 0 {
		t.Errorf("want none, got %+v", l.Volumes)
	}
}

func TestAListWithoutTheCloudSaysWhatItDidNotSee(t *testing.T) {
	r := recordings(t)["nothing-hangs"]
	f := listOf(t, r)
	row := diagnosis.List(f).Volumes[0]
	if row.Claim != r.Claim || row.Status != "in-use" || row.Size != 1 || len(row.Pods) != 1 || len(row.Nodes) != 1 || len(row.Servers) != 1 {
		t.Errorf("got %+v", row)
	}
	f.Gaps = []diagnosis.Gap{{What: "the volumes in Cinder", Why: "no credentials are given"}}
	var text strings.Builder
	if err := diagnosis.PrintList(&text, diagnosis.List(f), nil, 100); err != nil || !strings.Contains(text.String(), "Not seen:\n  the volumes in Cinder: no credentials are given") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// A PersistentVolume that was released keeps the name of its claim, and a pod uses the claim of this name that was made later.
func TestThePodsOfAClaimAreNotThoseOfAnEarlierVolumeOfItsName(t *testing.T) {
	for name, change := range map[string]func(*diagnosis.ListReadings, *corev1.PersistentVolume){
		"released": func(_ *diagnosis.ListReadings, old *corev1.PersistentVolume) {
			old.Status.Phase, old.Spec.ClaimRef.UID = corev1.VolumeReleased, ""
		},
		"released, and the claims cannot be read": func(f *diagnosis.ListReadings, old *corev1.PersistentVolume) {
			f.Claims, old.Status.Phase = nil, corev1.VolumeReleased
		},
		"failed": func(f *diagnosis.ListReadings, old *corev1.PersistentVolume) {
			f.Claims, old.Status.Phase = nil, corev1.VolumeFailed
		},
		"of the UID of the earlier claim, and the claim is not bound yet": func(f *diagnosis.ListReadings, old *corev1.PersistentVolume) {
			old.Spec.ClaimRef.UID = "earlier"
			for name, c := range f.Claims {
				c.Spec.VolumeName = ""
				f.Claims[name] = c
			}
		},
		"not the volume of the claim": func(_ *diagnosis.ListReadings, old *corev1.PersistentVolume) { old.Spec.ClaimRef.UID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			f := listOf(t, recordings(t)["nothing-hangs"])
			old := f.Volumes[0].DeepCopy()
			old.Name, old.Spec.CSI.VolumeHandle = "old", id(1)
			change(&f, old)
			f.Volumes = append(f.Volumes, *old)
			for _, v := range diagnosis.List(f).Volumes {
				want := 1
				if v.Volume == "old" {
					want = 0
				}
				if len(v.Pods) != want {
					t.Errorf("PersistentVolume %s: want %d pods, got %q", v.Volume, want, v.Pods)
				}
			}
		})
	}
}

// The API server wants only the names of the volumes of a pod to differ.
func TestAPodThatNamesAClaimManyTimesIsListedOnce(t *testing.T) {
	f := listOf(t, recordings(t)["nothing-hangs"])
	p := &f.Pods[0]
	p.Spec.Volumes = slices.Repeat(p.Spec.Volumes, 20)
	if got := diagnosis.List(f).Volumes[0].Pods; !slices.Equal(got, []string{p.Name}) {
		t.Errorf("want the pod once, got %v", got)
	}
}
