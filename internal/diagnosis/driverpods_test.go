package diagnosis_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/diagnosistest"
)

const nodePods = "GET /api/v1/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Dnode%2Capp.kubernetes.io%2Fname%3Dcinder-csi&limit=500"

// pagedWorld is a cluster with so many pods of the driver on nodes, whose page is what the function returns.
func pagedWorld(pods int, page func(ctx context.Context, pod string) ([]byte, error)) diagnosis.Clients {
	var items []string
	for i := range pods {
		items = append(items, fmt.Sprintf(`{"metadata": {"namespace": "cinder-csi-node", "name": "node-%02d"}, "spec": {"nodeName": "n%d", "volumes": [{"name": "s", "hostPath": {"path": "/var/lib/kubelet/plugins/%s"}}],
			"containers": [{"name": "driver", "args": ["--http-endpoint=:9280"]}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, i, i, upstreamDriver))
	}
	from := nodeSources(diagnosistest.Replay{
		"GET /api/v1/" + controllerPods: ok(`{"items": []}`), nodePods: ok(`{"items": [%s]}`, strings.Join(items, ",")),
		"GET /api/v1/persistentvolumes?limit=500": ok(`{"items": []}`), "GET /api/v1/persistentvolumeclaims?limit=500": ok(`{"items": []}`),
	})
	from.NodePage = func(ctx context.Context, _, pod string, _ int, _ string) ([]byte, error) { return page(ctx, pod) }
	return from
}

// A kubelet may accept a connection and never answer.
func TestAPageThatDoesNotComeDelaysTheOthersByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		from := pagedWorld(40, func(ctx context.Context, pod string) ([]byte, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			if pod == "node-39" {
				return []byte(`{"operations": [{"method": "m", "object": "o"}]}`), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		all := diagnosis.ReadAllOperations(t.Context(), from)
		if took := time.Since(began); took > 30*time.Second || most.Load() > 8 {
			t.Errorf("took %s, %d pages at once", took, most.Load())
		}
		if len(all.Operations) != 1 || len(all.Unseen) != 39 || !strings.Contains(all.Unseen[0].What, "node-00") || !strings.Contains(all.Unseen[0].Why, "no complete answer within 5s") {
			t.Errorf("got %+v, not seen %+v", all.Operations, all.Unseen)
		}
		if all := diagnosis.ReadDriverPods(t.Context(), from, ""); len(all.Pods) != 40 || len(all.Unseen) != 39 {
			t.Errorf("got %d pods, %d not seen", len(all.Pods), len(all.Unseen))
		}
	})
}

// A page of some MiB may have a million operations.
func TestAPageHasABoundedNumberOfOperations(t *testing.T) {
	for name, test := range map[string]struct {
		page             string
		want, gaps, pods int
	}{
		"none":           {`{"operations": []}`, 0, 0, 1},
		"null":           {`{"operations": null}`, 0, 0, 1},
		"all":            {`{"operations": [` + strings.Repeat("{},", 9999) + `{}]}`, 10000, 0, 1},
		"too many":       {`{"operations": [` + strings.Repeat("{},", 99999) + `{}]}`, 0, 1, 0},
		"an object":      {`{"operations": {}}`, 0, 1, 0},
		"another object": {`{"operations": [1]}`, 0, 1, 0},
		"no JSON":        {`<html>`, 0, 1, 0},
	} {
		all := diagnosis.ReadAllOperations(t.Context(), pagedWorld(1, func(context.Context, string) ([]byte, error) { return []byte(test.page), nil }))
		if len(all.Operations) != test.want || len(all.Unseen) != test.gaps || all.Pods != test.pods {
			t.Errorf("%s: %d operations of %d pods, not seen %+v", name, len(all.Operations), all.Pods, all.Unseen)
		}
	}
}

// A kubelet may make a mirror pod in each namespace, with any labels and any volume of its node.
func TestAMirrorPodIsNeverThePodOfANode(t *testing.T) {
	world := nodeWorld()
	for request, a := range world {
		if strings.Contains(request, "component%3Dnode") {
			a.Body = []byte(strings.Replace(string(a.Body), `"name": "node-x"`, `"name": "node-x", "annotations": {"kubernetes.io/config.mirror": ""}`, 1))
			world[request], world[nodePods] = a, a
		}
	}
	if f := readingsOfNode(t, world); len(f.Plugins) != 0 {
		t.Errorf("got %+v", f.Plugins)
	}
	if all := diagnosis.ReadDriverPods(t.Context(), nodeSources(world), ""); strings.Contains(fmt.Sprint(all), "node-x") {
		t.Errorf("got %+v", all)
	}
}
