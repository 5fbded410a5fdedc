package support_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cluster"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/support"
)

const driver = "cinder.csi.openstack.org"

// secrets makes a different secret for each place, so that a place that is not redacted is not hidden by another that is.
type secrets struct {
	mutex   sync.Mutex // pages are read at once
	planted []string
}

func (s *secrets) plant(place string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	value := fmt.Sprintf("s3cr3t%02d%s", len(s.planted), place)
	s.planted = append(s.planted, value)
	return value
}

// world answers by path. It remembers what was asked.
type world struct {
	answers map[string]string
	hangs   string // a part of the paths without an answer
	asked   []string
}

func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	if r.URL.Query().Get("previous") != "" {
		path += "?previous"
	}
	if labels := r.URL.Query().Get("labelSelector"); strings.Contains(labels, "component=") {
		path += "?" + strings.Split(strings.Split(labels, "component=")[1], ",")[0]
	}
	w.asked = append(w.asked, r.Method+" "+path)
	if w.hangs != "" && strings.Contains(path, w.hangs) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	if strings.HasSuffix(path, "/log") || strings.HasSuffix(path, "?previous") {
		if r.URL.Query().Get("tailLines") == "" || r.URL.Query().Get("limitBytes") == "" {
			return nil, errors.New("a log without a bound")
		}
	}
	body, found := w.answers[path]
	status := http.StatusOK
	if !found {
		status, body = http.StatusNotFound, `{"message": "not found"}`
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// installation is a cluster with the driver, whose people put secrets wherever they could.
func installation(s *secrets) *world {
	annotations := func(place string) string {
		return `"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":{\"password\":\"` + s.plant(place+"applied") + `\"}}", "note": "token: ` + s.plant(place+"note") + `", "example.com/api-key": "` + s.plant(place+"key") + `"}`
	}
	labels := `"labels": {"app.kubernetes.io/name": "cinder-csi"}`
	pod := func(name, container, extra string) string {
		return `{"metadata": {"namespace": "cinder-csi", "name": "` + name + `", ` + labels + `, ` + annotations(name) + `}, "spec": {"serviceAccountName": "c", "nodeName": "n1", ` + extra + `
			"containers": [{"name": "` + container + `", "image": "cinder-csi-driver", "args": ["--http-endpoint=:9280", "--password=` + s.plant(name+"arg") + `", "--token", "` + s.plant(name+"word") + `"],
				"env": [{"name": "OS_PASSWORD", "value": "` + s.plant(name+"env") + `"}, {"name": "HTTPS_PROXY", "value": "http://u:` + s.plant(name+"proxy") + `@proxy:3128"}]}]},
			"status": {"conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "` + container + `", "restartCount": 1}, {"name": "` + container + `", "restartCount": 1}]}}`
	}
	controller := pod("cinder-csi-controller-0", "driver", "")
	plugin := pod("cinder-csi-node-x", "driver", `"volumes": [{"name": "s", "hostPath": {"path": "/var/lib/kubelet/plugins/`+driver+`"}}],`)
	mirror := func(namespace, name string) string { // a kubelet may make one anywhere, with any labels
		return `{"metadata": {"namespace": "` + namespace + `", "name": "` + name + `", ` + labels + `, "annotations": {"kubernetes.io/config.mirror": ""}}, "spec": {"volumes": [{"name": "s", "hostPath": {"path": "/a/plugins/x"}}]}}`
	}
	log := func(place string) string {
		return "I sent\nX-Auth-Token: " + s.plant(place+"header") + "\n{\"auth\": {\"password\": \"" + s.plant(place+"json") + "\"}}\nGET https://u:" + s.plant(place+"url") + "@keystone/v3\n" +
			"application_credential_secret=" + s.plant(place+"app") + "\n-----BEGIN PRIVATE KEY-----\n" + s.plant(place+"pem") + "\n-----END PRIVATE KEY-----\nAuthorization: Bearer " + s.plant(place+"bearer") + "\nkept line\n"
	}
	list := func(items ...string) string { return `{"items": [` + strings.Join(items, ",") + `]}` }
	event := func(of, text string) string {
		return `{"metadata": {"name": "e"}, "involvedObject": {"name": "` + of + `"}, "message": "` + text + `"}`
	}
	of := func(spec string) string {
		return `{"metadata": {"name": "o", ` + annotations("object") + `}, ` + spec + `}`
	}
	answers := map[string]string{
		"/version":                `{"gitVersion": "v1.34.0"}`,
		"/api/v1/pods?controller": list(controller), "/api/v1/pods?node": list(plugin, mirror("shop", "b")), "/api/v1/pods": list(controller, plugin),
		"/api/v1/persistentvolumes":                                               list(of(`"spec": {"csi": {"driver": "`+driver+`", "volumeHandle": "v", "volumeAttributes": {"secret": "`+s.plant("attribute")+`"}}}`), of(`"spec": {"csi": {"driver": "other.example", "volumeHandle": "not-ours"}}`)),
		"/api/v1/persistentvolumeclaims":                                          list(),
		"/apis/storage.k8s.io/v1/volumeattachments":                               list(of(`"spec": {"attacher": "` + driver + `", "source": {}}, "status": {"attachError": {"message": "password: ` + s.plant("attachError") + `"}}`)),
		"/apis/storage.k8s.io/v1/csinodes":                                        list(of(`"spec": {"drivers": [{"name": "` + driver + `", "nodeID": "n"}]}`)),
		"/apis/storage.k8s.io/v1/csidrivers":                                      list(strings.Replace(of(`"spec": {}`), `"name": "o"`, `"name": "`+driver+`"`, 1)),
		"/apis/storage.k8s.io/v1/storageclasses":                                  list(of(`"provisioner": "` + driver + `", "parameters": {"csi.storage.k8s.io/provisioner-secret-name": "kept-name", "password": "` + s.plant("parameter") + `"}`)),
		"/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses":                  list(of(`"driver": "` + driver + `"`)),
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings":                  list(`{"subjects": [{"kind": "ServiceAccount", "namespace": "cinder-csi", "name": "c"}]}`),
		"/apis/apps/v1/namespaces/cinder-csi/deployments":                         list(of(`"spec": {"template": {"spec": {"containers": [{"env": [{"name": "TOKEN", "value": "` + s.plant("deployment") + `"}]}]}}}`)),
		"/apis/apps/v1/namespaces/cinder-csi/daemonsets":                          list(),
		"/apis/batch/v1/namespaces/cinder-csi/cronjobs":                           list(),
		"/apis/batch/v1/namespaces/cinder-csi/jobs":                               list(),
		"/apis/networking.k8s.io/v1/namespaces/cinder-csi/networkpolicies":        list(),
		"/apis/coordination.k8s.io/v1/namespaces/cinder-csi/leases":               list(),
		"/api/v1/namespaces/cinder-csi/pods":                                      list(controller, plugin, mirror("cinder-csi", "a")),
		"/api/v1/namespaces/cinder-csi/pods/cinder-csi-controller-0":              controller,
		"/api/v1/namespaces/cinder-csi/pods/cinder-csi-node-x":                    plugin,
		"/api/v1/namespaces/cinder-csi/events":                                    list(event("cinder-csi-controller-0", "cannot log in, password="+s.plant("event")), event("cinder-csi-controller-0-x", "kept event"), event("cinder-csi-controller-01", "of-a-tenant"), event("a-tenant", "of-a-tenant")),
		"/api/v1/namespaces/cinder-csi/pods/cinder-csi-controller-0/log":          log("log"),
		"/api/v1/namespaces/cinder-csi/pods/cinder-csi-controller-0/log?previous": log("previous"),
		"/api/v1/namespaces/cinder-csi/pods/cinder-csi-node-x/log":                log("node") + "a line with own-passw0rd in it",
		"/api/v1/namespaces/cinder-csi/pods/cinder-csi-node-x/log?previous":       log("node-previous"),
	}
	answers["/api/v1/namespaces/cinder-csi/configmaps"] = list(of(`"data": {"cloud.conf": "[Global]\nusername = ` + s.plant("file") + `", "settings.yaml": "a: b\npassword: |\n  ` + s.plant("block") + `\nc: d", "PASSWORD": "` + s.plant("data") + `", "url": "https://u:` + s.plant("mapurl") + `@x", "CLUSTER_ID": "kept-id"}`))
	return &world{answers: answers}
}

// A kubelet that accepts and never answers has the pages and the logs of its pods, and delays what is of others by little.
func TestAKubeletThatDoesNotAnswerKeepsNothingOfOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s secrets
		w := installation(&s)
		w.hangs = "/pods/cinder-csi-node-x/log"
		from := diagnosis.Clients{
			Cluster: cluster.New("test", &url.URL{Scheme: "https", Host: "cluster.example"}, &http.Client{Transport: w}), Now: at,
			Page: func(ctx context.Context, _, _ string, _ int, _ string) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}
		from.NodePage = from.Page
		began := time.Now()
		b := support.Collect(t.Context(), from, support.NewRedactor(), "v0-test")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("took %s", took)
		}
		for _, name := range []string{"list.json", "namespaces/cinder-csi/events.json", "logs/cinder-csi/cinder-csi-controller-0/driver.log", "versions.json", "operations.json"} {
			if !slices.ContainsFunc(b.Entries, func(e support.Entry) bool { return e.Name == name }) {
				t.Errorf("%s is missing", name)
			}
		}
		for _, what := range []string{"/metrics of pod cinder-csi/cinder-csi-node-x", "/debug/operations of pod cinder-csi/cinder-csi-controller-0", "logs/cinder-csi/cinder-csi-node-x/driver.log"} {
			if !slices.ContainsFunc(b.Unseen, func(g diagnosis.Gap) bool {
				return g.What == what && strings.Contains(g.Why, "no complete answer within")
			}) {
				t.Errorf("%s is not named in %+v", what, b.Unseen)
			}
		}
	})
}

