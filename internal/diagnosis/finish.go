package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/pages"
)

// mount is what kubelet does on the node with the node plugin.
func (s *walk) mount() {
	p := s.pod()
	if s.blocked || p == nil {
		return
	}
	failed := s.failedMount(*p)
	node := p.Spec.NodeName
	switch {
	case s.Nodes[node] != nil && s.Nodes[node].Finding != "":
		s.finding(node, s.Nodes[node].Finding)
	case ready(*p):
		s.done(stepMount, "pod %s runs with the volume", p.Name)
	case mounted(*p) && (failed == nil || !lastOf(*failed).After(lastRun(*p)) || !s.namesVolume(*p, failed.Message)):
		s.done(stepMount, "the volume is mounted; %s", application(*p))
	case failed != nil && strings.Contains(failed.Message, "not found in the list of registered CSI drivers"):
		s.unregistered(node)
	case failed != nil && !s.namesVolume(*p, failed.Message):
		s.later(stepMount, "pod %s does not run yet: kubelet waits for another of its volumes: %s", p.Name, failed.Message)
	case failed != nil:
		s.driverError(stepMount, "kubelet on node "+node+" cannot mount the volume", firstOf(failed), failed.Message, nil, append([]string{"if the error does not say it, read the log of the node plugin on that node"}, s.nodeLog(node)...)...)
	default:
		s.stop(cause.MountWaiting, Step{
			Name: stepMount, State: Waiting, What: "pod " + p.Name + " does not run yet; the volume is attached", Since: since(p.CreationTimestamp.Time), Why: podWaits(*p),
			Do: append([]string{s.describePod(*p)}, s.nodeLog(node)...),
		})
	}
}

// finding stops the walk for a volume that is mounted and does not work.
func (s *walk) finding(node, reason string) {
	kernelLog := run("kubectl", "debug", "node/"+nodeNamed(node), "--image=busybox", "--profile=sysadmin", "--", "dmesg")
	step := Step{Name: stepMount, Why: "the driver on the node reports " + reason + " (cinder_csi_node_volume_unhealthy)"}
	switch reason {
	case "FileSystemReadOnly":
		step.What = "the file system of the volume is read-only on node " + node + ", after an error of its disk"
		step.Do = []string{
			"find out why the disk failed", kernelLog,
			"then delete every pod that uses the claim there: the driver checks the file system before it mounts it again. " + pages.FileSystemReadOnly.String(),
		}
		s.stop(cause.MountReadOnly, step)
	case "FileSystemErrors":
		step.What = "the file system of the volume has errors on node " + node
		step.Do = []string{kernelLog, "stop every pod that uses the claim there: the driver checks the file system before it mounts it again"}
		s.stop(cause.MountUnhealthy, step)
	default:
		step.What = "the disk of the volume does not work on node " + node
		step.Do = []string{"repair the storage behind Cinder; the driver goes on by itself: " + pages.StorageDoesNotAnswer.String(), kernelLog}
		s.stop(cause.MountUnhealthy, step)
	}
}

func containers(p corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// beforeMount are the reasons of a container for which kubelet may still wait for volumes. It mounts all volumes of a pod before it pulls
// an image or makes a container (kubelet, SyncPod).
var beforeMount = []string{"ContainerCreating", "PodInitializing", ""}

// failedMount is the newest event of a failed mount that names the volume, or else the newest.
func (s *walk) failedMount(p corev1.Pod) *corev1.Event {
	reasons := []string{"FailedMount", "FailedMapVolume"}
	names := first(s.Events, func(e corev1.Event) bool { return slices.Contains(reasons, e.Reason) && s.namesVolume(p, e.Message) })
	return cmp.Or(names, s.event(reasons...))
}

// mounted reports whether the containers of a pod prove that its volumes are mounted: one runs or has ended, or waits for something later.
// What ran before proves nothing: after a reboot of the node kubelet mounts the volumes of the same pod again.
func mounted(p corev1.Pod) bool {
	return slices.ContainsFunc(containers(p), func(c corev1.ContainerStatus) bool {
		w := c.State.Waiting
		return c.State.Running != nil || c.State.Terminated != nil || w != nil && !slices.Contains(beforeMount, w.Reason)
	})
}

// lastRun is when a container of a pod started or ended last. Kubelet reports the statuses of before a reboot until it has mounted all volumes.
func lastRun(p corev1.Pod) time.Time {
	var last time.Time
	for _, c := range containers(p) {
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			var times []metav1.Time
			if r := state.Running; r != nil {
				times = append(times, r.StartedAt)
			}
			if t := state.Terminated; t != nil {
				times = append(times, t.StartedAt, t.FinishedAt)
			}
			for _, at := range times {
				if at.After(last) {
					last = at.Time
				}
			}
		}
	}
	return last
}

