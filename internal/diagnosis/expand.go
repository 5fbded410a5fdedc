package diagnosis

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
)

// expand is the growth of the volume and its file system.
func (s *walk) expand() {
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
		s.expandOnNode(step)
		return
	}
	failed, o := s.event("VolumeResizeFailed"), s.operation("ControllerExpandVolume")
	text := s.errorText(failed, o)
	if s.driverDown(stepExpand, s.Now, failed, text) {
		return
	}
	if text != "" {
		began := s.Now
		if failed != nil {
			began = firstOf(failed)
		}
		s.driverError(stepExpand, step.What, began, text, o, s.showVolume()...)
		return
	}
	what := step.What
	step = s.waiting(stepExpand, "the driver expands the volume", s.Now, o)
	step.What = what
	s.stop(cause.ExpandWaiting, step)
}

// expandOnNode is the file system, which kubelet grows after Cinder has expanded the volume. kubelet writes its errors as events of the pod.
func (s *walk) expandOnNode(step Step) {
	p := s.pod()
	if p == nil || p.Spec.NodeName == "" {
		step.Why = "Cinder has expanded the volume; kubelet grows the file system while a pod uses it"
		step.Do = []string{"start a pod that uses the claim", s.inNamespace("get", "pods")}
		s.stop(cause.ExpandNode, step)
		return
	}
	node := p.Spec.NodeName
	if failed := s.eventOf("Pod", "VolumeResizeFailed", "FileSystemResizeFailed"); failed != nil {
		step.State, step.Why, step.Since = Failed, failed.Message, since(firstOf(failed))
		step.Do = append([]string{"correct what the error names; kubelet on node " + node + " tries again"}, s.nodeLog(node)...)
		s.stop(cmp.Or(cause.In(failed.Message), cause.ExpandNodeError), step)
		return
	}
	step.Why = "Cinder has expanded the volume; kubelet on node " + node + " grows the file system within a few minutes"
	step.Do = append([]string{"wait; if this stays, read the log of the node plugin on that node"}, s.nodeLog(node)...)
	s.stop(cause.ExpandNode, step)
}

func (s *walk) condition(kind corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(s.Claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// modify is the change of a volume to another VolumeAttributesClass, which external-resizer asks the driver for.
func (s *walk) modify() {
	if s.blocked || !s.bound() || s.Claim.Status.ModifyVolumeStatus == nil {
		return
	}
	status := s.Claim.Status.ModifyVolumeStatus
	class, o := status.TargetVolumeAttributesClassName, s.operation("ControllerModifyVolume")
	failed := s.event("VolumeModifyFailed")
	text, began := s.errorText(failed, o), s.Now
	if failed != nil {
		began = firstOf(failed)
	}
	for _, c := range s.Claim.Status.Conditions {
		modifying := c.Type == corev1.PersistentVolumeClaimVolumeModifyingVolume || c.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError
		if !modifying || c.Status != corev1.ConditionTrue {
			continue
		}
		if text == "" && c.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError {
			text = c.Message
		}
		if at := c.LastTransitionTime.Time; !at.IsZero() && at.Before(began) {
			began = at
		}
	}
	what := "the volume shall get VolumeAttributesClass " + class + " (" + string(status.Status) + "); " + s.volumeText()
	if s.driverDown(stepModify, began, failed, text) {
		return
	}
	if text != "" || status.Status == corev1.PersistentVolumeClaimModifyVolumeInfeasible {
		text = cmp.Or(text, "external-resizer calls the change infeasible")
		s.driverError(stepModify, what, began, text, o, "correct the class that the claim names, or name the class before in spec.volumeAttributesClassName",
			run("kubectl", "get", "volumeattributesclass", "--output", "yaml"), s.inNamespace("describe", "pvc", claimNamed(s.Name)))
		return
	}
	step := s.waiting(stepModify, "the driver changes the volume", began, o)
	step.What = what
	if status.Status == corev1.PersistentVolumeClaimModifyVolumePending {
		step.Why = "external-resizer has not begun: the class may not exist"
		step.Do = append([]string{"create the class, or name another in spec.volumeAttributesClassName", run("kubectl", "get", "volumeattributesclass")}, step.Do...)
	}
	s.stop(cause.ModifyWaiting, step)
}
