package diagnosis

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mount is what kubelet does on the node with the node plugin.
func (s *story) mount() {
	p := s.pod()
	if s.blocked || p == nil {
		return
	}
	failed := s.event("FailedMount", "FailedMapVolume")
	switch {
	case ready(*p) || slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.State.Running != nil }):
		s.done(stepMount, "pod %s runs with the volume", p.Name)
	case failed != nil && strings.Contains(failed.Message, "not found in the list of registered CSI drivers"):
		s.unregistered(p.Spec.NodeName)
	case failed != nil:
		s.hang("mount.error", Step{
			Name: stepMount, What: "kubelet on node " + p.Spec.NodeName + " cannot mount the volume", Since: since(firstOf(failed)), Why: failed.Message,
			Do: []string{"correct what the error names, or read the log of the node plugin on that node", s.nodeLog()},
		})
	default:
		s.hang("mount.waiting", Step{
			Name: stepMount, State: Waiting, What: "pod " + p.Name + " does not run yet; the volume is attached", Since: since(p.CreationTimestamp.Time), Why: podWaits(*p),
			Do: []string{"$ kubectl --namespace " + s.Namespace + " describe pod " + p.Name, s.nodeLog()},
		})
	}
}

func (s *story) nodeLog() string {
	return strings.Replace(s.logCommand(), "component=controller", "component=node", 1)
}

func podWaits(p corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			return strings.TrimSpace("container " + c.Name + ": " + w.Reason + " " + w.Message)
		}
	}
	return ""
}

// expand is the growth of the volume and its file system.
func (s *story) expand() {
	if s.blocked || !s.bound() {
		return
	}
	want, have := s.Claim.Spec.Resources.Requests.Storage(), s.Claim.Status.Capacity.Storage()
	if want.Cmp(*have) <= 0 {
		return
	}
	step := Step{Name: stepExpand, State: Waiting, What: "the claim asks for " + want.String() + " and has " + have.String() + "; " + s.volumeText()}
	for _, c := range s.Claim.Status.Conditions {
		if step.Since == nil && c.Status == corev1.ConditionTrue {
			step.Since = since(c.LastTransitionTime.Time)
		}
	}
	if s.condition(corev1.PersistentVolumeClaimFileSystemResizePending) {
		step.Why = "Cinder has expanded the volume; kubelet grows the file system while a pod uses it"
		step.Do = []string{"start a pod that uses the claim", "$ kubectl --namespace " + s.Namespace + " get pods"}
		s.hang("expand.node", step)
		return
	}
	failed, o := s.event("VolumeResizeFailed"), s.operation("ControllerExpandVolume")
	if s.driverDown(stepExpand, s.Now, failed) {
		return
	}
	if text := s.errorText(failed, o); text != "" {
		began := s.Now
		if failed != nil {
			began = firstOf(failed)
		}
		s.driverError(stepExpand, step.What, began, text, o, append([]string{"correct what the error names; the driver tries again"}, s.showVolume()...)...)
		return
	}
	what := step.What
	step = s.waiting(stepExpand, "the driver expands the volume", s.Now, o)
	step.What = what
	s.hang("expand.waiting", step)
}

func (s *story) condition(kind corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(s.Claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// stillUsed is a deleted claim that Kubernetes keeps for its pods.
func (s *story) stillUsed() {
	if s.blocked || s.Claim == nil || len(s.Pods) == 0 {
		return
	}
	names := []string{}
	for _, p := range s.Pods {
		names = append(names, p.Name)
	}
	s.hang("delete.in-use", Step{
		Name: stepDelete, State: Waiting, What: "pods use the claim: " + strings.Join(names, ", "), Since: since(s.Claim.DeletionTimestamp.Time),
		Why: "Kubernetes deletes a claim when no pod uses it", Do: []string{"$ kubectl --namespace " + s.Namespace + " delete pod " + strings.Join(names, " ")},
	})
}

// deleteVolume is DeleteVolume of the driver, which external-provisioner calls.
func (s *story) deleteVolume() {
	v := s.Volume
	if s.blocked || v == nil {
		return
	}
	if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		s.done(stepDelete, "PersistentVolume %s has reclaim policy Retain: the volume stays; %s", v.Name, s.volumeText())
		return
	}
	failed, o := s.event("VolumeFailedDelete"), s.operation("DeleteVolume")
	began := v.CreationTimestamp.Time
	switch {
	case v.DeletionTimestamp != nil:
		began = v.DeletionTimestamp.Time
	case v.Status.LastPhaseTransitionTime != nil:
		began = v.Status.LastPhaseTransitionTime.Time
	}
	if s.Cloud != nil && s.Cloud.Volume != nil && s.Cloud.Volume.Status == "error_deleting" {
		s.hang("delete.error", Step{Name: stepDelete, What: s.volumeText(), Since: since(began), Why: sentence(s.Cloud.Message, readable(s.errorText(failed, o))), Do: append([]string{
			"only an administrator of the cloud can repair this: after the cause is gone, the status is reset and the driver deletes the volume",
			"$ openstack volume set --state available " + s.volumeID(),
		}, s.showVolume()...)})
		return
	}
	if s.driverDown(stepDelete, began, failed) {
		return
	}
	if text := s.errorText(failed, o); text != "" {
		s.driverError(stepDelete, "the driver cannot delete the volume; "+s.volumeText(), began, text, o, append([]string{"correct what the error names; the driver tries again"}, s.showVolume()...)...)
		return
	}
	s.hang("delete.waiting", s.waiting(stepDelete, "the driver deletes the volume", began, o))
}
