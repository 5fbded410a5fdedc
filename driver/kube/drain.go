package kube

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// drainTaints are the taints of a node whose pods go elsewhere. kubectl drain, the cluster autoscaler and Karpenter set them, and the
// administrator sets the last one for a lost node.
var drainTaints = []string{
	"node.kubernetes.io/unschedulable", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption", "node.kubernetes.io/out-of-service",
}

// beingDrained reports whether the pods of a node go elsewhere. A node that does not exist any more counts too.
func (a *API) beingDrained(ctx context.Context, nodeName string) (bool, error) {
	var n node
	err := a.get(ctx, "node "+nodeName, "/api/v1/nodes/"+url.PathEscape(nodeName), &n)
	if volume.Is(err, volume.NotFound) {
		return true, nil
	}
	for _, t := range n.Spec.Taints {
		if slices.Contains(drainTaints, t.Key) {
			return true, err
		}
	}
	return false, err
}

// attachedTo lists the PersistentVolumes that a driver has attached to a node, or is attaching or detaching (Kubernetes API, VolumeAttachment).
func (a *API) attachedTo(ctx context.Context, driverName, nodeName string) ([]string, error) {
	type attachment struct {
		Spec struct {
			Attacher string `json:"attacher"`
			NodeName string `json:"nodeName"`
			Source   struct {
				PersistentVolumeName string `json:"persistentVolumeName"`
			} `json:"source"`
		} `json:"spec"`
	}
	var volumes []string
	_, err := list(ctx, a, "volume attachments", "/apis/storage.k8s.io/v1/volumeattachments", func(item attachment) {
		if item.Spec.Attacher == driverName && item.Spec.NodeName == nodeName {
			volumes = append(volumes, item.Spec.Source.PersistentVolumeName)
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(volumes)
	return volumes, nil
}

// detachPoll is how often AwaitDetached looks.
const detachPoll = 2 * time.Second

// AwaitDetached returns when the node is not being drained, or no volume of the driver is attached to it. It is for the preStop hook of the node
// role. If the driver ended while pods are moved away, nobody would unmount their volumes. Kubernetes then waits six minutes before it detaches
// them by force, and the pods wait elsewhere as long. In a rollout of the driver the node is not being drained. Then pods keep their volumes,
// and there is nothing to wait for.
//
// Errors of the API do not end it: it tries again until ctx ends. The error then says what is still attached. A denied request does end it. It means
// that somebody is removing the driver: the rights of the account are gone before its pods.
func (a *API) AwaitDetached(ctx context.Context, driverName, nodeName string, log *slog.Logger) error {
	last := "unknown"
	for {
		volumes, err := a.toDetach(ctx, driverName, nodeName)
		switch line := strings.Join(volumes, ", "); {
		case err == nil && line == "":
			return nil
		case volume.Is(err, volume.PermissionDenied):
			return err
		case err == nil && line != last:
			last = line
			log.InfoContext(ctx, "the node is being drained; waiting until its volumes are detached", "node", nodeName, "volumes", line)
		case err != nil && ctx.Err() == nil:
			log.WarnContext(ctx, "cannot find out whether volumes are still attached to the node; trying again", "node", nodeName, "error", err)
		}
		if volume.Sleep(ctx, detachPoll) != nil {
			return volume.Interrupted(ctx, "node %s still has volumes attached: %s", nodeName, last)
		}
	}
}

// toDetach lists the volumes that a drain of the node detaches; none if it is not being drained.
func (a *API) toDetach(ctx context.Context, driverName, nodeName string) ([]string, error) {
	drained, err := a.beingDrained(ctx, nodeName)
	if err != nil || !drained {
		return nil, err
	}
	return a.attachedTo(ctx, driverName, nodeName)
}
