package diagnosis_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

// The pod runs and Cinder is content: only the driver of the node knows that the file system went read-only.
func TestWhatTheNodeFoundWrongWithTheVolumeIsTheCause(t *testing.T) {
	const (
		pods   = "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dnothing-hangs-a&labelSelector=app.kubernetes.io%2Fcomponent%3Dnode%2Capp.kubernetes.io%2Fname%3Dcinder-csi&limit=500"
		id     = "9f445367-ee0c-4f56-93e5-9bdef423e884"
		metric = "cinder_csi_node_volume_unhealthy{reason=\"FileSystemReadOnly\",volume=\"%s\"} 1\n"
	)
	for name, c := range map[string]struct{ page, want string }{
		"this volume":    {fmt.Sprintf("# HELP x\n"+metric, id), "mount.read-only"},
		"another volume": {fmt.Sprintf(metric, "0a9f1b2c-3d4e-4f50-8a6b-7c8d9e0f1a2b"), diagnosis.None},
		"no finding":     {"cinder_csi_node_volumes 1\n", diagnosis.None},
	} {
		t.Run(name, func(t *testing.T) {
			r := recordings(t)["nothing-hangs"]
			r.Cluster[pods] = diagnosistest.Answer{Status: 200, Body: json.RawMessage(`{"items": [{
				"metadata": {"name": "cinder-csi-node-x", "namespace": "cinder-csi-node"},
				"spec": {"nodeName": "nothing-hangs-a",
					"containers": [{"name": "driver", "args": ["--driver-name=cinder.csi.openstack.org"], "ports": [{"name": "metrics", "containerPort": 29603}]}],
					"volumes": [{"name": "plugin-dir", "hostPath": {"path": "/var/lib/kubelet/plugins/cinder.csi.openstack.org"}}]},
				"status": {"conditions": [{"type": "Ready", "status": "True"}]}}]}`)}
			const claims = "GET /api/v1/namespaces/nothing-hangs/pods?limit=500"
			var list struct{ Items []json.RawMessage }
			if err := json.Unmarshal(r.Cluster[claims].Body, &list); err != nil || len(list.Items) == 0 {
				t.Fatal(err)
			}
			twice, _ := json.Marshal(map[string]any{"items": append(list.Items, list.Items...)}) // two pods of the claim on the node
			r.Cluster[claims] = diagnosistest.Answer{Status: 200, Body: twice}
			read := 0
			from := sources(t, r, before(func(path string) {
				if read > 0 {
					t.Errorf("asks for %s after a page that may take all the time", path)
				}
			}, diagnosistest.Replay(r.Cluster)))
			from.NodePage = func(_ context.Context, namespace, pod string, port int, path string) ([]byte, error) {
				if namespace != "cinder-csi-node" || pod != "cinder-csi-node-x" || port != 29603 || path != "/metrics" {
					t.Errorf("reads %s of %s/%s, port %d", path, namespace, pod, port)
				}
				read++
				return []byte(c.page), nil
			}
			if got := diagnose(t, r, from).Cause; got != c.want {
				t.Errorf("want %s, got %s", c.want, got)
			}
			if read != 1 {
				t.Errorf("read the page of one pod %d times", read)
			}
		})
	}
}

// before calls a function with the path of each request.
func before(each func(path string), next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		each(r.URL.Path)
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