// application says why a pod with mounted volumes is not ready. It is no matter of storage.
func application(p corev1.Pod) string {
	if why := podWaits(p); why != "" {
		return "pod " + p.Name + " does not run for another reason: " + why
	}
	return "pod " + p.Name + " runs, and is not ready yet"
}

// namesVolume reports whether a message of kubelet is about the volume of the claim. Such a message names the PersistentVolume, or lists the
// volume of the pod as not mounted. A message that names no volume counts as one about it.
func (s *walk) namesVolume(p corev1.Pod, message string) bool {
	if !strings.Contains(message, "for volume \"") && !strings.Contains(message, "unmounted volumes=[") {
		return true
	}
	if v := s.Claim; v != nil && v.Spec.VolumeName != "" && strings.Contains(message, v.Spec.VolumeName) {
		return true
	}
	_, list, _ := strings.Cut(message, "unmounted volumes=[")
	list, _, _ = strings.Cut(list, "]")
	waiting := strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return claimOfVolumeOf(p, v) == s.Name && slices.Contains(waiting, v.Name)
	})
}

func podWaits(p corev1.Pod) string {
	for _, c := range containers(p) {
		if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" {
			return strings.TrimSpace("container " + c.Name + ": " + w.Reason + " " + w.Message)
		}
	}
	return ""
}

// stillUsed is a deleted claim that Kubernetes keeps for its pods.
func (s *walk) stillUsed() {
	if s.blocked || s.Claim == nil || len(s.Pods) == 0 {
		return
	}
	names, words := []string{}, []string{"delete", "pod"}
	for _, p := range s.Pods {
		names, words = append(names, p.Name), append(words, podNamed(p.Name))
	}
	s.stop(cause.DeleteInUse, Step{
		Name: stepDelete, State: Waiting, What: "pods use the claim: " + strings.Join(names, ", "), Since: since(s.Claim.DeletionTimestamp.Time),
		Why: "Kubernetes deletes a claim when no pod uses it", Do: []string{s.inNamespace(words...)},
	})
}

// deleteVolume is DeleteVolume of the driver, which external-provisioner calls.
func (s *walk) deleteVolume() {
	v := s.Volume
	if s.blocked || v == nil {
		return
	}
	deleted := v.DeletionTimestamp != nil || s.Claim != nil && s.Claim.DeletionTimestamp != nil
	if !released(v) && !deleted {
		return
	}
	if v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		s.done(stepDelete, "PersistentVolume %s has reclaim policy Retain: the volume stays; %s", v.Name, s.volumeText())
		return
	}
	if s.otherCluster(stepDelete); s.blocked {
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
		reset := run("openstack", "volume", "set", "--state", "available", s.volumeWord())
		if mark := s.Cloud.Volume.Metadata[contract.MetadataCluster]; mark == "" || mark != s.ClusterID {
			reset = "nothing shows that the volume is this cluster's, so find out whose it is before somebody resets its status"
		}
		s.stop(cause.VolumeDeleteError, Step{Name: stepDelete, What: s.volumeText(), Since: since(began), Why: sentence(s.Cloud.Message, readable(s.errorText(failed, o))), Do: append([]string{
			"only an administrator of the cloud can repair this: after the cause is gone, the status is reset and the driver deletes the volume", reset,
		}, s.showVolume()...)})
		return
	}
	if s.driverDown(stepDelete, began, failed, s.errorText(failed, o)) {
		return
	}
	if text := s.errorText(failed, o); text != "" {
		s.driverError(stepDelete, "the driver cannot delete the volume; "+s.volumeText(), began, text, o, s.showVolume()...)
		return
	}
	s.stop(cause.DeleteWaiting, s.waiting(stepDelete, "the driver deletes the volume", began, o))
}