func bundleOf(w *world, s *secrets) support.Archive {
	page := func(_ context.Context, _, _ string, _ int, path string) ([]byte, error) {
		if path == "/metrics" {
			return []byte("cinder_csi_build_info{version=\"v1\"} 1\n"), nil
		}
		return []byte(`{"operations": [{"method": "CreateVolume", "object": "pvc-1", "lastError": "HTTP 401 for https://u:` + s.plant("page") + `@keystone, token=` + s.plant("pagetoken") + `"}]}`), nil
	}
	from := diagnosis.Clients{
		Cluster: cluster.New("test", &url.URL{Scheme: "https", Host: "cluster.example"}, &http.Client{Transport: w}), Page: page, NodePage: page, Now: at,
		NoCloud: diagnosis.Gap{What: "Cinder", Why: "cannot log in: password=" + s.plant("gap")},
	}
	return support.Collect(context.Background(), from, support.NewRedactor("own-passw0rd"), "v0-test")
}

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// contents unpacks an archive.
func contents(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for unpacked := tar.NewReader(zip); ; {
		header, err := unpacked.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

func TestNoByteOfTheArchiveIsASecret(t *testing.T) {
	var s secrets
	w := installation(&s)
	b := bundleOf(w, &s)
	var archive, listed bytes.Buffer
	if err := support.Write(&archive, b, at); err != nil {
		t.Fatal(err)
	}
	if err := support.Print(&listed, b, 100); err != nil {
		t.Fatal(err)
	}
	files := contents(t, archive.Bytes())
	files["what is listed"] = listed.String()
	for _, secret := range append(s.planted, "own-passw0rd") {
		for name, text := range files {
			if strings.Contains(text, secret) || strings.Contains(name, secret) {
				t.Errorf("%s is in %s", secret, name)
			}
		}
	}
	if m := regexp.MustCompile(`s3cr3t\w+`).FindString(fmt.Sprint(files)); m != "" {
		t.Errorf("a part of a secret: %s", m)
	}
	if len(s.planted) < 40 {
		t.Errorf("only %d secrets were planted", len(s.planted))
	}
	if slices.ContainsFunc(w.asked, func(request string) bool {
		return !strings.HasPrefix(request, "GET ") || strings.Contains(request, "/secrets") || strings.Contains(request, "/namespaces/shop")
	}) {
		t.Errorf("not only GET requests, or a Secret, or a namespace of others: %q", w.asked)
	}
	all := fmt.Sprint(files)
	for _, kept := range []string{"kept line", "kept-id", "kept-name", "v1.34.0", "v0-test", "CreateVolume", "cannot log in", "kept event"} {
		if !strings.Contains(all, kept) {
			t.Errorf("%q is lost", kept)
		}
	}
	for _, other := range []string{"not-ours", "of-a-tenant"} {
		if strings.Contains(all, other) {
			t.Errorf("%q is none of the driver", other)
		}
	}
}

func TestABundleHasAFileForEachThing(t *testing.T) {
	var s secrets
	b := bundleOf(installation(&s), &s)
	var names []string
	for _, e := range b.Entries {
		names = append(names, e.Name)
		if e.Bytes != len(e.Content) || e.What == "" {
			t.Errorf("%s: %d bytes are listed, %d are written; %q", e.Name, e.Bytes, len(e.Content), e.What)
		}
	}
	want := []string{
		"list.json", "logs/cinder-csi/cinder-csi-controller-0/driver.log", "logs/cinder-csi/cinder-csi-controller-0/driver.previous.log", "logs/cinder-csi/cinder-csi-node-x/driver.log",
		"logs/cinder-csi/cinder-csi-node-x/driver.previous.log", "namespaces/cinder-csi/configmaps.json", "namespaces/cinder-csi/cronjobs.json", "namespaces/cinder-csi/daemonsets.json",
		"namespaces/cinder-csi/deployments.json", "namespaces/cinder-csi/events.json", "namespaces/cinder-csi/jobs.json", "namespaces/cinder-csi/leases.json",
		"namespaces/cinder-csi/networkpolicies.json", "namespaces/cinder-csi/pods.json", "objects/csidrivers.json", "objects/csinodes.json", "objects/persistentvolumes.json",
		"objects/storageclasses.json", "objects/volumeattachments.json", "objects/volumesnapshotclasses.json", "operations.json", "unseen.json", "versions.json",
	}
	if !slices.Equal(want, names) {
		t.Error(cmp.Diff(want, names))
	}
}

func TestOnlyTheLeasesOfTheDriverAreInABundle(t *testing.T) {
	for _, test := range []struct {
		name  string
		lists bool // whether the volumes can be listed, which names the drivers
	}{{"all is read", true}, {"the volumes are not read", false}} {
		t.Run(test.name, func(t *testing.T) {
			var s secrets
			w := installation(&s)
			if !test.lists {
				delete(w.answers, "/api/v1/persistentvolumes")
			}
			var leases []string
			for _, name := range []string{"cinder-csi-openstack-org", "external-attacher-leader-cinder-csi-openstack-org", "external-resizer-manila-csi-openstack-org", "cluster-version", "kube-scheduler"} {
				leases = append(leases, `{"metadata": {"name": "`+name+`"}}`)
			}
			w.answers["/apis/coordination.k8s.io/v1/namespaces/cinder-csi/leases"] = `{"items": [` + strings.Join(leases, ",") + `]}`
			var got []string
			for _, e := range bundleOf(w, &s).Entries {
				if e.Name == "namespaces/cinder-csi/leases.json" {
					for _, m := range regexp.MustCompile(`"name": "([^"]*)"`).FindAllSubmatch(e.Content, -1) {
						got = append(got, string(m[1]))
					}
				}
			}
			if diff := cmp.Diff([]string{"cinder-csi-openstack-org", "external-attacher-leader-cinder-csi-openstack-org"}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	var s secrets
	w := installation(&s)
	delete(w.answers, "/api/v1/namespaces/cinder-csi/configmaps")
	delete(w.answers, "/api/v1/namespaces/cinder-csi/pods/cinder-csi-node-x/log")
	b := bundleOf(w, &s)
	for _, what := range []string{"the configmaps in namespace cinder-csi", "logs/cinder-csi/cinder-csi-node-x/driver.log"} {
		if !slices.ContainsFunc(b.Unseen, func(g diagnosis.Gap) bool { return g.What == what }) {
			t.Errorf("%s is not named in %+v", what, b.Unseen)
		}
	}
}
