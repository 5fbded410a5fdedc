package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// slowAttach is when an attach or detach is called stuck. A cloud needs a few seconds; external-attacher calls again after three minutes.
const slowAttach = 2 * time.Minute

// pod is the pod that waits for the volume. Of several it is one that does not run yet, and of these one whose node has not the volume.
func (s *walk) pod() *corev1.Pod {
	var best *corev1.Pod
	rank := func(p corev1.Pod) int {
		switch {
		case p.DeletionTimestamp != nil:
			return 0
		case ready(p):
			return 1
		case s.attachedAt(p.Spec.NodeName):
			return 2
		}
		return 3
	}
	for i, p := range s.Pods {
		if best == nil || rank(p) > rank(*best) {
			best = &s.Pods[i]
		}
	}
	return best
}

// schedule is the node of the pod, once the volume exists.
func (s *walk) schedule() {
	p := s.pod()
	switch {
	case s.blocked:
	case p == nil && len(s.Attachments) == 0:
		s.later(stepPod, "no pod uses the claim; the volume is attached for the first pod")
	case p == nil:
		s.later(stepPod, "no pod uses the claim")
	case p.Spec.NodeName == "":
		s.unscheduled(*p)
	default:
		s.done(stepPod, "pod %s is on node %s", p.Name, p.Spec.NodeName)
	}
}

func (s *walk) attach() {
	if s.blocked {
		return
	}
	p := s.pod()
	if p == nil {
		s.detachAll()
		s.volumeTrouble() // the next pod would meet it
		return
	}
	node := p.Spec.NodeName
	own := s.attachmentAt(node)
	if s.volumeTrouble() || s.nodeTrouble(stepAttach, node) { // credentials of another project hide the server too
		return
	}
	if s.gapAbout(theAttachments) {
		s.attachUnseen(*p)
		return
	}
	if own != nil && own.Status.Attached {
		if s.detached(node) || s.attachedBehind() {
			return
		}
		s.done(stepAttach, "the volume is attached to node %s; %s", node, s.volumeText())
		return
	}
	other := first(s.Attachments, func(a storagev1.VolumeAttachment) bool { return a.Spec.NodeName != node })
	if other != nil && (own == nil || s.event("FailedAttachVolume") != nil) {
		s.elsewhere(*p, *other)
		return
	}
	began := p.CreationTimestamp.Time
	if own == nil {
		s.stop(cause.AttachWaiting, Step{
			Name: stepAttach, State: Waiting, What: "there is no VolumeAttachment for node " + node, Since: since(began), Why: "kube-controller-manager creates it",
			Do: []string{"if this stays, read the log of kube-controller-manager", s.describePod(*p)},
		})
		return
	}
	s.attaching(*own)
}

// attachUnseen is the attach of a user who may not read VolumeAttachments: only the events of the pod tell of it.
func (s *walk) attachUnseen(p corev1.Pod) {
	e := s.event("FailedAttachVolume")
	switch {
	case e == nil || ready(p):
		s.report.Steps = append(s.report.Steps, Step{Name: stepAttach, State: Unseen, What: "the VolumeAttachments could not be read, and no event tells of a failed attach"})
	case strings.Contains(e.Message, "Multi-Attach"):
		s.stop(cause.AttachElsewhere, Step{
			Name: stepAttach, State: Waiting, What: "the volume is still attached to another node", Since: since(firstOf(e)), Why: e.Message,
			Do: []string{"the access mode ReadWriteOnce allows one node: delete the other pod that uses the claim, or put both pods on one node", s.inNamespace("get", "pods", "--output", "wide")},
		})
	default:
		s.driverError(stepAttach, "the driver cannot attach the volume to node "+p.Spec.NodeName, firstOf(e), e.Message, s.operation("ControllerPublishVolume"), s.attachAdvice()...)
	}
}

// attaching is ControllerPublishVolume of the driver, which external-attacher calls.
func (s *walk) attaching(a storagev1.VolumeAttachment) {
	began, o := a.CreationTimestamp.Time, s.operation("ControllerPublishVolume")
	text := ""
	if e := a.Status.AttachError; e != nil {
		text = e.Message
	}
	if o != nil && o.LastError != "" && !o.Running {
		text = o.error()
	}
	if s.driverDown(stepAttach, began, nil, text) {
		return
	}
	step := s.waiting(stepAttach, "the driver attaches the volume to node "+a.Spec.NodeName, began, o)
	if s.cinderAttaching() && s.Now.Sub(began) > slowAttach {
		step.Do = s.stuckAdvice("nova-compute")
		step.Why = sentence(step.Why, readable(text))
		s.stop(cause.AttachStuck, step)
		return
	}
	if text != "" {
		s.driverError(stepAttach, "the driver cannot attach the volume to node "+a.Spec.NodeName+"; "+s.volumeText(), began, text, o, s.attachAdvice()...)
		return
	}
	s.stop(cause.AttachWaiting, step)
}

