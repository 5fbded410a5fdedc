// Package diagnosis follows one PersistentVolumeClaim to its disk and says where it hangs: which step waits, since when, why, and what to do.
//
// Read collects the facts from the cluster, the cloud and the driver; Diagnose is a pure function of them. Nothing here changes anything.
// What cannot be read, for want of a right or of credentials, is listed as not seen, and the story goes on without it.
package diagnosis

import "time"

// State says how far a step is.
type State string

// The states of a step.
const (
	Done    State = "done"
	Waiting State = "waiting" // it may still succeed without anybody's help
	Failed  State = "failed"  // it does not succeed until somebody acts
	Later   State = "later"   // an earlier step is not done
	Unseen  State = "unseen"  // the facts do not say
)

// Step is one step from the claim to the disk.
type Step struct {
	Name  string     `json:"name"`
	State State      `json:"state"`
	What  string     `json:"what"`            // what was seen, on which object
	Since *time.Time `json:"since,omitempty"` // when the step began to wait
	Why   string     `json:"why,omitempty"`   // the cause, or the error as the driver or Kubernetes reports it
	// Requests are OpenStack request IDs. The operator of the cloud finds them in the logs of Cinder and Nova.
	Requests []string `json:"requests,omitempty"`
	Do       []string `json:"do,omitempty"` // what to do next; a line that begins with "$ " is a command
}

// Gap is something that could not be read.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
	Do   string `json:"do,omitempty"`
}

// Report is the story of one claim.
type Report struct {
	Claim  string    `json:"claim"` // NAMESPACE/NAME
	Time   time.Time `json:"time"`  // of the diagnosis; ages count from it
	Cause  string    `json:"cause"` // ID of the cause, one of Causes; "none" if nothing hangs. Scripts may depend on it
	Steps  []Step    `json:"steps"`
	Unseen []Gap     `json:"unseen"` // what could not be read
}

// Hangs reports whether a step waits or has failed, or whether nobody can tell because the claim itself could not be read.
func (r Report) Hangs() bool { return r.Cause != None }

// None is the cause of a claim that does not hang.
const None = "none"

// Cause is one reason why a volume hangs.
type Cause struct{ ID, Means string }

// Causes lists every cause, in the order of the steps. docs/reference/kubectl-cinder.md has a row for each.
var Causes = []Cause{
	{None, "nothing hangs"},
	{"claim.missing", "there is no claim of this name"},
	{"claim.unreadable", "the user may not read the claim"},
	{"claim.lost", "the claim is Lost: its PersistentVolume is gone"},
	{"class.missing", "the StorageClass of the claim does not exist, or the claim has none"},
	{"source.not-ready", "the snapshot or claim that the volume is made from is not ready"},
	{"pod.none", "the class waits for the first pod that uses the claim, and there is none"},
	{"pod.unschedulable", "the scheduler finds no node for the pod"},
	{"pod.zone", "no node of the pod is in the zone of the volume"},
	{"pod.attach-limit", "the nodes have no room for one more volume"},
	{"driver.not-running", "no controller of the driver is ready"},
	{"driver.unseen", "this cluster has no controller of the driver, and no other cluster was named"},
	{"driver.no-leader", "a sidecar of the driver has no leader"},
	{"cloud.credentials", "Keystone refuses the credentials of the driver"},
	{"cloud.rights", "the credentials of the driver lack a right"},
	{"cloud.token-refused", "Cinder or Nova refuses the tokens of Keystone: an access rule is missing, or a clock is wrong"},
	{"cloud.unreachable", "the driver does not reach Keystone, Cinder or Nova"},
	{"create.quota", "the quota of the project is used up"},
	{"create.type", "the volume type of the class does not exist, or the project may not use it"},
	{"create.no-backend", "no backend of Cinder takes the volume, in this zone or at all"},
	{"create.error", "Cinder failed to create the volume"},
	{"create.refused", "the driver refuses to create the volume"},
	{"create.waiting", "the volume is being created"},
	{"bind.waiting", "Kubernetes has not bound the claim to its PersistentVolume"},
	{"volume.missing", "the volume is gone from Cinder"},
	{"volume.error", "Cinder shows the volume in an error status"},
	{"node.unregistered", "the node plugin of the driver is not registered on the node"},
	{"node.not-ready", "the node of the volume is not ready"},
	{"server.missing", "the server of the node is gone from Nova"},
	{"server.unknown", "Nova does not have the server of a node that is ready"},
	{"server.locked", "somebody locked the server of the node"},
	{"server.error", "the server of the node is in status ERROR"},
	{"attach.elsewhere", "the volume is attached to another node"},
	{"attach.limit", "the server cannot take one more volume"},
	{"attach.stuck", "Cinder or Nova does not finish the attach"},
	{"attach.error", "the attach fails"},
	{"attach.lost", "Kubernetes shows the volume as attached; Cinder or Nova does not"},
	{"attach.unknown", "the volume is attached to a server for which Kubernetes has no VolumeAttachment"},
	{"attach.waiting", "the volume is being attached"},
	{"detach.stuck", "Cinder or Nova does not finish the detach"},
	{"mount.error", "kubelet cannot mount the volume"},
	{"mount.waiting", "kubelet mounts the volume"},
	{"mount.read-only", "the kernel made the file system read-only after an error"},
	{"mount.unhealthy", "the disk or the file system of a mounted volume has errors, or does not answer"},
	{"expand.error", "Cinder does not expand the volume"},
	{"expand.waiting", "Cinder expands the volume"},
	{"expand.node", "the file system grows when a pod on a node uses the volume"},
	{"expand.node-error", "kubelet cannot grow the file system"},
	{"modify.error", "the change to a VolumeAttributesClass fails"},
	{"modify.waiting", "the driver changes the volume to a VolumeAttributesClass"},
	{"volume.size", "the volume is smaller in Cinder than in Kubernetes"},
	{"volume.other-cluster", "the volume has the mark of another cluster"},
	{"delete.in-use", "the claim is being deleted, but a pod uses it"},
	{"delete.error", "Cinder failed to delete the volume"},
	{"delete.waiting", "the volume is being deleted"},
}
