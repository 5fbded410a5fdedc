package diagnosis_test

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write what the reports say into testdata")

// sources replays a recording. The cluster is read through a transport that may refuse.
func sources(t *testing.T, r *diagnosistest.Recording, through http.RoundTripper) diagnosis.Clients {
	t.Helper()
	base := &url.URL{Scheme: "https", Host: "cluster.example"}
	from := diagnosis.Clients{Cluster: cluster.New("test", base, &http.Client{Transport: through}), Namespace: r.Namespace, Page: r.Page, Now: r.Now}
	if r.NoCloud {
		from.NoCloud = diagnosis.Gap{What: "the cloud", Why: "no login"}
		return from
	}
	settings := cloud.Settings{Name: "sim-demo", AuthURL: recordedCloud(t, r) + "/identity/v3", Username: "demo", Password: "recorded", UserDomainName: "Default", ProjectName: "demo", ProjectDomainName: "Default", Region: "RegionOne"}
	c, err := cloud.Connect(t.Context(), settings, cloud.Options{Transport: diagnosistest.Replay(r.Cloud)})
	if err != nil {
		t.Fatal(err)
	}
	from.Cloud = c
	return from
}

// recordedCloud is the address of the cloud at the time of the recording, which the catalog names.
func recordedCloud(t *testing.T, r *diagnosistest.Recording) string {
	t.Helper()
	text, err := json.Marshal(r.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), `"url":"http://`)
	if !found {
		t.Fatal("the recording has no catalog")
	}
	host, _, _ := strings.Cut(after, "/")
	return "http://" + host
}

func diagnose(t *testing.T, r *diagnosistest.Recording, from diagnosis.Clients) diagnosis.Report {
	t.Helper()
	namespace, name, _ := strings.Cut(r.Claim, "/")
	readings, err := diagnosis.Read(t.Context(), from, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return diagnosis.Diagnose(readings)
}

func recordings(t *testing.T) map[string]*diagnosistest.Recording {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 20 {
		t.Fatalf("want at least 20 recordings, got %d: %v", len(files), err)
	}
	all := map[string]*diagnosistest.Recording{}
	for _, file := range files {
		r, err := diagnosistest.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = r
	}
	return all
}

// The recordings come from a real API server, the driver and a simulated cloud: make test-apiserver CASE=hangs.
func TestEachRecordedHangIsNamedWithItsCause(t *testing.T) {
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			report := diagnose(t, r, sources(t, r, diagnosistest.Replay(r.Cluster)))
			if report.Cause != r.Cause {
				t.Errorf("want cause %s, got %s", r.Cause, report.Cause)
			}
			var got strings.Builder
			if err := diagnosis.Print(&got, report, 100); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", got.String())
			blocked := false
			for _, s := range report.Steps {
				hangs := s.State == diagnosis.Waiting || s.State == diagnosis.Failed
				if hangs && len(s.Do) == 0 {
					t.Errorf("step %s says nothing of what to do", s.Name)
				}
				blocked = blocked || hangs
			}
			if blocked == (r.Cause == diagnosis.None) {
				t.Errorf("cause %s, and steps %+v", r.Cause, report.Steps)
			}
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		testfile.Write(t, file, got, 0o644)
	}
	want := testfile.Read(t, file)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; if that is right, run with -update (-want +got):\n%s", file, diff)
	}
}

// refusing answers 403 for what an ordinary user of a namespace may not read.
type refusing struct{ next http.RoundTripper }

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, "/namespaces/") && !strings.Contains(request.URL.Path, "/leases") {
		return r.next.RoundTrip(request)
	}
	return diagnosistest.Replay{request.Method + " " + request.URL.RequestURI(): {Status: http.StatusForbidden, Body: json.RawMessage(`{"message": "forbidden"}`)}}.RoundTrip(request)
}

func TestWithoutRightsInTheClusterTheStoryGoesOnAndNamesWhatIsNotSeen(t *testing.T) {
	for name, r := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			report := diagnose(t, r, sources(t, r, refusing{diagnosistest.Replay(r.Cluster)}))
			if len(report.Steps) == 0 || len(report.Unseen) == 0 {
				t.Errorf("want steps and what is not seen, got %+v", report)
			}
			for _, s := range report.Steps {
				if strings.Contains(s.What, "does not exist") && s.Name != "source" {
					t.Errorf("what may not be read is called missing: %+v", s)
				}
			}
		})
	}
}

func TestWithoutCredentialsAndPortForwardTheStorySaysWhatItCouldNotSee(t *testing.T) {
	r := recordings(t)["attaching-stuck"]
	from := sources(t, r, diagnosistest.Replay(r.Cluster))
	from.Cloud, from.NoCloud = nil, diagnosis.Gap{What: "the volume in Cinder", Why: "no credentials are given"}
	r.Pages = nil
	report := diagnose(t, r, from)
	if report.Cause != "attach.waiting" || !report.Hangs() {
		t.Errorf("want the attach to wait, got %+v", report)
	}
	var text strings.Builder
	if err := diagnosis.Print(&text, report, 100); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Not seen:", "no credentials are given", "kubectl --namespace attaching-stuck port-forward"} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("want %q in:\n%s", want, text.String())
		}
	}
}

