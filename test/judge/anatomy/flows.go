package anatomy

import (
	"fmt"
	"time"
)

// Records are what the parts of the system recorded during some flows.
type Records struct {
	Audit Audit
	RPCs  []RPC
	Work  []Work
}

// Pod is a pod with one claim, and the objects that Kubernetes made for it.
type Pod struct {
	Namespace, Name, Node string
	Claim, Volume, Handle string    // PersistentVolumeClaim, PersistentVolume, Cinder's ID
	Attachment            string    // VolumeAttachment
	Ready                 time.Time // of the condition Ready, which Kubernetes writes in whole seconds
}

// Users of the API server, by the ends of their names. A sidecar has the service account of the bundle that it belongs to.
const (
	schedulerUser = "system:kube-scheduler"
	binderUser    = ":persistent-volume-binder"
	attachUser    = ":attachdetach-controller"
)

func kubeletUser(node string) string { return "system:node:" + node }

// Start is the chain from the creation of a claim and its pod to the pod's readiness.
func (r Records) Start(p Pod) ([]Part, error) {
	start := r.Audit.by("", object{"pods", p.Namespace, p.Name, "-"}, "create")
	if len(start) == 0 {
		return nil, fmt.Errorf("the audit log has no creation of pod %s", p.Name)
	}
	began := start[0].Received
	claim := object{"persistentvolumeclaims", p.Namespace, p.Claim, ""}
	created := r.Audit.by("", object{"persistentvolumes", "", p.Volume, "-"}, "create").firstAfter(began)
	moments := []Moment{{r.Audit.by(schedulerUser, claim, "update", "patch").lastUntil(created), Scheduler, "node chosen for the claim"}}
	moments = append(moments, r.rpcs("CreateVolume", p.Volume, began, created, Sidecars, r.work("create", p.Handle), "provisioner calls", "volume created")...)
	moments = append(moments,
		Moment{created, Sidecars, "PersistentVolume written"},
		Moment{r.Audit.by(binderUser, claim, "update", "patch").firstAfter(created), Controllers, "claim bound"},
		Moment{r.Audit.by("", object{"pods", p.Namespace, p.Name, "binding"}, "create").firstAfter(began), Scheduler, "pod bound to the node"},
	)
	return Parts(began, append(moments, r.attachAndRun(p, began)...))
}

// Move is the chain from the deletion of a pod to the readiness of another with its claim on another node.
func (r Records) Move(from, to Pod) ([]Part, error) {
	deleted := r.Audit.by("", object{"pods", from.Namespace, from.Name, "-"}, "delete")
	if len(deleted) == 0 {
		return nil, fmt.Errorf("the audit log has no deletion of pod %s", from.Name)
	}
	began := deleted[0].Received
	attachment := object{"volumeattachments", "", from.Attachment, ""}
	gone := r.Audit.by(attachUser, attachment, "delete").firstAfter(began)
	var moments []Moment
	for _, step := range []struct{ method, caller, done string }{
		{"NodeUnpublishVolume", "container stopped", "unpublished"}, {"NodeUnstageVolume", "kubelet unstages", "unstaged"},
	} {
		moments = append(moments, r.rpcs(step.method, from.Handle, began, gone, Kubelet, time.Time{}, step.caller, step.done)...)
	}
	moments = append(moments,
		Moment{r.Audit.by(kubeletUser(from.Node), object{"nodes", "", from.Node, "status"}, "patch", "update").lastUntil(gone), KubeletWait, "kubelet reports that the volume is free"},
		Moment{gone, Controllers, "detach requested"})
	released := r.Audit.by("", attachment, "patch", "update").lastUntil(time.Time{})
	moments = append(moments, r.rpcs("ControllerUnpublishVolume", from.Handle, began, released, Sidecars, r.work("detach", from.Handle), "attacher calls", "detached")...)
	moments = append(moments,
		Moment{released, Sidecars, "VolumeAttachment removed"},
		Moment{r.Audit.by("", object{"pods", to.Namespace, to.Name, "binding"}, "create").firstAfter(began), Scheduler, "new pod bound to its node"})
	return Parts(began, append(moments, r.attachAndRun(to, began)...))
}