// cinderAttaching reports whether an attach has begun in Cinder and not ended.
func (s *walk) cinderAttaching() bool {
	return s.Cloud != nil && s.Cloud.Volume != nil && slices.Contains([]string{"reserved", "attaching"}, s.Cloud.Volume.Status)
}

func (s *walk) attachAdvice() []string {
	return append([]string{"if it stays, see what a stuck volume needs: " + pages.FreeAStuckVolume.String()}, s.listAttachments()...)
}

// stuckAdvice is for an attach or detach that the cloud has accepted and does not finish.
func (s *walk) stuckAdvice(log string) []string {
	do := []string{
		"give the volume, the server and the request IDs to the operator of the cloud", "the log of " + log + " on the host of the server has the reason",
		"do not reset the status of the volume while the server may use the disk: " + pages.FreeAStuckVolume.String(),
	}
	return append(do, s.listAttachments()...)
}

// elsewhere is a volume that another node has: it must be detached there first.
func (s *walk) elsewhere(p corev1.Pod, other storagev1.VolumeAttachment) {
	node := other.Spec.NodeName
	if other.DeletionTimestamp != nil {
		s.detaching(other)
		return
	}
	if s.nodeTrouble(stepDetach, node) {
		return
	}
	began, why := p.CreationTimestamp.Time, ""
	if e := s.event("FailedAttachVolume"); e != nil {
		began, why = firstOf(e), e.Message
	}
	holders := []string{}
	for _, h := range s.Pods {
		if h.Spec.NodeName == node {
			holders = append(holders, h.Name)
		}
	}
	do := []string{"the access mode ReadWriteOnce allows one node: delete the pod there, or put both pods on one node"}
	if len(holders) == 0 {
		do = []string{"no pod there uses the claim: Kubernetes detaches the volume when kubelet has unmounted it; if this stays, read the log of kubelet on " + node}
	}
	for _, h := range holders {
		do = append(do, s.inNamespace("delete", "pod", podNamed(h)))
	}
	do = append(do, run("kubectl", "get", "volumeattachment", attachmentNamed(other.Name)))
	s.stop(cause.AttachElsewhere, Step{
		Name: stepAttach, State: Waiting, What: fmt.Sprintf("the volume is still attached to node %s (pods there that use the claim: %s)", node, orNone(strings.Join(holders, ", "))),
		Since: since(began), Why: why, Do: do,
	})
}

// detaching is ControllerUnpublishVolume of the driver, which external-attacher calls.
func (s *walk) detaching(a storagev1.VolumeAttachment) {
	node := a.Spec.NodeName
	began := a.DeletionTimestamp.Time
	text := ""
	if e := a.Status.DetachError; e != nil {
		text = e.Message
	}
	if s.nodeTrouble(stepDetach, node) || s.driverDown(stepDetach, began, nil, text) {
		return
	}
	o := s.operation("ControllerUnpublishVolume")
	step := s.waiting(stepDetach, "the driver detaches the volume from node "+node, began, o)
	step.Why = sentence(step.Why, readable(text))
	if s.Now.Sub(began) > slowAttach {
		step.Do = s.stuckAdvice("nova-compute")
	}
	s.stop(cause.DetachStuck, step)
}

// detachAll is for a volume that no pod uses any more.
func (s *walk) detachAll() {
	for _, a := range s.Attachments {
		if s.blocked {
			return
		}
		if a.DeletionTimestamp != nil {
			s.detaching(a)
			continue
		}
		if s.nodeTrouble(stepDetach, a.Spec.NodeName) || a.Status.Attached && s.detached(a.Spec.NodeName) {
			return
		}
		s.later(stepDetach, "the volume is attached to node %s (VolumeAttachment %s); Kubernetes detaches it when kubelet has unmounted it", a.Spec.NodeName, a.Name)
	}
	s.attachedBehind()
}

// sentence joins the parts that are not empty.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}
