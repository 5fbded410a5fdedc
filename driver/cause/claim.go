package cause

// The causes that kubectl cinder finds.
var (
	None             = found("none", "nothing hangs", "nothing", Nobody, true)
	ClaimMissing     = found("claim.missing", "there is no claim of this name", "create the claim, or correct its name", User, false)
	ClaimUnreadable  = found("claim.unreadable", "the user may not read the claim", "use a kubeconfig that may read it", Cluster, false)
	ClaimLost        = found("claim.lost", "the claim is Lost: its PersistentVolume is gone", "create the PersistentVolume again, if the volume still exists", Cluster, false)
	ClassMissing     = found("class.missing", "the StorageClass of the claim does not exist, or the claim has none", "create the class, or delete the claim and name another", Cluster, false)
	SourceNotReady   = found("source.not-ready", "the snapshot or claim that the volume is made from is not ready", "read the status of the VolumeSnapshot", User, true)
	PodNone          = found("pod.none", "the class waits for the first pod that uses the claim, and there is none", "create a pod that uses the claim", User, false)
	PodUnschedulable = found("pod.unschedulable", "the scheduler finds no node for the pod", "read the message of the scheduler", Cluster, true)
	PodZone          = found("pod.zone", "no node of the pod is in the zone of the volume", "add or free a node in the zone of the volume", Cluster, true)
	PodAttachLimit   = found("pod.attach-limit", "the nodes have no room for one more volume", "add a node, or move pods with volumes", Cluster, true)
	DriverNotRunning = found("driver.not-running", "no controller of the driver is ready", "start the controller of the driver", Cluster, false)
	DriverUnseen     = found("driver.unseen", "this cluster has no controller of the driver, and no other cluster was named", "name the cluster of the controller", Cluster, false)
	DriverNoLeader   = found("driver.no-leader", "a sidecar of the driver has no leader", "read the log of the sidecars", Cluster, true)
	CreateRefused    = found("create.refused", "the driver refuses to create the volume, and names no cause", "read the error", Cluster, false)
	CreateWaiting    = found("create.waiting", "the volume is being created", "wait", Nobody, true)
	BindWaiting      = found("bind.waiting", "Kubernetes has not bound the claim to its PersistentVolume", "describe the claim", Cluster, true)
	NodeUnregistered = found("node.unregistered", "the node plugin of the driver is not registered on the node", "start the node plugin there", Cluster, false)
	NodeNotReady     = found("node.not-ready", "the node of the volume is not ready", "repair the node, or shut its server down and set the taint out-of-service", Cluster, true)
	ServerUnknown    = found("server.unknown", "Nova does not have the server of a node that is ready", "use the credentials of the project of the nodes", Cluster, false)
	AttachStuck      = found("attach.stuck", "Cinder or Nova does not finish the attach", "read the nova-compute log of the host of the server", Cloud, true)
	AttachError      = found("attach.error", "the attach fails, and the error names no cause", "read the error", Cluster, false)
	AttachLost       = found("attach.lost", "Kubernetes shows the volume as attached; Cinder or Nova does not", "stop every pod of the claim, and start them once the VolumeAttachment is gone", Cluster, false)
	AttachUnknown    = found("attach.unknown", "the volume is attached to a server for which Kubernetes has no VolumeAttachment", "find out who uses the disk there", Cluster, false)
	AttachWaiting    = found("attach.waiting", "the volume is being attached", "wait", Nobody, true)
	DetachStuck      = found("detach.stuck", "Cinder or Nova does not finish the detach", "read the nova-compute log of the host of the server", Cloud, true)
	MountError       = found("mount.error", "kubelet cannot mount the volume, and the error names no cause", "read the error and the log of the node plugin", Cluster, false)
	MountWaiting     = found("mount.waiting", "kubelet mounts the volume", "wait", Nobody, true)
	MountReadOnly    = found("mount.read-only", "the kernel made the file system read-only after an error", "stop the pods, repair the file system, start them again", Cluster, false)
	MountUnhealthy   = found("mount.unhealthy", "the disk or the file system of a mounted volume has errors, or does not answer", "read the kernel log of the node", Cluster, false)
	ExpandError      = found("expand.error", "Cinder does not expand the volume, and the error names no cause", "read the error", Cluster, false)
	ExpandWaiting    = found("expand.waiting", "Cinder expands the volume", "wait", Nobody, true)
	ExpandNode       = found("expand.node", "the file system grows when a pod on a node uses the volume", "start a pod that uses the claim", User, false)
	ExpandNodeError  = found("expand.node-error", "kubelet cannot grow the file system, and the error names no cause", "read the error and the log of the node plugin", Cluster, false)
	ModifyError      = found("modify.error", "the change to a VolumeAttributesClass fails, and the error names no cause", "read the error", Cluster, false)
	ModifyWaiting    = found("modify.waiting", "the driver changes the volume to a VolumeAttributesClass", "wait", Nobody, true)
	VolumeSize       = found("volume.size", "the volume is smaller in Cinder than in Kubernetes", "make a backup of what can be read", Cluster, false)
	DeleteInUse      = found("delete.in-use", "the claim is being deleted, but a pod uses it", "delete the pods that use the claim", User, false)
	DeleteError      = found("delete.error", "the volume is not deleted, and the error names no cause", "read the error", Cluster, false)
	DeleteWaiting    = found("delete.waiting", "the volume is being deleted", "wait", Nobody, true)
)

// claimCauses are the rows above.
var claimCauses []Cause

func found(id ID, means, do string, who Actor, passes bool) ID {
	claimCauses = append(claimCauses, Cause{id, means, do, who, passes})
	return id
}