func TestOnlyQuotasWithoutRoomAreNamed(t *testing.T) {
	r := recordings(t)["quota-full"]
	report := diagnose(t, r, sources(t, r, diagnosistest.Replay(r.Cluster)))
	why := report.Steps[len(report.Steps)-1].Why
	if !strings.HasSuffix(why, "; quota gigabytes is 0, of which 0 are used or reserved") {
		t.Errorf("want the one full quota at the end, got %s", why)
	}
}

func TestAClusterThatDoesNotAnswerIsAnError(t *testing.T) {
	r := recordings(t)["no-pod"]
	from := sources(t, r, diagnosistest.Replay{})
	if _, err := diagnosis.Read(t.Context(), from, "shop", "data"); !errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("want ErrUnreachable, got %v", err)
	}
}

// What the reader of a report copies asks the cloud and the cluster that the report is about.
func TestTheCommandsOfAReportHaveTheFlagsOfItsReader(t *testing.T) {
	given := diagnosis.Given{"openstack": {"--os-cloud", "my cloud"}, "cinder-csi-generator": {"--os-cloud", "my cloud"}, "kubectl": {"--context", "prod"}}
	seen := map[string]bool{}
	for name, r := range recordings(t) {
		plain := diagnose(t, r, sources(t, r, diagnosistest.Replay(r.Cluster)))
		report := plain
		report.Steps = slices.Clone(plain.Steps)
		given.Complete(&report)
		for i, s := range report.Steps {
			for j, do := range s.Do {
				program, _, _ := strings.Cut(strings.TrimPrefix(do, "$ "), " ")
				switch before := plain.Steps[i].Do[j]; {
				case !strings.HasPrefix(do, "$ ") || program != "openstack" && program != "kubectl" && program != "cinder-csi-generator" || strings.HasPrefix(do, "$ kubectl cinder "):
					if do != before {
						t.Errorf("%s: %q became %q", name, before, do)
					}
				case program == "kubectl" && !strings.HasPrefix(do, "$ kubectl --context prod "), program != "kubectl" && !strings.Contains(do, " --os-cloud 'my cloud'"):
					t.Errorf("%s: %s", name, do)
				default:
					seen[program] = true
				}
			}
		}
		if row, _ := cause.Find(cause.ID(report.Cause)); report.Who == "" || report.Who != string(row.Who) {
			t.Errorf("%s: cause %s, who acts: %q", name, report.Cause, report.Who)
		}
	}
	if !seen["openstack"] || !seen["kubectl"] {
		t.Errorf("the recordings have commands of %v", seen)
	}
}

// A full quota of another type is no reason.
func TestOnlyTheQuotasOfTheTypeOfTheClassAreNamed(t *testing.T) {
	r := recordings(t)["quota-full"]
	full := diagnosis.Quota{Limit: 1, InUse: 1}
	for class, want := range map[string]string{
		"fast":                                 "quota gigabytes_fast is 1, of which 1 are used or reserved, quota volumes_fast is 1, of which 1 are used or reserved",
		"gold_ssd":                             "quota gigabytes_gold_ssd is 1, of which 1 are used or reserved",
		"9f445367-ee0c-4f56-93e5-9bdef423e884": "gigabytes_gold_ssd",
		"":                                     "gigabytes_gold_ssd",
	} {
		f := readingsOf(t, r)
		f.Class.Parameters = map[string]string{"type": class}
		f.Cloud.Quota = map[string]diagnosis.Quota{"gigabytes_fast": full, "volumes_fast": full, "gigabytes_gold_ssd": full, "gigabytes": {Limit: 100}}
		report := diagnosis.Diagnose(f)
		why := report.Steps[len(report.Steps)-1].Why
		_, quotas, _ := strings.Cut(why, "[quota.gigabytes]; ")
		if !strings.Contains(quotas, want) || len(want) > 30 && quotas != want {
			t.Errorf("type %q: want %q, got %q", class, want, quotas)
		}
	}
}

// After a final error the provisioner takes the chosen node out of the claim. The pod then has no node because of the driver's error, which counts.
func TestAPodThatHasNoNodeBecauseOfTheVolumeIsNotTheCause(t *testing.T) {
	f := readingsOf(t, recordings(t)["zone-without-backend"])
	delete(f.Claim.Annotations, "volume.kubernetes.io/selected-node")
	f.Pods = []corev1.Pod{{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: `running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"`,
	}}}}}
	f.Operations = nil
	for i, e := range f.Events {
		if e.Reason == "ProvisioningFailed" {
			f.Events[i].Message = "rpc error: code = ResourceExhausted desc = create: Cinder cannot create the volume in any allowed zone (tried az1); the source, snapshot s, is in zone az2: HTTP 400 [create.zone]"
		}
	}
	report := diagnosis.Diagnose(f)
	last := report.Steps[len(report.Steps)-1]
	if report.Cause != "create.zone" || len(last.Do) == 0 || !strings.Contains(last.Do[0], "the zone of its source") {
		t.Errorf("want create.zone, and the zone of the source as advice: %+v", report)
	}
}