// attachAndRun are the moments from a bound pod on.
func (r Records) attachAndRun(p Pod, since time.Time) []Moment {
	attachment := object{"volumeattachments", "", p.Attachment, ""}
	status := object{"volumeattachments", "", p.Attachment, "status"}
	requested := r.Audit.by(attachUser, attachment, "create").firstAfter(since)
	// The attacher may say so again later.
	attached := r.Audit.by("", status, "patch", "update").firstAfter(r.succeeded("ControllerPublishVolume", p.Handle, requested))
	moments := []Moment{{requested, Controllers, "attach requested"}}
	moments = append(moments, r.rpcs("ControllerPublishVolume", p.Handle, requested, attached, Sidecars, r.work("attach", p.Handle), "attacher calls", "attached")...)
	node := object{"nodes", "", p.Node, "status"}
	moments = append(moments,
		Moment{attached, Sidecars, "VolumeAttachment says attached"},
		Moment{r.Audit.by(attachUser, node, "patch", "update").firstAfter(attached), Controllers, "node says attached"},
		Moment{r.inUse(p, node, since, requested), KubeletWait, "kubelet reports that the volume is in use"})
	stage := r.rpcs("NodeStageVolume", p.Handle, attached, time.Time{}, KubeletWait, time.Time{}, "kubelet sees it", "staged")
	publish := r.rpcs("NodePublishVolume", p.Handle, attached, time.Time{}, Kubelet, time.Time{}, "kubelet publishes", "published")
	moments = append(append(moments, stage...), publish...)
	// kubelet also writes the status before and long after.
	ready := r.Audit.by(kubeletUser(p.Node), object{"pods", p.Namespace, p.Name, "status"}, "patch", "update").
		firstAfter(later(p.Ready, r.succeeded("NodePublishVolume", p.Handle, attached)))
	return append(moments, Moment{ready, Kubelet, "container started, pod ready"})
}

// inUse is when kubelet wrote for the first time since the pod is bound that its node uses the volume. Until then it asks nobody whether the
// volume is attached. If it wrote nothing before it staged the volume, it had no need to.
func (r Records) inUse(p Pod, node object, since, requested time.Time) time.Time {
	bound := r.Audit.by("", object{"pods", p.Namespace, p.Name, "binding"}, "create").firstAfter(since)
	wrote := r.Audit.by(kubeletUser(p.Node), node, "patch", "update").firstAfter(bound)
	for _, rpc := range r.RPCs {
		if rpc.Method == "NodeStageVolume" && rpc.Object == p.Handle && rpc.Begin.After(bound) && !wrote.IsZero() && !wrote.After(rpc.Begin) {
			return wrote
		}
	}
	return requested
}

// rpcs are the moments of all attempts of an RPC in a time. The caller's layer ends at each beginning, the cloud's at done, the driver's at the end.
// An RPC that no log has gives a moment without a time, which Parts refuses.
func (r Records) rpcs(method, of string, from, until time.Time, caller Layer, done time.Time, called, ended string) []Moment {
	var moments []Moment
	for _, rpc := range r.RPCs {
		if rpc.Method != method || rpc.Object != of || rpc.End.Before(from) || !until.IsZero() && rpc.Begin.After(until) {
			continue
		}
		moments = append(moments, Moment{rpc.Begin, caller, called})
		layer := Driver
		if caller == Kubelet || caller == KubeletWait {
			layer = NodeDriver
		} else if !rpc.Failed {
			if done.After(rpc.End) { // the log line is written after the state is in the database
				done = rpc.End
			}
			moments = append(moments, Moment{done, Cloud, ended + " in the cloud"})
		}
		moments = append(moments, Moment{rpc.End, layer, ended})
	}
	if len(moments) == 0 {
		return []Moment{{Step: method}}
	}
	return moments
}

// succeeded is when an RPC first succeeded after a time.
func (r Records) succeeded(method, of string, since time.Time) time.Time {
	for _, rpc := range r.RPCs {
		if rpc.Method == method && rpc.Object == of && !rpc.Failed && !rpc.End.Before(since) {
			return rpc.End
		}
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// work is the last time at which the cloud was done with a step for a volume.
func (r Records) work(step, volume string) (last time.Time) {
	for _, w := range r.Work {
		if w.Step == step && w.Volume == volume && w.Done.After(last) {
			last = w.Done
		}
	}
	return last
}
