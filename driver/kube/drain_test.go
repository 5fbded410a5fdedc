package kube

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func attachment(attacher, node, pv string) map[string]any {
	return map[string]any{"spec": map[string]any{"attacher": attacher, "nodeName": node, "source": map[string]any{"persistentVolumeName": pv}}}
}

func TestTheHookWaitsForDetachesOnlyWhileTheNodeIsDrained(t *testing.T) {
	for name, test := range map[string]struct {
		taints   []string // nil: the node is gone
		attached []map[string]any
		waits    bool
		detached bool // after 30 seconds
	}{
		"a rollout of the driver":               {taints: []string{"other"}, attached: []map[string]any{attachment(own, "n", "pv-1")}},
		"a drain with nothing attached":         {taints: []string{"node.kubernetes.io/unschedulable"}},
		"a drain, volumes of others":            {taints: []string{"node.kubernetes.io/unschedulable"}, attached: []map[string]any{attachment(own, "other", "pv-1"), attachment("other", "n", "pv-2")}},
		"a drain, until the volume is detached": {taints: []string{"node.kubernetes.io/unschedulable"}, attached: []map[string]any{attachment(own, "n", "pv-1")}, waits: true, detached: true},
		"a drain by the autoscaler":             {taints: []string{"ToBeDeletedByClusterAutoscaler"}, attached: []map[string]any{attachment(own, "n", "pv-1")}, waits: true, detached: true},
		"the node object is gone":               {attached: []map[string]any{attachment(own, "n", "pv-1")}, waits: true, detached: true},
		"a drain that outlasts the grace time":  {taints: []string{"karpenter.sh/disrupted"}, attached: []map[string]any{attachment(own, "n", "pv-1")}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeAPI{taints: map[string][]string{}, attachments: test.attached}
				if test.taints != nil {
					f.taints["n"] = test.taints
				}
				log := &testenv.Log{}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began, api := time.Now(), startAPI(t, f)
				if test.detached {
					time.AfterFunc(30*time.Second, func() { f.set(func() { f.attachments = nil }) })
				}
				err := api.AwaitDetached(ctx, own, "n", slog.New(slog.NewTextHandler(log, nil)))
				took := time.Since(began)
				switch {
				case !test.waits && (err != nil || took > time.Second):
					t.Errorf("want no wait, took %v, %v", took, err)
				case test.detached && (err != nil || took < 30*time.Second || took > 33*time.Second || strings.Count(log.String(), "pv-1") != 1):
					t.Errorf("want 30 s and one line, took %v, %v\n%s", took, err, log)
				case test.waits && !test.detached && (err == nil || took != time.Minute):
					t.Errorf("want the end of the grace time, took %v, %v", took, err)
				case test.waits && !test.detached && !strings.Contains(err.Error(), "pv-1"):
					t.Errorf("the error does not name the volume: %v", err)
				}
			})
		})
	}
}

// The bundle is being removed: its roles are gone before its pods.
func TestAHookWithoutRightsEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := startAPI(t, &fakeAPI{taints: map[string][]string{"n": {"node.kubernetes.io/unschedulable"}}, attachments: []map[string]any{attachment(own, "n", "pv-1")}, deny: true})
		began := time.Now()
		err := api.AwaitDetached(t.Context(), own, "n", slog.New(slog.DiscardHandler))
		if took := time.Since(began); !volume.Is(err, volume.PermissionDenied) || took > time.Second {
			t.Errorf("want PermissionDenied at once, got %v after %s", err, took)
		}
	})
}
